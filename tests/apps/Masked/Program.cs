// SPDX-License-Identifier: MIT
// Masked MS: three managed threads and a native one compute until each has used so many ms of CPU time. "m-masked" and the native
// "n-masked" (libtest_masked) have blocked all signals, "m-pulses" does so now and then, "m-free" does not. Prints "ready" when they run, and
// "NAME cpu NS wall NS" of each at its end; of "m-pulses" also how much of that it has used with its signals blocked. Exits with 42.
// Masked wait MS 0|1: two native threads and two managed ones block all signals and wait for them, for so long, and compute
// in between (1). Prints how many came.
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

public static unsafe class Program
{
    const int ThreadClock = 3, Block = 0, Unblock = 1;
    const long PulseNs = 300_000_000;
    static long limitNs, spent;
    static int running;

    [DllImport("libc", EntryPoint = "pthread_sigmask"), SuppressGCTransition]
    static extern int SetSignalMask(int how, ulong* set, ulong* old);
    [DllImport("libc", EntryPoint = "clock_gettime"), SuppressGCTransition]
    static extern int ReadClock(int clock, long* time);
    [DllImport("libtest_masked")]
    static extern int masked_start(long limitNs);
    [DllImport("libtest_masked")]
    static extern long masked_join(long* wallNs);

    [DllImport("libtest_masked")]
    static extern int masked_wait(int byFd, int computes, int ms);
    [DllImport("libtest_masked")]
    static extern int masked_waiting();
    [DllImport("libtest_masked")]
    static extern void masked_waits_start(int computes, int ms);
    [DllImport("libtest_masked")]
    static extern int masked_waits_join();

    static int Wait(int ms, int computes)
    {
        int received = 0;
        var threads = new Thread[2];
        for (int i = 0; i < threads.Length; i++)
        {
            int byFd = i;
            threads[i] = new Thread(() => Interlocked.Add(ref received, masked_wait(byFd, computes, ms))) { Name = "m-waits" };
            threads[i].Start();
        }
        masked_waits_start(computes, ms);
        while (masked_waiting() < 4) Thread.Sleep(1);
        Console.WriteLine("ready");
        foreach (var thread in threads) thread.Join();
        Console.WriteLine($"signals {received + masked_waits_join()}");
        return 42;
    }

    static long CpuNs()
    {
        long* time = stackalloc long[2];
        ReadClock(ThreadClock, time);
        return time[0] * 1_000_000_000 + time[1];
    }

    static void SetAll(int how)
    {
        ulong* set = stackalloc ulong[16];
        for (int i = 0; i < 16; i++) set[i] = ulong.MaxValue;
        SetSignalMask(how, set, null);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Compute()
    {
        long value = spent;
        for (int i = 0; i < 100000; i++) value = value * 31 + 7;
        spent = value;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Open(long untilNs)
    {
        while (CpuNs() < untilNs) Compute();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Closed(long untilNs)
    {
        while (CpuNs() < untilNs) Compute();
    }

    static void Free() => Open(limitNs);

    static void Masked()
    {
        SetAll(Block);
        Closed(limitNs);
    }

    static long pulsesBlockedNs;
    static void Pulses()
    {
        for (long at = CpuNs(); at < limitNs; at = CpuNs())
        {
            SetAll(Block);
            Closed(at + PulseNs);
            pulsesBlockedNs += CpuNs() - at;
            SetAll(Unblock);
            Open(at + 2 * PulseNs);
        }
    }

    static Thread Start(string name, Action body, List<string> said)
    {
        var thread = new Thread(() =>
        {
            long begin = Stopwatch.GetTimestamp();
            Interlocked.Increment(ref running);
            body();
            long cpu = CpuNs(), wall = (long)Stopwatch.GetElapsedTime(begin).TotalNanoseconds;
            lock (said) said.Add($"{name} cpu {cpu} wall {wall}");
        }) { Name = name };
        thread.Start();
        return thread;
    }

    static int Main(string[] args)
    {
        if (args[0] == "wait") return Wait(int.Parse(args[1]), int.Parse(args[2]));
        limitNs = long.Parse(args[0]) * 1_000_000;
        var said = new List<string>();
        var threads = new List<Thread> { Start("m-masked", Masked, said), Start("m-pulses", Pulses, said), Start("m-free", Free, said) };
        if (masked_start(limitNs) != 0) return 1;
        while (Volatile.Read(ref running) < threads.Count) Thread.Sleep(1);
        Console.WriteLine("ready");
        foreach (var thread in threads) thread.Join();
        long wallNs, cpuNs = masked_join(&wallNs);
        said.Add($"n-masked cpu {cpuNs} wall {wallNs}");
        foreach (string line in said) Console.WriteLine(line);
        Console.WriteLine($"blocked cpu {pulsesBlockedNs} wall 0");
        return 42;
    }
}
