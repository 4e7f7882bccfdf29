// SPDX-License-Identifier: MIT
// Programs that need signals for themselves: all real-time ones, those that threads mask and wait for, and one that
// installs handlers over existing ones. Each signal is counted; none may be missing, and none may be extra.
using System.Runtime.InteropServices;

namespace Torture;

sealed class Signals(Func<ulong, ulong> use) : Hazard
{
    [DllImport(Native.Library)] static extern ulong torture_realtime(ulong seed, int count);
    [DllImport(Native.Library)] static extern ulong torture_masked(ulong seed, int count);
    [DllImport(Native.Library)] static extern ulong torture_replaced(ulong seed, int count);

    internal static ulong RealTime(ulong seed) => torture_realtime(seed, 200);
    internal static ulong Masked(ulong seed) => torture_masked(seed, 200);
    internal static ulong Replaced(ulong seed) => torture_replaced(seed, 200);

    internal override ulong Round(Random random)
    {
        ulong seed = (ulong)random.Next(), own = 0;
        var beside = new Thread(() => own = Busy.Threads((int)seed));
        beside.Start();
        ulong sum = use(seed);
        beside.Join();
        return Program.Mix(sum, own);
    }
}
