// SPDX-License-Identifier: MIT
// The tour's part on what the runtime does between a call and its target: delegates,
// reflection, dispatch stubs, P/Invoke, code made at run time, threads, collections.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Linq.Expressions;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Runtime.Loader;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

namespace Proofs;

static unsafe partial class Variety
{
    // ---- Delegates ----
    delegate int OpenInstance(Leaf leaf, int n);
    class Leaf { internal int Value = 2; [MethodImpl(MethodImplOptions.NoInlining)] internal int Add(int n) { Keep(new object()); return Value + n; } internal virtual int Virt(int n) { Keep(new object()); return n; } }
    class Leaf2 : Leaf { internal override int Virt(int n) => base.Virt(n) + 1; }
    static int ClosedStatic(string s, int n) { Keep(s); return n; }
    static void Delegates()
    {
        int captured = 3;
        Func<int, int> lambda = n => { Keep(captured); return n + captured; };
        Func<int, int> all = lambda; all += new Leaf().Add; all += new Leaf2().Virt; all += n => { Down(2); return n; };
        Keep(all(4));
        var open = (OpenInstance)typeof(Leaf).GetMethod("Add", BindingFlags.NonPublic | BindingFlags.Instance).CreateDelegate(typeof(OpenInstance));
        Keep(open(new Leaf(), 5));
        var openVirtual = (OpenInstance)typeof(Leaf).GetMethod("Virt", BindingFlags.NonPublic | BindingFlags.Instance).CreateDelegate(typeof(OpenInstance));
        Keep(openVirtual(new Leaf2(), 5));
        var closed = (Func<int, int>)Delegate.CreateDelegate(typeof(Func<int, int>), "bound", typeof(Variety).GetMethod(nameof(ClosedStatic), BindingFlags.NonPublic | BindingFlags.Static));
        Keep(closed(1)); Keep(all.DynamicInvoke(2));
        delegate*<int, int> pointer = &Pointed; Keep(pointer(3));
        Func<object, object> generic = GenericTarget<object>; Keep(generic("g"));
        Func<string, string> generic2 = GenericTarget<string>; Keep(generic2("g"));
    }
    static int Pointed(int n) { Keep(new object()); return n; }
    static T GenericTarget<T>(T t) { Keep(new T[1]); return t; }

    // ---- Reflection ----
    public class Reflected { public int P { get; set; } public Reflected() { Keep(new object()); } public T M<T>(T t, ref int r) { Keep(new object()); Down(2); r++; return t; } }
    static void Reflections()
    {
        for (int i = 0; i < 4; i++)
        {
            object o = Activator.CreateInstance(typeof(Reflected)); Keep(Activator.CreateInstance<Reflected>());
            Keep(typeof(Reflected).GetConstructor(Type.EmptyTypes).Invoke(null));
            var m = typeof(Reflected).GetMethod("M"); Keep(m.MakeGenericMethod(typeof(string)).Invoke(o, new object[] { "s", 1 }));
            Keep(m.MakeGenericMethod(typeof(int)).Invoke(o, new object[] { 5, 1 }));
            typeof(Reflected).GetProperty("P").SetValue(o, i); Keep(typeof(Reflected).GetProperty("P").GetValue(o));
        }
        foreach (Attribute a in typeof(Reflected).Assembly.GetCustomAttributes()) Keep(a);
    }

    // ---- Interface and virtual dispatch: one, two and many targets at a call site ----
#if TRIMMED
    interface IVisit { object Visit(int n); }
    static object Default(this IVisit v, int n) => v.Visit(n);
#else
    interface IVisit { object Visit(int n); object Default(int n) { Keep(new object()); return Visit(n); } }
#endif
    class V0 : IVisit { public object Visit(int n) => Allocate(n); } class V1 : IVisit { public object Visit(int n) => Allocate(n + 1); }
    class V2 : IVisit { public object Visit(int n) => Allocate(n + 2); } class V3 : IVisit { public object Visit(int n) => Allocate(n + 3); public object Default(int n) => Allocate(n); }
    struct V4 : IVisit { public object Visit(int n) => Allocate(n + 4); }
    class V5<T> : IVisit { public object Visit(int n) { Keep(new T[1]); return Allocate(n); } }
    [MethodImpl(MethodImplOptions.NoInlining)] static object Allocate(int n) { object o = new int[n + 1]; Keep(o); return o; }
    [MethodImpl(MethodImplOptions.NoInlining)] static object CallSite(IVisit v, int n) => v.Visit(n);
    [MethodImpl(MethodImplOptions.NoInlining)] static object CallSite2(IVisit v, int n) => v.Default(n);
    static void Dispatch()
    {
        IVisit[] visits = { new V0(), new V1(), new V2(), new V3(), new V4(), new V5<string>(), new V5<object>(), new V5<int>() };
        for (int i = 0; i < 40; i++) { Keep(CallSite(visits[i % visits.Length], i)); Keep(CallSite2(visits[i % 3], 1)); }
        IEnumerable<object> covariant = new List<string> { "a", "b" }; foreach (object o in covariant) Keep(o);
        IComparer<string> contravariant = Comparer<object>.Create((a, b) => { Keep(a); return 0; }); Keep(contravariant.Compare("a", "b"));
#if !TRIMMED
        dynamic d = new Reflected(); d.P = 4; Keep(d.P + 1);
#endif
    }

