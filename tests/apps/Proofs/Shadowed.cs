// SPDX-License-Identifier: MIT
// Work for the shadow stack: threads that call, recurse, throw, dispatch and allocate without end, so
// that a snapshot at a random instant meets every kind of frame. Argument: threads.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Proofs;

static class Shadowed
{
    internal static void Run(string[] args)
    {
        int count = args.Length > 0 ? int.Parse(args[0]) : 2;
        var threads = new Thread[count];
        for (int i = 0; i < count; i++) { threads[i] = new Thread(Work); threads[i].Start(); }
        foreach (Thread t in threads) t.Join();
    }

    static void Work()
    {
        while (Oracle.oracle_scene_done() == 0) { Variety.Repeat(); Fib(16); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fib(int n) => n < 2 ? n : Fib(n - 1) + Fib(n - 2);
}
