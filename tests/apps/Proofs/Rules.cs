// SPDX-License-Identifier: MIT
// Targets for the deadlock rules: a thread inside malloc, inside the JIT, inside the GC, inside
// dlopen; threads that come and go; threads that walk each other. Each is a scene of rules.c.
using System;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Proofs;

static class Rules
{
    static volatile bool stop;
    static volatile int sink;
    static object keep;

    internal static void Run(string[] args)
    {
        var scenes = new (string, Action)[]
        {
            ("malloc", Oracle.oracle_allocate), ("jit", Compile), ("gc", Collect), ("dlopen", Oracle.oracle_load_slowly),
            ("mutual", Mutual), ("dying", () => { while (Oracle.oracle_scene_done() == 0 && held < 40000000) held++; }),
            ("forget", () => Deep(40)), ("churn", Churn),
        };
        foreach ((string name, Action action) in scenes)
        {
            if (args.Length > 0 && args[0] != name) continue;
            stop = false;
            Oracle.oracle_scene_prepare();
            var thread = new Thread(() => Target(name, action));
            thread.Start();
            while (Oracle.oracle_scene_done() == 0) Thread.Sleep(1);
            stop = true;
            Oracle.oracle_stop();
            thread.Join();
        }
    }
    static volatile int held;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Target(string name, Action action) { Oracle.oracle_scene_begin(name, ""); action(); sink = 0; }

    static void Compile()
    {
        while (!stop)
        {
            var method = new DynamicMethod("Made", typeof(int), new[] { typeof(int) }, typeof(Rules).Module, true);
            ILGenerator il = method.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            for (int i = 0; i < 300; i++) { il.Emit(OpCodes.Ldc_I4, i); il.Emit(OpCodes.Add); }
            il.Emit(OpCodes.Ret);
            sink = method.CreateDelegate<Func<int, int>>()(1);
        }
    }

    static void Collect()
    {
        var lists = new object[50000];
        for (int i = 0; i < lists.Length; i++) lists[i] = new object[] { i };
        keep = lists;
        while (!stop) GC.Collect();
        keep = null;
    }

    static void Mutual()
    {
        ulong first = Oracle.oracle_current_thread(), second = 0;
        bool finished = false;
        var other = new Thread(() =>
        {
            Volatile.Write(ref second, Oracle.oracle_current_thread());
            while (!stop) Oracle.oracle_walk_other(first);
            while (!Volatile.Read(ref finished)) Thread.Sleep(1);
        });
        other.Start();
        while (Volatile.Read(ref second) == 0) Thread.Yield();
        var collector = new Thread(() => { while (!stop) { GC.Collect(); Thread.Sleep(1); } });
        collector.Start();
        while (!stop) Oracle.oracle_walk_other(second);
        Volatile.Write(ref finished, true);  // a thread that has ended has another answer
        other.Join();
        collector.Join();
    }

    // A stack that stands still: a loop without a call, 40 frames deep.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Deep(int n) { if (n > 0) Deep(n - 1); else Spin(); sink = n; }
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static void Spin() { while (!stop) sink++; }

    // A thousand threads, some at a time, each alive for some hundred microseconds.
    static void Churn()
    {
        int made = 0;
        while (!stop || made < 1000)
        {
            var threads = new Thread[20];
            for (int i = 0; i < threads.Length; i++)
            {
                int n = i;
                threads[i] = new Thread(() => { Work(n * 100); keep = new object[n]; });
                threads[i].Start();
            }
            foreach (Thread t in threads) t.Join();
            made += threads.Length;
        }
        Console.WriteLine("churn: " + made + " threads");
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Work(int n) { for (int i = 0; i < n; i++) sink += i; if (n > 1000) Thread.Yield(); }
}
