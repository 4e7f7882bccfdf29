// SPDX-License-Identifier: MIT
// The tour's part on exceptions: finally, filter, catch, fault, nested, rethrown, thrown while
// another one is handled, from hardware, over native frames that managed code called through.
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Threading.Tasks;

namespace Proofs;

static partial class Variety
{
    class Mine : Exception
    {
        internal readonly int Level;
        internal Mine(int level) : base("level " + level) { Level = level; }
    }

    class Thrower
    {
        readonly int level;
        internal Thrower(int level) { this.level = level; }
        [MethodImpl(MethodImplOptions.NoInlining)] internal void Throw() => throw new Mine(level);
        public override string ToString() { try { Throw(); return "no"; } catch (Mine m) when (m.Level == level) { return "caught " + m.Level; } }
    }

    static void Exceptions()
    {
        Try(() => ThrowAt(0));
        Try(() => ThrowAt(40));
        Try(() => Finally(5));
        Try(() => Filter(5));
        Try(() => Rethrow(4));
        Try(() => ThrowInCatch(3));
        Try(() => ThrowInFinally(3));
        Try(() => ThrowInFilter());
        Try(() => CatchInFinally(3));
        Try(() => CatchInFilter(3));
        Try(() => CatchInStub(3));
        Try(() => HandleWhileHandling(4));
        Try(() => { object o = NullString.Length; Keep(o); });
        Try(() => Keep(1 / Zero));
        Try(() => Keep((string)(object)new List<int>()));
        Try(() => { int[] two = { 1, 2 }; Keep(two[Zero + 5]); });
        Try(() => typeof(Variety).GetMethod(nameof(ThrowAt), BindingFlags.NonPublic | BindingFlags.Static).Invoke(null, new object[] { 3 }));
        Try(() => GenericThrow<string>("a", 4));
        Try(() => GenericThrow(3, 4));
        Try(() => { try { ThrowAt(2); } catch (Exception e) { ExceptionDispatchInfo.Capture(e).Throw(); } });
        Try(() => { foreach (int i in ThrowingIterator(3)) Keep(i); });
        Try(() => { using (new Cleaner()) ThrowAt(3); });
        Try(() => Task.Run(() => ThrowAt(2)).GetAwaiter().GetResult());
        Keep(new Thrower(3).ToString());
        Try(Fault);
        Try(() => Activator.CreateInstance(typeof(BadConstructor)));
    }

    // Caught by native code: the runtime tells a profiler of no unwinding, so a shadow stack cannot
    // follow this.
    static void NativelyCaught()
    {
        Try(() => Static<int>.Touch());
        Try(() => Static<int>.Touch());
    }

    static class Static<T> { static readonly object Value = Fail(); static object Fail() { ThrowAt(1); return null; } internal static void Touch() => Keep(Value); }
    class BadConstructor { public BadConstructor() { ThrowAt(1); } }
    class Cleaner : IDisposable { public void Dispose() => Keep(new object()); }

    struct Sized
    {
        [MarshalAs(UnmanagedType.ByValArray, SizeConst = 4)] internal int[] Numbers;
    }

    // The IL stub that marshals the structure has a catch block of its own, and throws again.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CatchInStub(int n)
    {
        IntPtr memory = Marshal.AllocHGlobal(64);
        try { if (n == 0) Marshal.StructureToPtr(new Sized { Numbers = new int[2] }, memory, false); else CatchInStub(n - 1); }
        finally { Marshal.FreeHGlobal(memory); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Try(Action action) { try { action(); } catch (Exception e) { Keep(e.Message); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ThrowAt(int depth) { if (depth == 0) throw new Mine(depth); ThrowAt(depth - 1); Zero = 0; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Finally(int n) { try { if (n == 0) ThrowAt(2); else Finally(n - 1); } finally { Keep(new object()); Down(2); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Filter(int n) { try { if (n == 0) ThrowAt(1); else Filter(n - 1); } catch (Mine) when (Refuse(n)) { Keep(n); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Refuse(int n) { Keep(new object()); Down(3); return n == 4; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Rethrow(int n) { try { if (n == 0) ThrowAt(2); else Rethrow(n - 1); } catch (Mine m) { Keep(m.Level); throw; } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ThrowInCatch(int n) { try { if (n == 0) ThrowAt(2); else ThrowInCatch(n - 1); } catch (Exception e) { Keep(e); throw new InvalidOperationException("in catch", e); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ThrowInFinally(int n) { try { if (n == 0) ThrowAt(2); else ThrowInFinally(n - 1); } finally { ThrowAt(1); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ThrowInFilter() { try { ThrowAt(2); } catch (Exception) when (BadFilter()) { Keep(1); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool BadFilter() { ThrowAt(2); return true; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CatchInFinally(int n) { try { if (n == 0) ThrowAt(2); else CatchInFinally(n - 1); } finally { try { ThrowAt(2); } catch (Mine m) { Keep(m.Level); } } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CatchInFilter(int n) { try { if (n == 0) ThrowAt(2); else CatchInFilter(n - 1); } catch (Mine) when (InnerTry(n)) { Keep(n); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool InnerTry(int n) { try { ThrowAt(3); } catch (Mine m) { Keep(m.Level); } return n == 2; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void HandleWhileHandling(int n) { try { ThrowAt(1); } catch (Mine m) { Keep(m); if (n > 0) HandleWhileHandling(n - 1); else Down(5); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void GenericThrow<T>(T t, int n) { try { if (n == 0) ThrowAt(1); else GenericThrow(t, n - 1); } finally { Keep(new T[1]); } }
    static IEnumerable<int> ThrowingIterator(int n) { try { for (int i = 0; i < n; i++) yield return i; ThrowAt(1); } finally { Keep(new object()); } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Fault() { foreach (int i in ThrowingIterator(2)) { Keep(i); if (i == 1) ThrowAt(2); } }
}
