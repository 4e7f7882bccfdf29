// SPDX-License-Identifier: MIT
// The runtime sends threads a signal of its own to stop them where they never ask: in loops without a call. Ours meets
// that one's handler, and the other way round; returns of short calls are hijacked. Native code in cooperative mode holds
// all of that up, for long enough that gc mode samples it meanwhile.
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Torture;

sealed class Activation : Hazard
{
    static volatile bool stop;
    static long kept;

    internal override ulong Round(Random random)
    {
        int seed = random.Next();
        stop = false;
        var loop = new Thread(() => { while (!stop) kept++; });
        loop.Start();
        ulong sum = Program.Team(3, number => number == 0 ? Suspend() : number == 1 ? Short(seed) : HoldUp(seed));
        stop = true;
        loop.Join();
        return sum;
    }

    static ulong Suspend()
    {
        for (int i = 0; i < 5; i++) GC.Collect(0, GCCollectionMode.Forced, true);
        return 1;
    }

    static ulong HoldUp(int seed)
    {
        ulong sum = 0;
        for (int i = 0; i < 5; i++) sum = torture_spin(sum + (ulong)seed, 400_000);
        return sum;
    }

    [DllImport(Native.Library), SuppressGCTransition]
    static extern ulong torture_spin(ulong seed, int rounds);

    static ulong Short(int seed)
    {
        ulong sum = 0;
        for (int i = 0; i < 200000; i++) sum = Leaf(sum, (ulong)seed);
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static ulong Leaf(ulong sum, ulong value) => Program.Mix(sum, value);
}
