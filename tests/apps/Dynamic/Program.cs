// SPDX-License-Identifier: MIT
// Dynamic KIND DEPTH: one thread that works at the end of DEPTH frames of code that can die, over and over.
// For each line on its standard input it prints how much that thread has done and the CPU time that it has
// used, in nanoseconds: progress per CPU time shows what a profiler costs. Ends with its input, with 42.
//
//   method       a DynamicMethod that calls itself
//   methods      DEPTH DynamicMethods, each of which calls the next
//   native       a DynamicMethod that calls itself; the work is done in the C library
//   collectible  a method of a collectible assembly that calls itself
//   expression   a compiled expression tree that calls itself
//   regex        a compiled regular expression; DEPTH is the length of its input
using System.Linq.Expressions;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text.RegularExpressions;

public static unsafe class Program
{
    [DllImport("libc")]
    static extern int gettid();

    [DllImport("libc")]
    static extern void* memset(void* to, int value, nuint count);

    static long s_done;
    static int s_sink;
    static byte* s_block = (byte*)NativeMemory.AllocZeroed(1 << 16);

    // Some 2 ms, so that most of the time is spent below all frames.
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Work()
    {
        int x = s_sink | 1;
        for (int i = 0; i < 20; i++)
        {
            for (int k = 0; k < 50000; k++) x = x * 1664525 + 1013904223;
            Volatile.Write(ref s_done, s_done + 1);
        }
        s_sink = x;
        return 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int NativeWork()
    {
        for (int i = 0; i < 20; i++)
        {
            for (int k = 0; k < 50; k++) memset(s_block, k, 1 << 16);
            Volatile.Write(ref s_done, s_done + 1);
        }
        return 1;
    }

    static MethodInfo Own(string name) => typeof(Program).GetMethod(name)!;

    static void EmitRecursion(ILGenerator il, MethodInfo self, MethodInfo leaf)
    {
        Label deeper = il.DefineLabel();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Brtrue, deeper);
        il.Emit(OpCodes.Call, leaf);
        il.Emit(OpCodes.Ret);
        il.MarkLabel(deeper);
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Sub);
        il.Emit(OpCodes.Call, self);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Add);  // after the call, so that it is no tail call
        il.Emit(OpCodes.Ret);
    }

    static Func<int, int> Method(MethodInfo leaf)
    {
        var method = new DynamicMethod("Descend", typeof(int), [typeof(int)], typeof(Program).Module, true);
        EmitRecursion(method.GetILGenerator(), method, leaf);
        return method.CreateDelegate<Func<int, int>>();
    }

    static Func<int, int> Methods(int depth)
    {
        Func<int, int> next = _ => Work();
        for (int i = 0; i < depth; i++)
        {
            var method = new DynamicMethod("Step" + i, typeof(int), [typeof(Func<int, int>), typeof(int)],
                typeof(Program).Module, true);
            ILGenerator il = method.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldarg_1);
            il.Emit(OpCodes.Callvirt, typeof(Func<int, int>).GetMethod("Invoke")!);
            il.Emit(OpCodes.Ldc_I4_1);
            il.Emit(OpCodes.Add);
            il.Emit(OpCodes.Ret);
            next = method.CreateDelegate<Func<int, int>>(next);
        }
        return next;
    }

    static Func<int, int> Collectible()
    {
        var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Gone"), AssemblyBuilderAccess.RunAndCollect);
        TypeBuilder type = assembly.DefineDynamicModule("Gone").DefineType("Type", TypeAttributes.Public);
        MethodBuilder method = type.DefineMethod("Descend", MethodAttributes.Public | MethodAttributes.Static,
            typeof(int), [typeof(int)]);
        EmitRecursion(method.GetILGenerator(), method, Own(nameof(Work)));
        return type.CreateType().GetMethod("Descend")!.CreateDelegate<Func<int, int>>();
    }

    static Func<int, int> Compiled()
    {
        ParameterExpression self = Expression.Variable(typeof(Func<int, int>)), n = Expression.Parameter(typeof(int));
        var body = Expression.Lambda<Func<int, int>>(Expression.Condition(
            Expression.Equal(n, Expression.Constant(0)), Expression.Call(Own(nameof(Work))),
            Expression.Add(Expression.Invoke(self, Expression.Subtract(n, Expression.Constant(1))), Expression.Constant(1))), n);
        return Expression.Lambda<Func<Func<int, int>>>(
            Expression.Block([self], Expression.Assign(self, body), self)).Compile()();
    }

    static Func<int, int> Matching(int length)
    {
        var regex = new Regex("^(?:a|aa|(?:b|c)*d)*$", RegexOptions.Compiled);
        string input = new string('a', Math.Min(length, 26)) + "!";
        return _ =>
        {
            if (regex.IsMatch(input)) throw new InvalidOperationException();
            Volatile.Write(ref s_done, s_done + 1);
            return 0;
        };
    }

    static string CpuTime(int tid) => File.ReadAllText($"/proc/self/task/{tid}/schedstat").Split(' ')[0];

    static int Main(string[] args)
    {
        int depth = int.Parse(args[1]);
        Func<int, int> descend = args[0] switch
        {
            "method" => Method(Own(nameof(Work))),
            "methods" => Methods(depth),
            "native" => Method(Own(nameof(NativeWork))),
            "collectible" => Collectible(),
            "expression" => Compiled(),
            "regex" => Matching(depth),
            _ => throw new ArgumentException(args[0]),
        };
        int tid = 0;
        bool over = false;
        var worker = new Thread(() =>
        {
            descend(depth);
            Volatile.Write(ref tid, gettid());
            while (!Volatile.Read(ref over)) descend(depth);
        }, 16 << 20) { Name = "worker" };
        worker.Start();
        while (Volatile.Read(ref tid) == 0) Thread.Sleep(1);
        while (Console.ReadLine() is not null)
            Console.WriteLine($"{Volatile.Read(ref s_done)} {CpuTime(tid)}");
        Volatile.Write(ref over, true);
        worker.Join();
        return 42;
    }
}
