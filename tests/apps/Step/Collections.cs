// SPDX-License-Identifier: MIT
// Collections: one's own, and those of another thread, which stop this one by a signal or by its return
// address.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Step;

static class Collections
{
    internal static IEnumerable<Program.Scene> Scenes()
    {
        yield return new("gc: one's own", () => GC.Collect(0));
        yield return new("gc: of another thread", Disturbed);
    }

    static int sum;
    static volatile bool stop;

    static void Disturbed()
    {
        stop = false;
        Thread collector = new(() => { while (!stop) { GC.Collect(0); Thread.Sleep(20); } });
        collector.Start();
        for (int i = 0; i < 400; i++) sum += Outer(i);
        stop = true;
        collector.Join();
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static int Outer(int n) => Inner(n) + Inner(n + 1);
    [MethodImpl(MethodImplOptions.NoInlining)] static int Inner(int n) => new int[3].Length + n;
}
