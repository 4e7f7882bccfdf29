// SPDX-License-Identifier: MIT
// The tour's part on exceptions in hard places: hardware faults in a leaf's first instruction, in the
// runtime's own helpers, in filters and handlers; across P/Invoke and back; in dynamic methods and
// generic code; nested deeply; from a wait.
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Proofs;

static partial class Variety
{
    class Node { internal int Value; internal object Next; internal virtual int Virt() => Value; }
    interface ICallee { int Call(); }
    struct Pod { internal long A, B; }
    static Node NoNode;
    static ICallee NoCallee;
    static Action NoAction;
    static int[] NoArray;

    static void Faults()
    {
        Try(() => Keep(FirstInstruction(NoNode)));
        Try(() => Store(NoNode, "x"));
        Try(() => Keep(NoCallee.Call()));
        Try(() => Keep(NoNode.Virt()));
        Try(() => NoAction());
        Try(() => Keep(NoArray[Zero]));
        Try(() => Keep(ByReference(ref NoNode.Value)));
        Try(() => { lock (NoNode) Keep(1); });
        Try(() => Keep(Divide(7, Zero)));
        Try(() => Keep(7L % Zero));
        Try(() => Keep(checked(int.MaxValue + FirstInstruction(new Node { Value = 1 }))));
        Try(() => Keep(new int[Zero - 1]));
        Try(() => Keep((string)(object)new Node()));
        Try(() => Keep(Unbox(new Node())));
        Try(() => { object[] strings = new string[1]; strings[Zero] = new Node(); });
        Try(() => FaultInFilter(3));
        Try(() => FaultInFinally(3));
        Try(() => FaultInCatch(3));
        Try(() => DivideInFilter(2));
        Try(() => NestedFaults(8));
        Try(() => ThrowAt(300));
        Try(() => HandleWhileHandling(12));
        Try(() => FilterOfFilter(4));
        Try(TwoHandlers);
        Try(Goto);
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static int FirstInstruction(Node n) => n.Value;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Store(Node n, object o) => n.Next = o;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int ByReference(ref int n) => n + 1;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Divide(int a, int b) => a / b;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static Pod Unbox(object o) => (Pod)o;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FaultInFilter(int n) { try { if (n == 0) Keep(FirstInstruction(NoNode)); else FaultInFilter(n - 1); } catch (NullReferenceException) when (FirstInstruction(n == 2 ? new Node() : NoNode) == 0) { Keep(n); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FaultInFinally(int n) { try { if (n == 0) Divide(1, Zero); else FaultInFinally(n - 1); } finally { try { Keep(FirstInstruction(NoNode)); } catch (NullReferenceException) { Keep(Divide(n, 1)); } } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FaultInCatch(int n) { try { if (n == 0) Keep(NoArray[0]); else FaultInCatch(n - 1); } catch (Exception) { Keep(new object()); Store(NoNode, n); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void DivideInFilter(int n) { try { ThrowAt(n); } catch (Mine) when (Divide(1, Zero) == 1) { Keep(1); } catch (Mine) when (Divide(n, 1) == n) { Keep(2); throw; } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NestedFaults(int n) { try { Keep(FirstInstruction(NoNode)); } catch (NullReferenceException) { try { if (n > 0) NestedFaults(n - 1); else Divide(1, Zero); } finally { Down(1); } } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Deeper(int n) { try { if (n > 0) FilterOfFilter(n - 1); else ThrowAt(1); } catch (Mine) when (n % 2 == 0) { Keep(n); } return n == 4; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FilterOfFilter(int n) { try { ThrowAt(1); } catch (Mine) when (Deeper(n)) { Keep(n); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void TwoHandlers()
    {
        for (int i = 0; i < 3; i++)
        {
            try { try { if (i == 1) throw new Mine(i); Keep(NoArray[i]); } finally { Keep(i); } }
            catch (Mine m) when (m.Level == 1) { Keep(m); }
            catch (NullReferenceException) { Keep(i); if (i == 2) throw; }
        }
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Goto() { int n = 0; again: try { Keep(Divide(n, Zero)); } catch (DivideByZeroException) { if (n++ < 2) goto again; } finally { Keep(n); } }

    // ---- Over native frames ----
    [DllImport("libc")] static extern unsafe void qsort(int* array, nuint count, nuint size, delegate* unmanaged[Cdecl]<int*, int*, int> compare);
    [DllImport("no_such_library_at_all")] static extern int NoSuchFunction();

    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    static unsafe int CompareAndCatch(int* a, int* b) { try { if (*a == 2) ThrowAt(2); Keep(FirstInstruction(*b == 3 ? NoNode : new Node())); } catch (Mine m) when (m.Level == 0) { Keep(m); } catch (NullReferenceException) { Keep(1); } finally { Down(1); } return *a - *b; }
    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    static unsafe int CompareNestedly(int* a, int* b) { try { SortCatching(1); ThrowAt(1); } catch (Mine) { Down(1); } return *a - *b; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static unsafe void SortCatching(int depth) { int* numbers = stackalloc int[] { 3, 2, 1 }; qsort(numbers, 3, 4, depth == 0 ? &CompareNestedly : &CompareAndCatch); }

    static void AcrossNative()
    {
        SortCatching(1); SortCatching(0);
        Try(() => { try { SortCatching(1); } finally { SortCatching(1); } ThrowAt(1); });
        Try(() => { try { ThrowAt(1); } catch (Mine) when (SortInFilter()) { Keep(1); } });
        Try(() => NoSuchFunction());
        Try(() => Marshal.ThrowExceptionForHR(unchecked((int)0x80070005)));
        Try(Interrupted);
    }
    static bool SortInFilter() { SortCatching(1); return true; }
    static void Interrupted()
    {
        Thread self = Thread.CurrentThread;
        self.Interrupt();
        try { Thread.Sleep(1000); } catch (ThreadInterruptedException e) { Keep(e.Message); throw; }
    }

    // ---- A fault block, which C# has no word for: it runs as a finally block does, but only when thrown through ----
    static Action faulting;
    static void FaultBlocks()
    {
        faulting ??= MakeFaultBlock();
        Try(faulting);
        Try(() => { try { faulting(); } catch (Mine) when (Refuse(1)) { Keep(1); } });
    }
    static Action MakeFaultBlock()
    {
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Faults"), AssemblyBuilderAccess.Run);
        TypeBuilder type = assembly.DefineDynamicModule("Faults").DefineType("Faulting", TypeAttributes.Public);
        MethodBuilder method = type.DefineMethod("Run", MethodAttributes.Public | MethodAttributes.Static, typeof(void), new[] { typeof(Action), typeof(Action) });
        ILGenerator il = method.GetILGenerator();
        MethodInfo invoke = typeof(Action).GetMethod("Invoke");
        il.BeginExceptionBlock();
        il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Callvirt, invoke);
        il.BeginFaultBlock();
        il.Emit(OpCodes.Ldarg_1); il.Emit(OpCodes.Callvirt, invoke);
        il.EndExceptionBlock();
        il.Emit(OpCodes.Ret);
        var run = (Action<Action, Action>)type.CreateType().GetMethod("Run").CreateDelegate(typeof(Action<Action, Action>));
        return () => run(() => ThrowAt(2), () => { Down(2); try { ThrowAt(1); } catch (Mine m) { Keep(m.Level); } });
    }

    // ---- Nobody catches it: the handler of last resort runs in the first pass, on top of everything ----
    [DllImport("libc", EntryPoint = "_exit")] static extern void ExitNow(int code);
    internal static void Unhandled()
    {
        AppDomain.CurrentDomain.UnhandledException += (sender, arguments) =>
        {
            Down(20);
            Exceptions();
            Console.Out.Flush();
            ExitNow(Oracle.oracle_finish());
        };
        var thread = new Thread(() => { try { Finally(4); } finally { Keep(1); } });
        thread.Start();
        thread.Join();
    }

    // ---- Methods without metadata, shared generic code, state machines ----
    static void EmittedHandlers()
    {
        var method = new DynamicMethod("handlers", typeof(int), new[] { typeof(int) }, typeof(Variety).Module, true);
        ILGenerator il = method.GetILGenerator();
        il.BeginExceptionBlock();
        il.BeginExceptionBlock();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(Variety).GetMethod(nameof(ThrowAt), System.Reflection.BindingFlags.NonPublic | System.Reflection.BindingFlags.Static));
        il.BeginFinallyBlock();
        il.Emit(OpCodes.Ldc_I4_2);
        il.Emit(OpCodes.Call, typeof(Variety).GetMethod(nameof(Down), System.Reflection.BindingFlags.NonPublic | System.Reflection.BindingFlags.Static));
        il.EndExceptionBlock();
        il.BeginExceptFilterBlock();
        il.Emit(OpCodes.Pop);
        il.Emit(OpCodes.Ldc_I4_2);
        il.Emit(OpCodes.Call, typeof(Variety).GetMethod(nameof(Down), System.Reflection.BindingFlags.NonPublic | System.Reflection.BindingFlags.Static));
        il.Emit(OpCodes.Ldc_I4_1);
        il.BeginCatchBlock(null);
        il.Emit(OpCodes.Pop);
        il.EndExceptionBlock();
        il.Emit(OpCodes.Ldc_I4_7); il.Emit(OpCodes.Ret);
        var run = method.CreateDelegate<Func<int, int>>();
        for (int i = 0; i < 3; i++) Keep(run(i));
        Try(() => new Guarded<string>().Run("a", 3)); Try(() => new Guarded<int>().Run(1, 3)); Try(() => new Guarded<object>().Run<object>(null, 3));
#if !TRIMMED
        Guard(3).GetAwaiter().GetResult();
#endif
    }

    class Guarded<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal void Run<U>(U u, int n) { try { if (n == 0) Keep(FirstInstruction(NoNode)); else Run(new KeyValuePair<T, U>(default, u).Value, n - 1); } catch (NullReferenceException) when (typeof(U) == typeof(int)) { Keep(u); } finally { Keep(new U[1]); } }
    }

#if !TRIMMED
    static async Task Guard(int n)
    {
        try { await Task.Yield(); if (n > 0) await Guard(n - 1); Keep(FirstInstruction(NoNode)); }
        catch (NullReferenceException) when (Refuse(4)) { await Task.Yield(); Keep(n); }
        finally { await Task.Yield(); Keep(new object()); }
    }
#endif
}
