// SPDX-License-Identifier: MIT
// The scenes of Known. "~" at a pattern's front: the leaf may be in the runtime or the library.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Proofs;

static unsafe partial class Known
{
    static volatile int zero;
    static object sink;
    static string nullString;
    static readonly object Gate = new();
    static readonly object[] Slots = new object[16];

    static IEnumerable<(string, string, Action)> Scenes()
    {
        yield return ("recursion", "Known.Spin;Known.Recurse{50};Known/<>c;~", () => Recurse(50));
        yield return ("deep", "Known.Spin;Known.Recurse{1500};Known/<>c;~", () => Recurse(1500));
        yield return ("generic", "Known.Spin;Known.Generic{4};Known/<>c;~", () => Generic<string, int>("a", 3));
        yield return ("generic-class", "Known.Spin;Known/Box`1.Nest{6};Known/<>c;~", () => Box<string>.Nest(5));
        yield return ("lambda", "Known.Spin;Known/<>c;~", () => Spin());
        yield return ("delegate", "Known.Spin;~;Known/<>c;~", () => { Action a = Spin; a += Spin; a(); zero = 0; });
        yield return ("iterator", "Known.Spin;Known/<Iterate>d__;~;Known.Iterating;~", Iterating);
#if !TRIMMED
        yield return ("async", "Known.Spin;Known/<Async>d__;~;Known.Async;Known/<>c;~", () => Async().Wait());
#endif
        yield return ("pinvoke-callback", "Known.Spin;Known.CompareSpin;[native];Known.Sorting;~", Sorting);
        yield return ("pinvoke-callback-deep", "Known.Spin;Known.CompareNested;[native];Known.SortingNested;Known.CompareOuter;[native];Known.Sorting2;~", Sorting2);
        yield return ("reflection", "Known.Spin;Known.Reflected;~;Known.Reflecting;~", Reflecting);
        yield return ("dynamic-method", "Known.Spin;~;Known.Dynamic;~", Dynamic);
        yield return ("static-constructor", "Known.Spin;Known/Slow..cctor;~;Known.Touching;~", Touching);
        yield return ("big-frame", "Known.Spin;Known.BigFrame;~", BigFrame);
        yield return ("arguments", "Known.Spin;Known.Arguments;Known/<>c;~", () => Arguments(default, 1, 2, 3, 4, 5, 6, 7, 8, 9));
        yield return ("explicit-tailcall", "Known.Spin;~;Known.Tailcalling;~", Tailcalling);
        yield return ("finally", "Known.Spin;Known.InFinally;Known.CatchAround;~", CatchAround);
        yield return ("catch", "Known.Spin;Known.InCatch;~", InCatch);
        yield return ("pool", "Known.Spin;Known/<>c;~", () => ThreadPool.UnsafeQueueUserWorkItem(_ => { Spin(); Oracle.oracle_scene_end(); }, null));
        yield return ("finalizer", "Known.Spin;Known/Finalized.Finalize;~", Finalizing);

        yield return ("sleep", "~;Known.Sleeping;~", Sleeping);
        yield return ("lock", "~;Known.Locking;~", Locking);
        yield return ("monitor-wait", "~;Known.Waiting;~", Waiting);
        yield return ("read", "~;Known.Reading;~", Reading);
        yield return ("usleep", "~;Known.Napping;~", Napping);

        yield return ("fib", "Known.Fib*;Known.FibLoop;~", FibLoop);
        yield return ("calls", "Known.Leaf?;Known.Middle?;Known.CallLoop;~", CallLoop);
        yield return ("dispatch", "~;Known/V?;Known.DispatchLoop;~", DispatchLoop);
        yield return ("generic-dispatch", "~;Known/G?;Known.GenericLoop;~", GenericLoop);
        yield return ("delegates", "~;Known.Target?;Known.DelegateLoop;~", DelegateLoop);
        yield return ("allocate", "~;Known.AllocateLoop;~", AllocateLoop);
        yield return ("barrier", "~;Known.BarrierLoop;~", BarrierLoop);
        yield return ("copy", "~;Known.CopyLoop;~", CopyLoop);
        yield return ("transitions", "~;Known.TransitionLoop;~", TransitionLoop);
        yield return ("callbacks", "~;Known.Compare?;~;Known.CallbackLoop;~", CallbackLoop);
        yield return ("gc", "~;Known.CollectLoop;~", CollectLoop);
        yield return ("jit-dynamic", "~;Known.JitLoop;~", JitLoop);
        yield return ("jit-generic", "~;Known/Deep`1.Down?;~;Known.InstantiateLoop;~", InstantiateLoop);
        yield return ("exceptions", "~;Known.ThrowDown*;~;Known.ThrowLoop;~", ThrowLoop);
        yield return ("null-references", "~;Known.NullLoop;~", NullLoop);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Recurse(int n) { if (n == 1) Spin(); else Recurse(n - 1); zero = 0; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Generic<T, U>(T t, int n) { if (n == 0) Spin(); else if (n % 2 == 0) Generic<T, U>(t, n - 1); else Generic<U, T>(default, n - 1); zero = 0; }
    class Box<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static object Nest(int n) { if (n == 0) Spin(); else Box<T>.Nest(n - 1); return typeof(T); }
    }
    static IEnumerable<int> Iterate() { Spin(); yield return 1; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Iterating() { foreach (int i in Iterate()) zero = i; }

    [DllImport("libc")] static extern void qsort(int* items, nuint count, nuint size, delegate* unmanaged[Cdecl]<int*, int*, int> compare);
    [DllImport("libc", EntryPoint = "qsort")] static extern void qsort_delegate(int* items, nuint count, nuint size, Compared compare);
    delegate int Compared(int* a, int* b);
    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })] static int CompareSpin(int* a, int* b) { Spin(); return *a - *b; }
    static int CompareNested(int* a, int* b) { Spin(); return *a - *b; }
    static int CompareOuter(int* a, int* b) { SortingNested(); return *a - *b; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sorting() { int* items = stackalloc int[] { 2, 1 }; qsort(items, 2, 4, &CompareSpin); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void SortingNested() { int* items = stackalloc int[] { 2, 1 }; qsort_delegate(items, 2, 4, CompareNested); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sorting2() { int* items = stackalloc int[] { 2, 1 }; qsort_delegate(items, 2, 4, CompareOuter); }

    internal static int Reflected(string s) { Spin(); return 1; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Reflecting() => sink = typeof(Known).GetMethod(nameof(Reflected), BindingFlags.NonPublic | BindingFlags.Static).Invoke(null, new object[] { "s" });

    static DynamicMethod Calling(MethodInfo target, bool tail)
    {
        var method = new DynamicMethod("Made", typeof(void), Type.EmptyTypes, typeof(Known).Module, true);
        ILGenerator il = method.GetILGenerator();
        if (tail) il.Emit(OpCodes.Tailcall);
        il.Emit(OpCodes.Call, target);
        if (!tail) il.Emit(OpCodes.Nop);
        il.Emit(OpCodes.Ret);
        return method;
    }
    static MethodInfo SpinMethod => typeof(Known).GetMethod(nameof(Spin), BindingFlags.NonPublic | BindingFlags.Static);
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Dynamic() { Calling(SpinMethod, false).CreateDelegate<Action>()(); zero = 0; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Tailcalling() { Calling(SpinMethod, true).CreateDelegate<Action>()(); zero = 0; }

    static class Slow { internal static readonly int Value; static Slow() { Spin(); Value = 1; } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Touching() => zero = Slow.Value;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void BigFrame() { Span<byte> span = stackalloc byte[60000 + zero]; span[zero] = 1; Spin(); sink = span[5] + span[zero]; }
    struct Wide { internal long A, B, C, D, E; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Arguments(Wide w, int a, double b, int c, int d, int e, int f, int g, int h, float i) { Spin(); return w.A + a + b + c + d + e + f + g + h + i; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CatchAround() { try { InFinally(); } catch (InvalidOperationException e) { sink = e; } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void InFinally() { try { ThrowDown(3); } finally { Spin(); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void InCatch() { try { ThrowDown(3); } catch (InvalidOperationException) { Spin(); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ThrowDown(int n) { if (n == 0) throw new InvalidOperationException(); ThrowDown(n - 1); zero = 0; }

    class Finalized { ~Finalized() { if (scene == "finalizer" && !stop) { Spin(); Oracle.oracle_scene_end(); } } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void MakeGarbage() { sink = new Finalized(); sink = null; }
    static void Finalizing() { MakeGarbage(); GC.Collect(); }

    // ---- Waiting ----
    static int* pipes;
    [DllImport("libc")] static extern int pipe(int* fds);
    [DllImport("libc")] static extern nint read(int fd, byte* buffer, nuint count);
    [DllImport("libc")] static extern nint write(int fd, byte* buffer, nuint count);
    [DllImport("libc")] static extern int usleep(uint us);
    [DllImport("libc")] static extern int getpid();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sleeping() { Oracle.oracle_scene_begin(scene, pattern); while (!stop) Thread.Sleep(50); }
    static readonly object Held = new();
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Locking()
    {
        var holder = new Thread(() => { lock (Held) { Volatile.Write(ref holding, 1); while (!stop) Thread.Sleep(1); } });
        holder.Start();
        while (Volatile.Read(ref holding) == 0) Thread.Yield();
        Oracle.oracle_scene_begin(scene, pattern);
        lock (Held) { zero = 0; }
    }
    static int holding;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Waiting() { Oracle.oracle_scene_begin(scene, pattern); lock (Gate) { while (!stop) Monitor.Wait(Gate); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Reading() { byte b; pipes = (int*)NativeMemory.Alloc((nuint)8); pipe(pipes); Oracle.oracle_scene_begin(scene, pattern); while (!stop) read(pipes[0], &b, 1); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Napping() { Oracle.oracle_scene_begin(scene, pattern); while (!stop) usleep(20000); }
    static void Release()
    {
        lock (Gate) Monitor.PulseAll(Gate);
        byte b = 0;
        if (pipes != null) write(pipes[1], &b, 1);
    }

    // ---- Running ----
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fib(int n) => n < 2 ? n : Fib(n - 1) + Fib(n - 2);
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FibLoop() { Oracle.oracle_scene_begin(scene, pattern); while (!stop) zero = Fib(15); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Leaf(long a, long b) => a ^ b;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Middle(long a) => Leaf(a, 3) + Leaf(a, 5);
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CallLoop() { Oracle.oracle_scene_begin(scene, pattern); long n = 0; while (!stop) n += Middle(n); zero = (int)n; }

    interface IV { int Go(int n); }
    class V0 : IV { public int Go(int n) => n; } class V1 : IV { public int Go(int n) => n + 1; } class V2 : IV { public int Go(int n) => n + 2; }
    class V3 : IV { public int Go(int n) => n ^ 3; } struct V4 : IV { public int Go(int n) => n + 4; } class V5 : V3 { }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void DispatchLoop()
    {
        IV[] all = { new V0(), new V1(), new V2(), new V3(), new V4(), new V5() };
        Oracle.oracle_scene_begin(scene, pattern);
        int n = 0;
        for (uint i = 0; !stop; i++) n += all[i % 6].Go(n);
        zero = n;
    }
    interface IG<T> { int Go(T t); }
    class G0<T> : IG<T> { [MethodImpl(MethodImplOptions.NoInlining)] public int Go(T t) => typeof(T) == typeof(string) ? 1 : 2; internal virtual int Gvm<U>(U u) => u is string ? 1 : 2; }
    class G1<T> : G0<T> { internal override int Gvm<U>(U u) => 3; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void GenericLoop()
    {
        IG<string> a = new G0<string>(), b = new G1<string>();
        var c = new G0<object>(); G0<object> d = new G1<object>();
        Oracle.oracle_scene_begin(scene, pattern);
        int n = 0;
        while (!stop) n += a.Go("") + b.Go("") + c.Gvm("") + d.Gvm(3) + c.Gvm(c);
        zero = n;
    }
    static int Target(int n) => n + 1;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void DelegateLoop()
    {
        Func<int, int> f = Target, g = Target; g += Target;
        delegate*<int, int> p = &Target;
        Oracle.oracle_scene_begin(scene, pattern);
        int n = 0;
        while (!stop) n += f(n) + g(n) + p(n);
        zero = n;
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AllocateLoop() { Oracle.oracle_scene_begin(scene, pattern); int n = 0; while (!stop) { Slots[n & 15] = new byte[n++ & 4095]; Slots[n & 15] = new object(); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void BarrierLoop()
    {
        object[] strings = new string[4], objects = new object[4];
        Oracle.oracle_scene_begin(scene, pattern);
        for (uint i = 0; !stop; i++) { objects[i & 3] = scene; strings[i & 3] = scene; sink = objects[i & 3] as string; sink = (IComparable)sink; Array.Copy(objects, strings, 2); }
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CopyLoop() { byte[] a = new byte[100000], b = new byte[100000]; Oracle.oracle_scene_begin(scene, pattern); while (!stop) { Buffer.BlockCopy(a, 0, b, 0, a.Length); a.AsSpan().Fill(1); Array.Clear(b); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void TransitionLoop() { Oracle.oracle_scene_begin(scene, pattern); while (!stop) zero = getpid(); }
    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })] static int Compare(int* a, int* b) => *a - *b;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CallbackLoop()
    {
        int* items = stackalloc int[16];
        Oracle.oracle_scene_begin(scene, pattern);
        while (!stop) { for (int i = 0; i < 16; i++) items[i] = i * 7 % 16; qsort(items, 16, 4, &Compare); }
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CollectLoop() { Slots[0] = Enumerable.Range(0, 20000).Select(i => new object[] { i }).ToArray(); Oracle.oracle_scene_begin(scene, pattern); while (!stop) GC.Collect(); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void JitLoop()
    {
        Oracle.oracle_scene_begin(scene, pattern);
        while (!stop)
        {
            var method = new DynamicMethod("Made", typeof(int), new[] { typeof(int) }, typeof(Known).Module, true);
            ILGenerator il = method.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            for (int i = 0; i < 200; i++) { il.Emit(OpCodes.Ldc_I4, i); il.Emit(OpCodes.Add); }
            il.Emit(OpCodes.Ret);
            zero = method.CreateDelegate<Func<int, int>>()(1);
        }
    }
    class Deep<T> { [MethodImpl(MethodImplOptions.NoInlining)] internal static int Down(int n) => new List<T>(n).Capacity + typeof(T).GetHashCode(); }
    struct Wrap<T> { internal T Value; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void InstantiateLoop()
    {
        Oracle.oracle_scene_begin(scene, pattern);
        Type type = typeof(int);
        for (int n = 0; !stop; n++)
        {
            type = n % 60 == 0 ? typeof(int) : typeof(Wrap<>).MakeGenericType(type);
            sink = typeof(Deep<>).MakeGenericType(type).GetMethod("Down", BindingFlags.NonPublic | BindingFlags.Static).Invoke(null, new object[] { 3 });
        }
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ThrowLoop() { Oracle.oracle_scene_begin(scene, pattern); while (!stop) try { ThrowDown(6); } catch (InvalidOperationException) { zero = 1; } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NullLoop() { Oracle.oracle_scene_begin(scene, pattern); while (!stop) try { zero = nullString.Length; } catch (NullReferenceException) { zero = 1; } }
}
