// SPDX-License-Identifier: MIT
// A busy loop whose truth is known: nearly all of its time is in the recursive Work, the rest in the
// clock. Argument: seconds of CPU time, so that a loaded machine gives as many samples; or "construct":
// prints Work's share in per cent, told by the clock alone.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;

namespace Proofs;

static class Busy
{
    internal static int Run(string[] args)
    {
        if (args.Length > 0 && args[0] == "construct") return Construct();
        double seconds = args.Length > 0 ? double.Parse(args[0]) : 5;
        long sum = 0;
        do
        {
            DateTime end = DateTime.UtcNow.AddSeconds(0.25);
            while (DateTime.UtcNow < end) sum += Work(12);
        } while (CpuSeconds() < seconds);
        Console.WriteLine("done " + (sum != 0));
        return 0;
    }

    static double CpuSeconds()
    {
        using Process self = Process.GetCurrentProcess();
        return self.TotalProcessorTime.TotalSeconds;
    }

    // The loop with its clock and without, in turns that are short beside what disturbs them. The median
    // of the turns' ratios, not the ratio of two best times: those may be from a faster and a slower
    // moment of the machine. The first half only brings the code to its optimized form.
    static int Construct()
    {
        const int Turns = 6000, Calls = 200;
        double[] shares = new double[Turns];
        long sum = 0;
        for (int turn = 0; turn < Turns; turn++)
        {
            long begin = Stopwatch.GetTimestamp();
            sum += WithClock(Calls, DateTime.MaxValue);
            long middle = Stopwatch.GetTimestamp();
            sum += WithoutClock(Calls);
            long end = Stopwatch.GetTimestamp();
            shares[turn] = 100.0 * (end - middle) / (middle - begin);
        }
        Array.Sort(shares, Turns / 2, Turns / 2);
        Console.WriteLine(FormattableString.Invariant($"{shares[Turns / 4 * 3]:F1} {sum != 0}"));
        return 0;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long WithClock(int times, DateTime end)
    {
        long sum = 0;
        while (DateTime.UtcNow < end && times-- > 0) sum += Work(12);
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long WithoutClock(int times)
    {
        long sum = 0;
        while (times-- > 0) sum += Work(12);
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Work(int n) => n < 2 ? n : Work(n - 1) + Work(n - 2);
}
