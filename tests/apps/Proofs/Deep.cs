// SPDX-License-Identifier: MIT
// The target for the depth limit: a thread at the end of a recursion of 100,000 frames.
using System.Runtime.CompilerServices;
using System.Threading;

namespace Proofs;

static class Deep
{
    static volatile bool stop;

    internal static void Run()
    {
        var thread = new Thread(() => Recurse(100_000), 256 << 20);
        thread.Start();
        while (Oracle.oracle_scene_done() == 0) Thread.Sleep(1);
        stop = true;
        thread.Join();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Recurse(int n) => n == 0 ? Spin() : Recurse(n - 1) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Spin()
    {
        Oracle.oracle_scene_begin("deep", "");
        int n = 0;
        while (!stop) n++;
        return n & 1;
    }
}
