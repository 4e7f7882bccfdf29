// SPDX-License-Identifier: MIT
// The target for bad input: a thread that spins in managed code and counts, and a managed caller.
using System.Runtime.CompilerServices;
using System.Threading;

namespace Proofs;

static unsafe class Bad
{
    internal static void Run()
    {
        var shortLived = new Thread(() => { });
        shortLived.Start();
        shortLived.Join();
        var spinner = new Thread(() => Count(Oracle.oracle_counter()));
        spinner.Start();
        while (Oracle.oracle_scene_done() == 0) Thread.Sleep(1);
        Oracle.oracle_bad_managed();
        stop = true;
        spinner.Join();
    }

    static volatile bool stop;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Count(long* counter)
    {
        Oracle.oracle_scene_begin("bad", "");
        while (!stop) Volatile.Write(ref *counter, *counter + 1);
    }
}
