// SPDX-License-Identifier: MIT
// Methods that have values in callee-saved registers while they call native code. Compiled with
// optimisation at once, so that the calls are part of them and go through no stub.
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Proofs;

static class Registers
{
    static long result;

    internal static void Run()
    {
        while (Oracle.oracle_registers_ready() == 0) Thread.Sleep(10);
        for (int i = 0; i < 200; i++)
        {
            result += BusyLoop(i, new[] { i, i + 1L });
            result += BusyNested(3, i, 7 * i, 11 * i);
        }
    }

    [MethodImpl(MethodImplOptions.AggressiveOptimization | MethodImplOptions.NoInlining)]
    static long BusyLoop(int n, long[] array)
    {
        long a = n + 0x1001, b = a * 3, c = b ^ 0x5555, d = c + array.Length, e = d * 7;
        for (int i = 0; i < 3; i++)
        {
            Oracle.oracle_registers(i);
            a += b; b += c; c += d; d += e; e += array[i & 1];
        }
        return a + b + c + d + e;
    }

    [MethodImpl(MethodImplOptions.AggressiveOptimization | MethodImplOptions.NoInlining)]
    static long BusyNested(int depth, long x, long y, long z)
    {
        Oracle.oracle_registers(depth);
        long below = depth == 0 ? 0 : BusyNested(depth - 1, y, z, x + y);
        Oracle.oracle_registers(depth);
        return below + x * y + z;
    }
}
