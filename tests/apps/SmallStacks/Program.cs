// SPDX-License-Identifier: MIT
// SmallStacks LIBRARY SECONDS DELAY [calm]: a program with a Go library in it, loaded after DELAY seconds. Two threads compute
// in Go, on goroutines' stacks of 2 KiB, and compare what comes out; one has null references (not if calm), one sleeps. Ends
// with 42 if all of it was right.
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

public static unsafe class Program
{
    static volatile bool s_over;
    static volatile int s_wrong;
    static string? s_nothing = null;

    static void Compute(delegate* unmanaged<int, int> work)
    {
        int expected = work(200000);
        while (!s_over) if (work(200000) != expected) s_wrong++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Dereference() => s_nothing!.Length;

    static void Fail()
    {
        while (!s_over)
        {
            try { Dereference(); s_wrong++; }
            catch (NullReferenceException) { }
        }
    }

    static void Sleep()
    {
        while (!s_over) Thread.Sleep(50);
    }

    static int Main(string[] args)
    {
        var threads = new List<Thread> { new(Sleep) };
        if (args.Length == 3) threads.Add(new(Fail));
        var end = Stopwatch.StartNew();
        foreach (Thread thread in threads) thread.Start();
        Thread.Sleep((int)(1000 * double.Parse(args[2])));
        nint library = NativeLibrary.Load(args[0]);
        var work = (delegate* unmanaged<int, int>)NativeLibrary.GetExport(library, "GoWork");
        for (int i = 0; i < 2; i++)
        {
            var thread = new Thread(() => Compute(work));
            threads.Add(thread);
            thread.Start();
        }
        Console.WriteLine("ready");
        Thread.Sleep((int)Math.Max(0, 1000 * double.Parse(args[1]) - end.ElapsedMilliseconds));
        s_over = true;
        foreach (Thread thread in threads) thread.Join();
        return s_wrong == 0 ? 42 : 1;
    }
}
