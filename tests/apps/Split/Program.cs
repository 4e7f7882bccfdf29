// SPDX-License-Identifier: MIT
// A known split: three methods take 60, 30 and 10 % of a thread's CPU time, by the thread's own
// clock, in turns so short that the split also holds for a recording that begins late. Prints the
// true time of each, "truth NAME NANOSECONDS", and returns 0.
// Arguments: rounds of one second of CPU time.
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Split;

static class Program
{
    const int ThreadCpuTime = 3;

    struct TimeSpec
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc", EntryPoint = "clock_gettime")]
    static extern int ClockGetTime(int clock, out TimeSpec time);

    static volatile int sink;

    static long Now()
    {
        ClockGetTime(ThreadCpuTime, out var t);
        return t.Seconds * 1_000_000_000 + t.Nanoseconds;
    }

    // Some 0.1 ms between two readings of the clock, so that the clock is not part of the picture.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Burn(long nanoseconds)
    {
        long begin = Now(), end = begin;
        for (; end - begin < nanoseconds; end = Now())
        {
            int x = 1;
            for (int i = 0; i < 100_000; i++) x = x * 31 + i;
            sink = x;
        }
        return end - begin;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Sixty() => Burn(24_000_000) + 0 * sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Thirty() => Burn(12_000_000) + 0 * sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Ten() => Burn(4_000_000) + 0 * sink;

    static int Main(string[] args)
    {
        int rounds = int.Parse(args[0]);
        long sixty = 0, thirty = 0, ten = 0;
        var thread = new Thread(() =>
        {
            for (int i = 0; i < 25 * rounds; i++)
            {
                sixty += Sixty();
                thirty += Thirty();
                ten += Ten();
            }
        }) { Name = "Splitter" };
        thread.Start();
        thread.Join();
        Console.WriteLine($"truth Split.Program.Sixty {sixty}");
        Console.WriteLine($"truth Split.Program.Thirty {thirty}");
        Console.WriteLine($"truth Split.Program.Ten {ten}");
        return 0;
    }
}
