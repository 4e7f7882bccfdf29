// SPDX-License-Identifier: MIT
// A crowd: so many threads that wait, and one that does not. Ends with its standard input.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Proofs;

static class Crowd
{
    internal static int Run(string[] args)
    {
        int count = int.Parse(args[0]);
        using var over = new ManualResetEventSlim(false, 0);
        using var there = new CountdownEvent(count);
        var threads = new Thread[count];
        for (int i = 0; i < count; i++)
        {
            threads[i] = new Thread(() => Waiting(there, over), 128 * 1024);
            threads[i].Start();
        }
        there.Wait();
        new Thread(Burning) { IsBackground = true, Name = "Burner" }.Start();
        Console.WriteLine("there");
        while (Console.In.Read() >= 0) { }
        over.Set();
        foreach (Thread thread in threads) thread.Join();
        return 0;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Waiting(CountdownEvent there, ManualResetEventSlim over)
    {
        there.Signal();
        over.Wait();
    }

    static volatile int sum;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Burning()
    {
        for (;;) sum += 1;
    }
}
