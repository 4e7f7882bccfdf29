// SPDX-License-Identifier: MIT
// Native threads with small stacks, and with alternate stacks of their own on which their own handlers run.
using System.Runtime.InteropServices;

namespace Torture;

sealed class Stacks : Hazard
{
    [DllImport(Native.Library)]
    static extern ulong torture_stacks(ulong seed, int threads);

    internal override ulong Round(Random random) => torture_stacks((ulong)random.Next(), 8);
}
