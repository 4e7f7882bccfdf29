// SPDX-License-Identifier: MIT
// A process that dies while its threads run: an uncaught exception, FailFast, a stack that overflows, a fault
// and an abort in native code. With DOTNET_DbgEnableMiniDump the runtime runs createdump over it.
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Torture;

sealed class Crash : Hazard
{
    [DllImport(Native.Library)] static extern void torture_fault();
    [DllImport("libc")] static extern void abort();

    internal override ulong Round(Random random) => Busy.Threads(random.Next());

    internal override int End(Random random)
    {
        for (int i = 0; i < 4; i++) new Thread(() => { for (ulong sum = 0; ;) sum = Busy.Work(sum, 1000); }) { IsBackground = true }.Start();
        Thread.Sleep(random.Next(30));
        switch (random.Next(6))
        {
            case 0: throw new InvalidOperationException("nobody catches this");
            case 1: new Thread(() => throw new InvalidOperationException("nor this")).Start(); Thread.Sleep(Timeout.Infinite); break;
            case 2: Environment.FailFast("as it was meant"); break;
            case 3: Overflow(1); break;
            case 4: torture_fault(); break;
            case 5: abort(); break;
        }
        return 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Overflow(int n) => Overflow(n + 1) + n;
}
