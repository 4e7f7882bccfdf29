// SPDX-License-Identifier: MIT
// Null references in a tight loop on several threads, for a given time, while the program is sampled.
// Afterwards each thread reports whether it still takes real-time signals, and works for 0.3 s of CPU time in a
// function that no other thread runs, so that a recording shows that samples still come.
// Arguments: seconds, threads (3; only the first three have such a function of their own).
using System;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Proofs;

static class Torture
{
    static string nothing;
    static volatile int sink;
    static long caught;

    internal static int Run(string[] args)
    {
        double seconds = args.Length > 0 ? double.Parse(args[0]) : 8;
        Action[] after = { After0, After1, After2 };
        var threads = new Thread[args.Length > 1 ? int.Parse(args[1]) : after.Length];
        DateTime end = DateTime.UtcNow.AddSeconds(seconds);
        for (int i = 0; i < threads.Length; i++)
        {
            Action last = after[i % after.Length];
            threads[i] = new Thread(() => { while (DateTime.UtcNow < end) Interlocked.Add(ref caught, Fault(1000)); last(); });
            threads[i].Start();
        }
        Thread.Sleep(TimeSpan.FromSeconds(seconds + 0.5));
        int blocked = Blocked();
        foreach (Thread t in threads) t.Join();
        Console.WriteLine("null references: " + caught + ", threads that block a real-time signal: " + blocked);
        return caught > 1000 && blocked == 0 ? 0 : 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fault(int n)
    {
        int count = 0;
        for (int i = 0; i < n; i++) try { sink = nothing.Length; } catch (NullReferenceException) { count++; }
        return count;
    }

    // Of this thread, in nanoseconds: a busy machine must not take the samples away.
    static unsafe long CpuTime()
    {
        long* time = stackalloc long[2];
        if (clock_gettime(3, time) != 0) throw new InvalidOperationException();
        return time[0] * 1_000_000_000 + time[1];
    }

    [DllImport("libc")]
    static extern unsafe int clock_gettime(int clock, long* time);

    // Signals 35 to 64 are bits 34 to 63 of SigBlk. A thread that blocks SIGPROF (bit 26) as well blocks
    // everything on purpose: it is neither managed nor sampled.
    static int Blocked()
    {
        int count = 0;
        foreach (string task in Directory.GetDirectories("/proc/self/task"))
            foreach (string line in Status(task))
                if (line.StartsWith("SigBlk:") && Convert.ToUInt64(line[7..].Trim(), 16) is ulong set && set >> 34 != 0 && (set >> 26 & 1) == 0) { count++; Console.WriteLine(task + " " + line); }
        return count;
    }

    // Nothing of a thread that has ended meanwhile.
    static string[] Status(string task)
    {
        try { return File.ReadAllLines(task + "/status"); }
        catch (IOException) { return []; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void After0() { for (long end = CpuTime() + 300_000_000; CpuTime() < end;) sink++; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void After1() { for (long end = CpuTime() + 300_000_000; CpuTime() < end;) sink++; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void After2() { for (long end = CpuTime() + 300_000_000; CpuTime() < end;) sink++; }
}
