// SPDX-License-Identifier: MIT
// A loop whose time is known to go to Work, on the main thread, which also notes when it stood still: two
// readings of the clock with one turn of the loop between them that are too far apart. For the benchmark
// of what a profiler does to a program (tests/guest/pause.cpp, bench/dropin.py).
using System.Diagnostics;

namespace Guest;

static class Busy
{
    const long TooLong = 20_000; // ns; one turn takes some 2,000
    static volatile bool over;

    // With threads that begin and end all the time, four of them at once.
    internal static int RunBesideChurn()
    {
        var breeder = new Thread(() =>
        {
            while (!over)
            {
                Thread[] brood = [.. Enumerable.Range(0, 4).Select(i => new Thread(() => Thread.Sleep(i)))];
                foreach (Thread one in brood) one.Start();
                foreach (Thread one in brood) one.Join();
            }
        });
        breeder.Start();
        int code = Run();
        breeder.Join();
        return code;
    }

    internal static int Run()
    {
        string path = Environment.GetEnvironmentVariable("GUEST_GAPS") ?? throw new ArgumentException("GUEST_GAPS is not set");
        var gaps = new (long Begin, long End)[1_000_000];
        int count = 0, code = 1;
        Loop(gaps, ref count, 200_000); // until it is compiled as well as it will be
        count = 0;
        var profiler = new Thread(() => { code = Profiler.guest_run(); over = true; });
        profiler.Start();
        Loop(gaps, ref count, long.MaxValue);
        profiler.Join();
        using StreamWriter file = new(path);
        for (int i = 0; i < count; i++) file.WriteLine($"{gaps[i].Begin} {gaps[i].End}");
        return code;
    }

    // Stopwatch reads CLOCK_MONOTONIC, in nanoseconds on Linux; the profiler reads the same clock.
    static long Loop((long, long)[] gaps, ref int count, long turns)
    {
        long sum = 0, before = Stopwatch.GetTimestamp();
        for (long i = 0; i < turns && !over; i++)
        {
            sum += Work(12);
            long now = Stopwatch.GetTimestamp();
            if (now - before > TooLong && count < gaps.Length) gaps[count++] = (before, now);
            before = now;
        }
        return sum;
    }

    static long Work(int n) => n < 2 ? n : Work(n - 1) + Work(n - 2);
}
