// SPDX-License-Identifier: MIT
// A program that runs on every runtime since .NET Core 2: threads, exceptions, a collection.
using System;
using System.Threading;

static class Program
{
    static long Fib(int n) => n < 2 ? n : Fib(n - 1) + Fib(n - 2);

    static int Main(string[] args)
    {
        if (args.Length > 0) Console.ReadLine();  // until it is told to go on
        long sum = 0;
        var threads = new Thread[3];
        for (int i = 0; i < threads.Length; i++)
        {
            threads[i] = new Thread(() =>
            {
                try { Interlocked.Add(ref sum, Fib(20)); throw new InvalidOperationException(); }
                catch (InvalidOperationException) { GC.Collect(); }
            });
            threads[i].Start();
        }
        foreach (Thread t in threads) t.Join();
        Console.WriteLine("sum " + sum);
        return 7;
    }
}
