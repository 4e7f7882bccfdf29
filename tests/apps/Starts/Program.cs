// SPDX-License-Identifier: MIT
// Everything that a recording has events for, at once at the start of Main, and then the program ends. Prints the true
// numbers: "truth MODE NUMBER". Argument: how it ends (return, exit, throw, failfast); "nothing": it ends at once; "crash": it only throws;
// "moments": it only starts threads that run for moments, and prints their number and the program's CPU time in ns, without the profiler's.
using System.Runtime.CompilerServices;

namespace Starts;

static class Program
{
    const int Throws = 125, Arrays = 40, Collections = 30, Waits = 3, Locks = 4, Spins = 100_000_000;
    const int ArrayBytes = 2 << 20; // twenty times the mean distance of samples: practically each is sampled
    static volatile object? sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw()
    {
        for (int i = 0; i < Throws; i++)
            try { throw new InvalidOperationException(); } catch (InvalidOperationException) { }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate()
    {
        for (int i = 0; i < Arrays; i++) sink = new byte[ArrayBytes];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Collect()
    {
        for (int i = 0; i < Collections; i++) GC.Collect(0);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Wait()
    {
        using var never = new AutoResetEvent(false);
        for (int i = 0; i < Waits; i++) never.WaitOne(5);
    }

    // The lock is kept until the runtime has counted the other thread's wait for it.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Lock()
    {
        for (int i = 0; i < Locks; i++)
        {
            object gate = new();
            long before = Monitor.LockContentionCount;
            var thread = new Thread(() => { lock (gate) { } });
            lock (gate)
            {
                thread.Start();
                while (Monitor.LockContentionCount == before) Thread.Sleep(1);
                Thread.Sleep(2);
            }
            thread.Join();
        }
    }

    // Of this thread, in nanoseconds.
    static long Used() => long.Parse(File.ReadAllText("/proc/thread-self/schedstat").Split(' ')[0]);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Spin()
    {
        long begin = Used();
        while (Used() < begin + Spins) Thread.SpinWait(1000);
        return Used() - begin;
    }

    // CPU time of the profiler's own threads.
    static long AgentNs()
    {
        long sum = 0;
        foreach (string task in Directory.GetDirectories("/proc/self/task"))
            try
            {
                if (File.ReadAllText(task + "/comm").StartsWith(".clrsnap"))
                    sum += long.Parse(File.ReadAllText(task + "/schedstat").Split(' ')[0]);
            }
            catch (IOException) { } // it has ended
        return sum;
    }

    static int Moments()
    {
        const int threads = 1000;
        long agent = AgentNs();
        var before = Environment.CpuUsage.TotalTime;
        for (int i = 0; i < threads; i++)
        {
            var thread = new Thread(() => Thread.SpinWait(100));
            thread.Start();
            thread.Join();
        }
        double used = (Environment.CpuUsage.TotalTime - before).TotalNanoseconds;
        Console.WriteLine($"moments {threads} {used - (AgentNs() - agent):F0}");
        return 0;
    }

    static int Main(string[] args)
    {
        if (args[0] == "nothing") return 0;
        if (args[0] == "moments") return Moments();
        Throw();
        if (args[0] == "crash") throw new InvalidOperationException("nobody catches it");
        Allocate();
        Wait();
        Lock();
        Collect();
        long spun = Spin();
        Console.WriteLine($"truth exception {Throws}");
        Console.WriteLine($"truth alloc {Arrays * (long)ArrayBytes}");
        Console.WriteLine($"truth gc {GC.CollectionCount(0)}");
        Console.WriteLine($"truth lock {Locks}");
        Console.WriteLine($"truth wait {Waits}");
        Console.WriteLine($"truth cpu {spun}");
        if (args[0] == "exit") Environment.Exit(9);
        if (args[0] == "throw") throw new InvalidOperationException("nobody catches it");
        if (args[0] == "failfast") Environment.FailFast("it ends like this");
        return 7;
    }
}
