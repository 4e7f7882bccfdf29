// SPDX-License-Identifier: MIT
// What bench/bench.c measures: stacks of several depths, and a running thread among sleeping ones.
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

        Oracle.oracle_scene_prepare();
        for (int i = 0; i < 6; i++) new Thread(() => { while (!stop) Thread.Sleep(5); }).Start();
        var runner = new Thread(() => Recurse(20));
        runner.Start();
        while (Oracle.oracle_scene_done() == 0) Thread.Sleep(1);
        stop = true;
        runner.Join();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Down(int n, int depth) { if (n == 0) Oracle.bench_synchronous(depth); else Down(n - 1, depth); sink = 0; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Recurse(int n)
    {
        if (n > 0) { Recurse(n - 1); sink = 0; return; }
        Oracle.oracle_scene_begin("run", "");
        while (!stop) Work(12);
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Work(int n) => n < 2 ? n : Work(n - 1) + Work(n - 2);
}
