// SPDX-License-Identifier: MIT
// What bench/bench.c measures: stacks of several depths, and a running thread among sleeping ones.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Proofs;

static class Bench
{
    static volatile bool stop;
    internal static volatile int sink;

    internal static void Run()
    {
        // Walks may be taken once some code has run.
        Oracle.oracle_scene_prepare();
        Oracle.oracle_scene_begin("ready", "");
        while (Oracle.oracle_scene_done() == 0) Thread.Sleep(1);
        foreach (int depth in new[] { 5, 20, 100, 500, 1500 }) Down(depth, depth);
        BenchStacks.Measure();

        Among("idle", 6, () => Thread.Sleep(5));
        Among("busy", 8, () => Work(20));
        foreach (int depth in new[] { 30, 100 }) BenchStacks.Watched(depth);
        foreach (int depth in new[] { 30, 100 }) BenchStacks.Cold(depth);
    }

    // A thread that runs, among others that do something.
    static void Among(string scene, int count, Action something)
    {
        Oracle.oracle_scene_prepare();
        stop = false;
        var threads = new Thread[count + 1];
        for (int i = 0; i < count; i++) threads[i] = new Thread(() => { while (!stop) something(); });
        threads[count] = new Thread(() => Recurse(20, scene));
        foreach (var thread in threads) thread.Start();
        while (Oracle.oracle_scene_done() == 0) Thread.Sleep(1);
        stop = true;
        foreach (var thread in threads) thread.Join();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Down(int n, int depth) { if (n == 0) Oracle.bench_synchronous(depth); else Down(n - 1, depth); sink = 0; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Recurse(int n, string scene)
    {
        if (n > 0) { Recurse(n - 1, scene); sink = 0; return; }
        Oracle.oracle_scene_begin(scene, "");
        while (!stop) Work(12);
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Work(int n) => n < 2 ? n : Work(n - 1) + Work(n - 2);
}