    // ---- P/Invoke, with callbacks ----
    delegate int Compare(int* a, int* b);
    [DllImport("libc")] static extern void qsort(int* items, nuint count, nuint size, Compare compare);
    [DllImport("libc", EntryPoint = "qsort")] static extern void qsort_raw(int* items, nuint count, nuint size, delegate* unmanaged[Cdecl]<int*, int*, int> compare);
    [DllImport("libc", SetLastError = true, CharSet = CharSet.Ansi)] static extern int open(string path, int flags);
    [DllImport("libc")] static extern nint strlen([MarshalAs(UnmanagedType.LPStr)] string s);
    [DllImport("libc"), SuppressGCTransition] static extern int getpid();
    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })] static int CompareRaw(int* a, int* b) { Keep(new object()); Down(2); return *a - *b; }
    static int CompareManaged(int* a, int* b) { Keep(new object()); try { if (*a == 2) ThrowAt(2); } catch (Mine) { Keep("in callback"); } return *a - *b; }
    static void PInvokes()
    {
        int* items = stackalloc int[] { 3, 1, 2, 5 };
        qsort(items, 4, 4, CompareManaged);
        qsort_raw(items, 4, 4, &CompareRaw);
        int* outer = stackalloc int[] { 2, 1 };
        qsort(outer, 2, 4, (a, b) => { int* inner = stackalloc int[] { 9, 8, 7 }; qsort_raw(inner, 3, 4, &CompareRaw); return *a - *b; });
        Keep(open("/proc/self/nothing", 0) + Marshal.GetLastPInvokeError()); Keep(strlen("four")); Keep(getpid());
    }

    // ---- Methods without metadata ----
    static void DynamicMethods()
    {
        var method = new DynamicMethod("Made", typeof(object), new[] { typeof(int) }, typeof(Variety).Module, true);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(Variety).GetMethod(nameof(Allocate), BindingFlags.NonPublic | BindingFlags.Static));
        il.Emit(OpCodes.Ret);
        var made = method.CreateDelegate<Func<int, object>>(); Keep(made(3)); Keep(method.Invoke(null, new object[] { 2 }));
        var thrower = new DynamicMethod("MadeThrow", typeof(void), Type.EmptyTypes, typeof(Variety).Module, true);
        il = thrower.GetILGenerator();
        il.BeginExceptionBlock();
        il.Emit(OpCodes.Ldc_I4_2);
        il.Emit(OpCodes.Call, typeof(Variety).GetMethod(nameof(ThrowAt), BindingFlags.NonPublic | BindingFlags.Static));
        il.BeginFinallyBlock();
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Call, typeof(Variety).GetMethod(nameof(Down), BindingFlags.NonPublic | BindingFlags.Static));
        il.EndExceptionBlock();
        il.Emit(OpCodes.Ret);
        Try(thrower.CreateDelegate<Action>());
        var tail = new DynamicMethod("Tail", typeof(object), new[] { typeof(int) }, typeof(Variety).Module, true);
        il = tail.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Tailcall);
        il.Emit(OpCodes.Call, typeof(Variety).GetMethod(nameof(Allocate), BindingFlags.NonPublic | BindingFlags.Static));
        il.Emit(OpCodes.Ret);
        Keep(tail.CreateDelegate<Func<int, object>>()(2));
#if !TRIMMED
        ParameterExpression p = Expression.Parameter(typeof(int));
        Keep(Expression.Lambda<Func<int, object>>(Expression.Call(typeof(Variety).GetMethod(nameof(Allocate), BindingFlags.NonPublic | BindingFlags.Static), Expression.Add(p, Expression.Constant(1))), p).Compile()(4));
        Keep(new Regex("(a+)b\\1", RegexOptions.Compiled).Match("xaabaay").Value);
