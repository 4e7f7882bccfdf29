// SPDX-License-Identifier: MIT
// A heap in steady use: every tenth of a second some MB are allocated and one collection of generation
// 0, 1 or 2 is asked for, in turn. Argument: seconds. Prints "truth BYTES GEN0 GEN1 GEN2 PAUSE_MS SECONDS"
// about all of its life.
using System;
using System.Diagnostics;
using System.Threading;

namespace Heap;

static class Program
{
    static byte[]? sink;

    static int Main(string[] args)
    {
        int rounds = 10 * int.Parse(args[0]);
        var clock = Stopwatch.StartNew();
        for (int round = 0; round < rounds; round++)
        {
            for (int i = 0; i < 100; i++) sink = new byte[20_000];
            GC.Collect(round % 3, GCCollectionMode.Forced, blocking: true);
            Thread.Sleep(100);
        }
        double seconds = clock.Elapsed.TotalSeconds;
        Console.WriteLine($"truth {GC.GetTotalAllocatedBytes()} {GC.CollectionCount(0)} {GC.CollectionCount(1)} "
            + $"{GC.CollectionCount(2)} {GC.GetTotalPauseDuration().TotalMilliseconds:F1} {seconds:F3}");
        return 0;
    }
}
