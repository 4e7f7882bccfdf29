// SPDX-License-Identifier: MIT
// Stacks of many different managed methods for bench/managed.c: instantiations of one generic method
// over value types, each of which is code of its own, calling each other along a path by function
// pointers. What is measured is said by bench_cell before.
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Proofs;

static unsafe class BenchStacks
{
    const int Methods = 1500, Sites = 3, Bits = 11;
    const int One = 0, Many = 1, Evicted = 2, New = 3;
    static readonly int[] Depths = { 30, 100 };

    // A binary number as a type: 2^Bits different value types.
    struct End { }
    struct Zero<T> where T : struct { }
    struct Bit<T> where T : struct { }

    sealed class Path
    {
        public nint[] Next;   // the last one is Leaf
        public byte[] Site;
        public int At;
    }

    // AggressiveOptimization: jitted once, and not replaced while it is measured.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static long Step<T>(Path path, long value) where T : struct
    {
        int at = path.At++;
        var next = (delegate*<Path, long, long>)path.Next[at];
        switch (path.Site[at])
        {
            case 0: return next(path, value + at) + 1;
            case 1: return next(path, value ^ at) * 3;
            default: return next(path, value - at) ^ at;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static long Leaf(Path path, long value) { Oracle.bench_leaf(); return value; }

    // bench/held.c: the top watches itself, or waits with cold caches until it has been walked.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static long LeafWatched(Path path, long value)
    {
        Oracle.oracle_scene_begin("spin" + (path.Next.Length - 1), "");
        Oracle.bench_spin();
        return value;
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static long LeafCold(Path path, long value) { Oracle.bench_cold(); return value; }

    static nint[] steps;
    static nint leaf, leafWatched, leafCold;
    static int unused;   // call sites that no path has had yet come from here

    static nint Pointer(MethodInfo method)
    {
        RuntimeHelpers.PrepareMethod(method.MethodHandle,
            Array.ConvertAll(method.GetGenericArguments(), t => t.TypeHandle));
        return method.MethodHandle.GetFunctionPointer();
    }

    static void Prepare()
    {
        var step = typeof(BenchStacks).GetMethod(nameof(Step), BindingFlags.NonPublic | BindingFlags.Static);
        steps = new nint[Methods];
        for (int i = 0; i < Methods; i++)
        {
            Type type = typeof(End);
            for (int bit = 0; bit < Bits; bit++)
                type = ((i >> bit & 1) == 0 ? typeof(Zero<>) : typeof(Bit<>)).MakeGenericType(type);
            steps[i] = Pointer(step.MakeGenericMethod(type));
        }
        leaf = (nint)(delegate*<Path, long, long>)&Leaf;
        leafWatched = (nint)(delegate*<Path, long, long>)&LeafWatched;
        leafCold = (nint)(delegate*<Path, long, long>)&LeafCold;
    }

    static Path MakePath(int depth, Random random) => MakePath(depth, random, leaf);

    static Path MakePath(int depth, Random random, nint top)
    {
        var path = new Path { Next = new nint[depth + 1], Site = new byte[depth + 1] };
        for (int i = 0; i < depth; i++)
        {
            int at = random != null ? random.Next(Methods * Sites) : unused++;
            path.Next[i] = steps[at * 7 % Methods];
            path.Site[i] = (byte)(at / Methods % Sites);
        }
        path.Next[depth] = top;
        return path;
    }

    static void Run(Path path)
    {
        path.At = 1;
        ((delegate*<Path, long, long>)path.Next[0])(path, 1);
    }

    // The runtime's own threads deal with thousands of new methods for a while; where the two processors are
    // one core's, that doubles what is measured meanwhile (the first column, for each of the walkers).
    static void LetTheRuntimeRest() => Thread.Sleep(2000);

    internal static void Measure()
    {
        Prepare();
        LetTheRuntimeRest();
        var thread = new Thread(MeasureHere, 16 << 20);
        thread.Start();
        thread.Join();
    }

    static void OnThread(Action action)
    {
        Oracle.oracle_scene_prepare();
        var thread = new Thread(() => action(), 16 << 20);
        thread.Start();
        thread.Join();
    }

    internal static void Watched(int depth) => OnThread(() =>
    {
        Run(MakePath(depth, new Random(depth), leafWatched));
        while (Oracle.oracle_scene_done() == 0) Thread.Sleep(1);
    });

    internal static void Cold(int depth) => OnThread(() =>
    {
        var random = new Random(depth);
        Oracle.oracle_scene_begin("cold" + depth, "");
        while (Oracle.oracle_scene_done() == 0) Run(MakePath(depth, random, leafCold));
    });

    static void MeasureHere()
    {
        const int NewStacks = 5, Turns = 5, ManyTurns = 20, Stacks = 64;
        var random = new Random(11);
        int peers = Oracle.bench_peers();
        for (int d = 0; d < Depths.Length; d++)
            for (int i = 0; i < NewStacks; i++)
                for (int p = 0; p < peers; p++) { Oracle.bench_cell(p, New, d); Run(MakePath(Depths[d], null)); }
        if (unused > Methods * Sites) throw new InvalidOperationException("not enough methods for new stacks");
        LetTheRuntimeRest();
        for (int d = 0; d < Depths.Length; d++)
        {
            var one = MakePath(Depths[d], random);
            for (int turn = 0; turn < Turns; turn++)
                for (int p = 0; p < peers; p++) { Oracle.bench_cell(p, One, d); Run(one); }
            for (int p = 0; p < peers; p++) { Oracle.bench_cell(p, Evicted, d); Run(one); }
            var many = new List<Path>();
            for (int i = 0; i < Stacks; i++) many.Add(MakePath(Depths[d], random));
            for (int p = 0; p < peers; p++)
            {
                Oracle.bench_cell(p, Many, d);
                for (int turn = 0; turn < ManyTurns; turn++) many.ForEach(Run);
            }
        }
    }
}
