// SPDX-License-Identifier: MIT
// A program that does everything once that the tests of the profiling API need: exceptions,
// a dynamic method, generics, nested types, threads. With "wait" it runs until its input ends, with
// "until FILE" until that file exists. With a third argument it prints that it waits, once all code of
// that wait has run.
using System;
using System.Reflection.Emit;
using System.Threading;

namespace Abi;

internal static class Program
{
    internal class Outer<T>
    {
        internal class Nested
        {
            public static string Name<U>() => typeof(T).Name + typeof(U).Name;
        }
    }

    private static int Throw(int depth) => depth == 0 ? throw new InvalidOperationException("once") : Throw(depth - 1) + 1;

    private static int Dynamic(int x)
    {
        var method = new DynamicMethod("AddSeven", typeof(int), new[] { typeof(int) });
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ldc_I4_7);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Ret);
        return ((Func<int, int>)method.CreateDelegate(typeof(Func<int, int>)))(x);
    }

    private static int Main(string[] args)
    {
        Console.WriteLine("started");
        var threads = new Thread[4];
        int caught = 0;
        for (int i = 0; i < threads.Length; i++)
        {
            threads[i] = new Thread(() =>
            {
                try { Throw(5); }
                catch (InvalidOperationException) { Interlocked.Increment(ref caught); }
            })
            { Name = "worker " + i };
            threads[i].Start();
        }
        foreach (Thread t in threads) t.Join();
        Console.WriteLine($"caught {caught} dynamic {Dynamic(35)} name {Outer<int>.Nested.Name<string>()}");
        if (args.Length > 0 && args[0] == "wait")
        {
            while (Console.In.ReadLine() != null) { }
        }
        if (args.Length > 1 && args[0] == "until")
        {
            for (int i = 0; i < 6000 && !System.IO.File.Exists(args[1]); i++)
            {
                Thread.Sleep(10);
                if (i == 1 && args.Length > 2) Console.WriteLine("waiting");
            }
        }
        GC.Collect();
        Console.WriteLine("finished");
        return 42;
    }
}
