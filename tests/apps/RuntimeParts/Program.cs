// SPDX-License-Identifier: MIT
// Makes the runtime work, one thing at a time, each in a method of that name, until all have had
// their share of CPU time: the classes of the runtime's frames below a method must fit.
using System;
using System.Globalization;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;

namespace RuntimeParts;

class Node { public Node Left = null!, Right = null!; public int Value; }
class Pair<A, B> { public A First = default!; public B Second = default!; }

static class Program
{
    static Node root = Tree(15);
    static object kept = null!;

    static Node Tree(int depth) =>
        depth == 0 ? new Node() : new Node { Left = Tree(depth - 1), Right = Tree(depth - 1), Value = depth };

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Collects() => GC.Collect(2, GCCollectionMode.Forced, blocking: true);

    // Large enough for the collector's slow path each time.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocates()
    {
        for (int i = 0; i < 200; i++) kept = new byte[9000];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throws(int i)
    {
        try { Deeper(i, 5); } catch (InvalidOperationException) { }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Deeper(int i, int depth)
    {
        if (depth == 0) throw new InvalidOperationException();
        return Deeper(i, depth - 1) + i;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Compiles(int i)
    {
        var method = new DynamicMethod("dynamic" + i, typeof(int), [typeof(int)]);
        var il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        for (int n = 0; n < 300; n++)
        {
            il.Emit(OpCodes.Ldc_I4, n * i);
            il.Emit(n % 2 == 0 ? OpCodes.Add : OpCodes.Xor);
        }
        il.Emit(OpCodes.Ret);
        Prepares(method.CreateDelegate<Func<int, int>>());
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Prepares(Func<int, int> method) => method(1);

    static Type type = typeof(int);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Loads(int i)
    {
        if (i % 100 == 0) type = typeof(int);
        type = typeof(Pair<,>).MakeGenericType(i % 2 == 0 ? typeof(string) : typeof(long), type);
        if (i % 7 == 0) type = type.MakeArrayType();
    }

    // ARGS: seconds of CPU time for each.
    static void Main(string[] args)
    {
        double each = double.Parse(args[0], CultureInfo.InvariantCulture);
        Action<int>[] parts = [_ => Collects(), _ => Allocates(), Throws, Compiles, Loads];
        foreach (var part in parts)
        {
            var from = Environment.CpuUsage.TotalTime;
            for (int i = 0; (Environment.CpuUsage.TotalTime - from).TotalSeconds < each; i++)
                for (int n = 0; n < 20; n++) part(20 * i + n);
        }
        GC.KeepAlive(root);
    }
}
