// What tests/live/record/record.sh records: threads with names that burn CPU time in methods with names,
// one that sleeps, and code that dies. Arguments: the part to run, for how many milliseconds, and,
// optionally, the name of another sleeping thread. Returns 42.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Rec;

struct Pair
{
    public int A = 1, B = 2;
    public Pair() { }
}

class Box<T>
{
    long sum;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public long Churn<U>(T item, U[] many, ref int seed)
    {
        for (int i = 0; i < 200_000; i++)
        {
            seed = seed * 1664525 + 1013904223;
            sum += seed ^ many.Length;
        }
        return sum + (item is null ? 1 : 0);
    }

    public class Inner
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Spin(T item, int rounds)
        {
            int x = 1;
            for (int i = 0; i < rounds; i++) x = x * 31 + i;
            return x + (item is null ? 1 : 0);
        }
    }
}

static class Program
{
    static readonly Stopwatch clock = Stopwatch.StartNew();
    static long limit;
    static volatile int sink;

    static bool Running => clock.ElapsedMilliseconds < limit;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Hot()
    {
        int x = 1;
        for (int i = 0; i < 2_000_000; i++) x = x * 31 + i;
        sink = x;
    }

    static void BurnHot() { while (Running) Hot(); }

    static void BurnGeneric()
    {
        var shared = new Box<string>();
        var exact = new Box<Pair>();
        int seed = 1;
        while (Running)
        {
            shared.Churn("x", new[] { 1.5 }, ref seed);
            exact.Churn(default, new[] { "y" }, ref seed);
            sink = Box<long>.Inner.Spin(1, 100_000);
        }
    }

    static void Sleep() { while (Running) Thread.Sleep(20); }

    static void Throw()
    {
        while (Running)
        {
            try { Fail(20); }
            catch (InvalidOperationException) { sink++; }
        }
    }

    static void Fail(int depth)
    {
        if (depth == 0) throw new InvalidOperationException("no");
        Fail(depth - 1);
        sink++;
    }

    static void NullReferences()
    {
        object nothing = null!;
        while (Running)
        {
            try { sink = nothing.GetHashCode(); }
            catch (NullReferenceException) { sink++; }
        }
    }

    static void Allocate()
    {
        var keep = new Queue<byte[]>();
        while (Running)
        {
            keep.Enqueue(new byte[1000]);
            if (keep.Count > 10_000) keep.Dequeue();
        }
    }

    // Dynamic methods: made, used, forgotten.
    static void Emit()
    {
        for (int n = 0; Running; n++)
        {
            var method = new DynamicMethod("Emitted" + n % 7, typeof(int), new[] { typeof(int) });
            var il = method.GetILGenerator();
            var top = il.DefineLabel();
            il.DeclareLocal(typeof(int));
            il.Emit(OpCodes.Ldc_I4, 300_000);
            il.Emit(OpCodes.Stloc_0);
            il.MarkLabel(top);
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldc_I4, 31);
            il.Emit(OpCodes.Mul);
            il.Emit(OpCodes.Ldloc_0);
            il.Emit(OpCodes.Add);
            il.Emit(OpCodes.Starg_S, (byte)0);
            il.Emit(OpCodes.Ldloc_0);
            il.Emit(OpCodes.Ldc_I4_1);
            il.Emit(OpCodes.Sub);
            il.Emit(OpCodes.Dup);
            il.Emit(OpCodes.Stloc_0);
            il.Emit(OpCodes.Brtrue, top);
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ret);
            var call = method.CreateDelegate<Func<int, int>>();
            for (int i = 0; i < 5; i++) sink = call(i);
            if (n % 20 == 19) { GC.Collect(); GC.WaitForPendingFinalizers(); }
        }
    }

    static void ShortLived()
    {
        while (Running)
        {
            var thread = new Thread(Hot) { Name = "Brief" };
            thread.Start();
            thread.Join();
        }
    }

    [DllImport("libc", EntryPoint = "pthread_sigmask")]
    static extern int SetSignalMask(int how, ulong[] set, ulong[]? old);
    [DllImport("libc", EntryPoint = "execve")]
    static extern int Execute(string path, string?[] arguments, string?[] environment);

    // Blocks all signals but those of faults and the runtime's own (SIGRTMIN).
    static void BurnBlocked()
    {
        ulong[] set = new ulong[16];
        Array.Fill(set, ulong.MaxValue);
        foreach (int signal in new[] { 4, 5, 6, 7, 8, 11, 34 }) set[0] &= ~(1ul << (signal - 1));
        _ = SetSignalMask(0, set, null);
        BurnHot();
    }

    // What the process becomes.
    static string next = "exit 7";

    // exec: the process becomes another program while signals may be pending for this thread.
    static void Leave()
    {
        long end = clock.ElapsedMilliseconds + 300;
        while (clock.ElapsedMilliseconds < end) Hot();
        _ = Execute("/bin/sh", ["sh", "-c", next, null], [null]);
    }

    static int Main(string[] args)
    {
        limit = args.Length > 1 ? int.Parse(args[1]) : 1000;
        var all = new List<Thread>();
        void Add(string name, ThreadStart body)
        {
            var thread = new Thread(body) { Name = name, IsBackground = true };
            all.Add(thread);
        }
        switch (args.Length > 0 ? args[0] : "hot")
        {
            case "hot":
                Add("Hot worker", BurnHot);
                break;
            case "names":
                Add("Hot worker", BurnHot);
                Add("Generisch-Ü", BurnGeneric);
                Add("Sleeper", Sleep);
                Add("Ein Schläfer, der länger heißt", Sleep);
                break;
            case "rough":
                Add("Thrower", Throw);
                Add("Null", NullReferences);
                Add("Allocator", Allocate);
                Add("Breeder", ShortLived);
                break;
            case "dying":
                Add("Emitter", Emit);
                Add("Emitter 2", Emit);
                break;
            case "blocked":
                Add("Hot worker", BurnHot);
                Add("Blocked", BurnBlocked);
                break;
            case "exec-long":
                next = "sleep 1; exit 7";
                goto case "exec";
            case "exec":
                for (int i = 0; i < 2; i++) Add("Hot worker", BurnHot);
                Add("Leaver", Leave);
                limit = long.MaxValue;
                break;
            case "exit":
                new Thread(BurnHot) { Name = "Hot worker", IsBackground = true }.Start();
                Thread.Sleep((int)limit);
                Environment.Exit(42);
                break;
        }
        if (args.Length > 2) Add(args[2], Sleep);
        foreach (var thread in all) thread.Start();
        foreach (var thread in all) thread.Join();
        Console.WriteLine("done");
        return 42;
    }
}
