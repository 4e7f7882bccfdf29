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
        yield return new("gc: of another thread", () => Disturbed(20, 400));
        yield return new("gc: return addresses replaced", () => Replaced(2000));
    }

    // Another thread collects on request, a moment later: by then this thread is in the calls again.
    static readonly AutoResetEvent asked = new(false);
    static Thread asker;

    static void Replaced(int calls)
    {
        if (asker == null)
        {
            asker = new(() => { while (asked.WaitOne()) { Thread.Sleep(20); GC.Collect(0); } }) { IsBackground = true };
            asker.Start();
        }
        for (int i = 0; i < calls; i++)
        {
            if (i % 50 == 0) asked.Set();
            sum += Outer(i);
        }
    }

    static int sum;
    static volatile bool stop;

    static void Disturbed(int pause, int calls)
    {
        stop = false;
        Thread collector = new(() => { while (!stop) { GC.Collect(0); Thread.Sleep(pause); } });
        collector.Start();
        for (int i = 0; i < calls; i++) sum += Outer(i);
        stop = true;
        collector.Join();
    }

    // Straight code without a loop: it cannot be stopped just anywhere, but where it returns.
    [MethodImpl(MethodImplOptions.NoInlining)] static int Outer(int n) => Middle(n) + Middle(n + 1) * 3;
    [MethodImpl(MethodImplOptions.NoInlining)] static int Middle(int n) => Inner(n, n ^ 5) - Inner(n + 1, n);
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Inner(int a, int b)
    {
        int c = a * 31 + b, d = c ^ (a << 3), e = d * 7 - b, f = e + (c >> 2);
        return f * d + e - c;
    }
}
