// SPDX-License-Identifier: MIT
// Objects from 32 to 80,000 bytes in random order: a fifth of all bytes for each size.
using System.Runtime.CompilerServices;
using System.Threading;

namespace Modes;

static class Mix
{
    const int Header = 24;
    static readonly int[] Sizes = [32, 208, 12_000, 50_000, 80_000];
    static readonly int[] AtOnce = [500, 76, 1, 1, 1]; // twice as many at most, or exactly one: 8 KiB of small ones on average
    static readonly Action<int>[] Kinds = [Allocate32, Allocate208, Allocate12000, Allocate50000, Allocate80000];
    static volatile object? sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate32(int bytes) => sink = new byte[bytes];

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate208(int bytes) => sink = new byte[bytes];

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate12000(int bytes) => sink = new byte[bytes];

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate50000(int bytes) => sink = new byte[bytes];

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate80000(int bytes) => sink = new byte[bytes];

    public static void Run(long megabytes)
    {
        Random random = new(1);
        long[] truth = new long[Sizes.Length];
        double[] weight = new double[Sizes.Length];
        for (int kind = 0; kind < Sizes.Length; kind++) weight[kind] = 1.0 / Sizes[kind] / AtOnce[kind];
        for (long left = megabytes << 20; left > 0;)
        {
            double at = random.NextDouble() * weight.Sum();
            int kind = 0;
            while (kind < Sizes.Length - 1 && at >= weight[kind]) at -= weight[kind++];
            int count = AtOnce[kind] == 1 ? 1 : random.Next(1, 2 * AtOnce[kind]);
            for (int i = 0; i < count; i++) Kinds[kind](Sizes[kind] - Header);
            truth[kind] += (long)count * Sizes[kind];
            // Walks of events may take a tenth of the thread's time; beyond that they are left out.
            long before = left;
            left -= (long)count * Sizes[kind];
            if (before >> 19 != left >> 19) Thread.Sleep(2);
        }
        for (int kind = 0; kind < Sizes.Length; kind++) Console.WriteLine($"truth alloc Modes.Mix.Allocate{Sizes[kind]} {truth[kind]}");
    }
}
