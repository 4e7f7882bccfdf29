// SPDX-License-Identifier: MIT
// The CPU time of a program's own work, while it is recorded and while it is not: slices of work that makes events, by turns, until
// standard input ends. Each prints "KIND BEGIN END OPERATIONS CPU": CLOCK_MONOTONIC in nanoseconds, and the CPU
// time of the whole process in microseconds, which includes the agent's.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;

static class Program
{
    const int SliceMilliseconds = 40, Depth = 30;
    static volatile object? sink;
    static readonly AutoResetEvent ping = new(false), pong = new(false);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw() => throw new InvalidOperationException("as it should");

    static void ThrowSome()
    {
        for (int i = 0; i < 100; i++)
        {
            try { Throw(); }
            catch (InvalidOperationException) { }
        }
    }

    // Some 50 KiB: every other time the runtime samples one of the objects.
    static void AllocateSome()
    {
        for (int i = 0; i < 100; i++) sink = new byte[488];
    }

    static void WaitSome()
    {
        for (int i = 0; i < 10; i++)
        {
            ping.Set();
            pong.WaitOne();
        }
    }

    static void Answer()
    {
        while (true)
        {
            ping.WaitOne();
            pong.Set();
        }
    }

    static long MicrosecondsOfCpu() => Environment.CpuUsage.TotalTime.Ticks / (TimeSpan.TicksPerMillisecond / 1000);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Deeper(int depth, Action work)
    {
        if (depth > 0)
            Deeper(depth - 1, work);
        else
            work();
        GC.KeepAlive(work);
    }

    static void Slice(string kind, Action work)
    {
        long begin = Stopwatch.GetTimestamp(), cpu = MicrosecondsOfCpu(), count = 0;
        while (Stopwatch.GetElapsedTime(begin).TotalMilliseconds < SliceMilliseconds)
        {
            Deeper(Depth, work);
            count++;
        }
        cpu = MicrosecondsOfCpu() - cpu;
        Console.WriteLine($"{kind} {begin} {Stopwatch.GetTimestamp()} {count} {cpu}");
    }

    static void Main()
    {
        bool over = false;
        new Thread(Answer) { IsBackground = true, Name = "answers" }.Start();
        new Thread(() =>
        {
            Console.In.ReadToEnd();
            Volatile.Write(ref over, true);
        }) { IsBackground = true, Name = "listens" }.Start();
        while (!Volatile.Read(ref over))
        {
            Slice("throw", ThrowSome);
            Slice("alloc", AllocateSome);
            Slice("wait", WaitSome);
        }
    }
}