#endif
    }

    // ---- LINQ and iterators ----
    static IEnumerable<int> Count(int n) { for (int i = 0; i < n; i++) { Keep(new object()); yield return i; } }
    static void Linq()
    {
        Keep(Count(6).Where(i => i % 2 == 0).Select(i => i.ToString()).OrderBy(s => s).ToList());
        Keep(Count(6).GroupBy(i => i % 3).ToDictionary(g => g.Key, g => g.Sum()));
        Keep(Count(3).SelectMany(i => Count(i)).Zip(Count(4), (a, b) => a * b).Aggregate(0, (a, b) => a + b));
    }

    // ---- Code that goes away ----
    static void Collectible()
    {
        for (int i = 0; i < 2; i++) { Emitted(); Load(); }
        GC.Collect(); GC.WaitForPendingFinalizers(); GC.Collect();
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Emitted()
    {
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Made"), AssemblyBuilderAccess.RunAndCollect);
        TypeBuilder type = assembly.DefineDynamicModule("Made").DefineType("MadeType", TypeAttributes.Public);
        MethodBuilder method = type.DefineMethod("Run", MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(Func<int, object>), typeof(int) });
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ldarg_1); il.Emit(OpCodes.Callvirt, typeof(Func<int, object>).GetMethod("Invoke")); il.Emit(OpCodes.Pop);
        il.Emit(OpCodes.Ldarg_1); il.Emit(OpCodes.Ret);
        Type made = type.CreateType();
        Func<int, object> callback = n => { object o = Allocate(n); try { ThrowAt(n); } catch (Mine) { Down(2); } return o; };
        Keep(made.GetMethod("Run").Invoke(null, new object[] { callback, 3 }));
        ((Func<Func<int, object>, int, int>)made.GetMethod("Run").CreateDelegate(typeof(Func<Func<int, object>, int, int>)))(callback, 2);
        Keep(((System.Collections.IList)Activator.CreateInstance(typeof(List<>).MakeGenericType(made))).Count);
    }
#if TRIMMED
    static void Load() { }
#else
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Load()
    {
        var context = new AssemblyLoadContext("again", true);
        Assembly again = context.LoadFromAssemblyPath(typeof(Variety).Assembly.Location);
        Type type = again.GetType("Proofs.Visitor");
        Keep((int)type.GetMethod("Run").Invoke(null, new object[] { 4 }));
        context.Unload();
    }
#endif

    // ---- Threads ----
    static void Threads()
    {
        var threads = new List<Thread>();
        for (int i = 0; i < 4; i++) { int n = i; var t = new Thread(() => { Down(5 + n); Try(() => ThrowAt(n)); Keep(new object()); }); threads.Add(t); t.Start(); }
        foreach (Thread t in threads) t.Join();
        using var done = new ManualResetEventSlim();
        ThreadPool.QueueUserWorkItem(_ => { Down(3); done.Set(); }); done.Wait();
        using var timerDone = new ManualResetEventSlim(); using var timer = new Timer(_ => { Keep(new object()); timerDone.Set(); }, null, 1, -1); timerDone.Wait();
        Parallel.For(0, 8, i => Keep(new int[i]));
        new Thread(() => Keep(new Finalized())).Start();
    }
    class Finalized { ~Finalized() { Down(3); } }

#if !TRIMMED
    // ---- Library code ----
    public class Person { public string Name { get; set; } public int Age { get; set; } public List<Person> Children { get; set; } }
    static void Library()
    {
        string json = JsonSerializer.Serialize(new Person { Name = "a", Age = 3, Children = new() { new Person { Name = "b" } } });
        Keep(JsonSerializer.Deserialize<Person>(json)); Keep(string.Join(",", json.Split(',').Select(s => s.Trim())));
        Keep(new StringBuilder().AppendFormat("{0:x} {1}", 4, DateTime.UnixEpoch).ToString()); Keep(int.TryParse("x", out _));
    }
#endif

    // ---- Collections, from deep below and while finalizers wait ----
    static void Collections() { CollectDeep(20); for (int i = 0; i < 3; i++) { Make(); GC.Collect(); GC.WaitForPendingFinalizers(); } Keep(GC.GetAllocatedBytesForCurrentThread() > 0); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void CollectDeep(int n) { if (n == 0) GC.Collect(); else CollectDeep(n - 1); Zero = 0; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Make() { for (int i = 0; i < 10; i++) new Finalized().GetHashCode(); Keep(GC.AllocateArray<byte>(200000)); }
}

// Loaded a second time, in a collectible context.
public static class Visitor
{
    class Box<T> { internal T Value; }
    public static int Run(int n)
    {
        if (n == 0) { GC.Collect(); try { throw new InvalidOperationException(); } catch (InvalidOperationException) { return new List<Box<int>> { new() }.Count; } }
        return Run(n - 1) + 1;
    }
}
