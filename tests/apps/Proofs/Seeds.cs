// SPDX-License-Identifier: MIT
// Threads that are in the runtime most of the time, each for a reason of its own: tests/oracle/rules/seeds.c holds
// them anywhere and seeds walks with what it reads. The names of the methods below tell it the reason.
using System;
using System.Collections.Generic;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Proofs;

static unsafe class Seeds
{
    [DllImport("libc")] static extern int usleep(uint microseconds);
    [DllImport("libc")] static extern int getppid();
    [DllImport("libc")] static extern void qsort(int* items, nuint count, nuint size, delegate* unmanaged<int*, int*, int> compare);

    static readonly object Lock = new();
    static object sink;
    static long sum;

    static bool Done => Oracle.oracle_scene_done() != 0;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Compile()
    {
        while (!Done)
        {
            var method = new DynamicMethod("compiled", typeof(int), new[] { typeof(int) });
            ILGenerator il = method.GetILGenerator();
            for (int i = 0; i < 300; i++) { il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ldc_I4, i); il.Emit(OpCodes.Add); il.Emit(OpCodes.Starg_S, 0); }
            il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ret);
            sum += method.CreateDelegate<Func<int, int>>()(1);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate()
    {
        while (!Done) Grow(20);
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Grow(int n)
    {
        sink = n % 3 == 0 ? new byte[30000] : n % 3 == 1 ? new List<string>(200) : Activator.CreateInstance(typeof(Exception));
        if (n > 0) Grow(n - 1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Contend()
    {
        while (!Done)
            for (int i = 0; i < 50; i++) lock (Lock) { sum += i; Thread.SpinWait(20); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CallNative()
    {
        int* items = stackalloc int[8];
        while (!Done)
        {
            for (int i = 0; i < 20; i++) sum += getppid();
            for (int i = 0; i < 8; i++) items[i] = i * 5 % 8;
            qsort(items, 8, 4, &Compare);
            usleep(1);
        }
    }
    [UnmanagedCallersOnly]
    static int Compare(int* a, int* b) { sink = new int[2]; return *a - *b; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw()
    {
        while (!Done)
            try { Fail(10); } catch (InvalidOperationException e) { sum += e.HResult; }
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Fail(int n)
    {
        if (n == 0) throw new InvalidOperationException();
        try { Fail(n - 1); } finally { sum++; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Cast()
    {
        object[] objects = { "s", 1, new List<int>(), new int[1], new Dictionary<string, object>() };
        while (!Done)
            for (int i = 0; i < 200; i++)
            {
                object o = objects[i % objects.Length];
                if (o is IEnumerable<int> items) sum += items.GetHashCode();
                if (o is IDictionary<string, object> map) sum += map.Count;
                objects[i % objects.Length] = o;
            }
    }

    internal static void Run()
    {
        Code.Run();
        var threads = new List<Thread>();
        foreach (ThreadStart job in new ThreadStart[] { Compile, Allocate, Contend, Contend, CallNative, Throw, Cast }) threads.Add(new Thread(job));
        foreach (Thread thread in threads) thread.Start();
        foreach (Thread thread in threads) thread.Join();
    }
}
