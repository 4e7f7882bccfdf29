// SPDX-License-Identifier: MIT
// Native code that allocates all the time, on the runtime's threads and on its own, and calls back between.
using System.Runtime.InteropServices;

namespace Torture;

sealed unsafe class Malloc : Hazard
{
    [DllImport(Native.Library)]
    static extern ulong torture_malloc(ulong seed, int count, delegate* unmanaged<ulong, ulong> function);

    internal override ulong Round(Random random)
    {
        int seed = random.Next();
        return Program.Team(4, number => torture_malloc((ulong)(seed + number), 4000, number < 2 ? null : &Back));
    }

    [UnmanagedCallersOnly]
    static ulong Back(ulong value) => Program.Mix(value, (ulong)new byte[100].Length);
}
