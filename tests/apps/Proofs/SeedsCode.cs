// SPDX-License-Identifier: MIT
// Places in code that no seed should have: stubs that no method has been compiled behind, and methods
// that were collected. And the thread that such seeds are tried on: it spins in managed code.
using System;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Proofs;

static unsafe class Code
{
    static volatile int calls;
    static volatile bool stop;

    [MethodImpl(MethodImplOptions.NoInlining)] static int Never1() => calls + 1;
    [MethodImpl(MethodImplOptions.NoInlining)] static int Never2(string s) => s.Length;
    [MethodImpl(MethodImplOptions.NoInlining)] static T Never3<T>(T t) => t;

    internal static void Run()
    {
        // Precode: each of these addresses leads to the prestub until the method is called.
        Oracle.oracle_seed_stub((delegate*<int>)&Never1);
        Oracle.oracle_seed_stub((delegate*<string, int>)&Never2);
        Oracle.oracle_seed_stub((delegate*<string, string>)&Never3<string>);
        for (int i = 0; i < 8; i++) Collected();
        while (Oracle.oracle_seed_collected() == 0) { Collected(); GC.Collect(); GC.WaitForPendingFinalizers(); }
        var spinner = new Thread(Spin);
        spinner.Start();
        while (Oracle.oracle_seed_done() == 0) Thread.Sleep(2);
        stop = true;
        spinner.Join();
    }

    // Its code is freed when the delegate has been collected; the profiler hears of both.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Collected()
    {
        var method = new DynamicMethod("collected", typeof(int), new[] { typeof(int) });
        ILGenerator il = method.GetILGenerator();
        for (int i = 0; i < 50; i++) { il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Starg_S, 0); }
        il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ret);
        calls += method.CreateDelegate<Func<int, int>>()(1);
    }

    // One version of the code each, whatever the runtime thinks of them.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static void Spin()
    {
        Oracle.oracle_seed_spinning();
        long rounds = 0;
        while (!stop) rounds += Turn(rounds);
        calls += (int)rounds;
    }
    // A prolog with registers to save, a body that no safe point ends, an epilog.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static long Turn(long start)
    {
        long a = start, b = a * 3, c = b ^ 0x5555, d = c + 7, e = d * 5;
        for (int i = 0; i < 20000; i++) { a += b; b ^= c; c += d; d ^= e; e += i; }
        return a + b + c + d + e == 0 ? 2 : 1;
    }
}
