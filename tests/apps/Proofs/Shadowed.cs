// SPDX-License-Identifier: MIT
// Work for the shadow stack: threads that call, recurse, throw, dispatch and allocate without end, so
// that a snapshot at a random instant meets every kind of frame. Arguments: threads, and "busy" for more that
// compile, collect and allocate natively.
using System;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Proofs;

static class Shadowed
{
    internal static void Run(string[] args)
    {
        int count = args.Length > 0 ? int.Parse(args[0]) : 2;
        var threads = new Thread[count];
        for (int i = 0; i < count; i++) { threads[i] = new Thread(Work); threads[i].Start(); }
        bool busy = args.Length > 1 && args[1] == "busy";
        var others = busy ? new[] { new Thread(Compile), new Thread(Collect), new Thread(Native) } : Array.Empty<Thread>();
        foreach (Thread t in others) t.Start();
        foreach (Thread t in threads) t.Join();
        foreach (Thread t in others) t.Join();
    }

    // Threads in the JIT, in the collector, and in malloc with its lock.
    static void Compile()
    {
        while (Oracle.oracle_scene_done() == 0)
        {
            var method = new DynamicMethod("compiled", typeof(int), new[] { typeof(int) });
            ILGenerator il = method.GetILGenerator();
            for (int i = 0; i < 200; i++) { il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ldc_I4, i); il.Emit(OpCodes.Add); il.Emit(OpCodes.Starg_S, 0); }
            il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ret);
            sum += method.CreateDelegate<Func<int, int>>()(1);
        }
    }
    static int sum;
    static void Collect() { while (Oracle.oracle_scene_done() == 0) { GC.Collect(sum & 1); Thread.Sleep(1); } }
    static unsafe void Native() { while (Oracle.oracle_scene_done() == 0) for (nuint i = 1; i < 100; i++) NativeMemory.Free(NativeMemory.Alloc(i * 100)); }

    static void Work()
    {
        while (Oracle.oracle_scene_done() == 0) { Variety.Repeat(); Fib(16); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fib(int n) => n < 2 ? n : Fib(n - 1) + Fib(n - 2);
}
