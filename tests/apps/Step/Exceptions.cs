// SPDX-License-Identifier: MIT
// Exceptions: funclets with and without a throw, both passes, filters, nested ones, hardware ones.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;

namespace Step;

static class Exceptions
{
    internal static IEnumerable<Program.Scene> Scenes()
    {
        yield return new("exceptions: finally without a throw", () => Finally(3));
        yield return new("exceptions: caught in the same method", Same);
        yield return new("exceptions: caught further down", () => Deep(4));
        yield return new("exceptions: a filter", () => Filter(2));
        yield return new("exceptions: finally in the second pass", () => Passes(3));
        yield return new("exceptions: thrown again", Again);
        yield return new("exceptions: nested", Nested);
        yield return new("exceptions: null reference", NullReference);
        yield return new("exceptions: division by zero", () => Divide(0));
        yield return new("exceptions: of the runtime", () => Index(numbers, 9));
        yield return new("exceptions: through native code", Native);
    }

    static int sum;
    static readonly int[] numbers = new int[4];

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Finally(int n)
    {
        try { return n == 0 ? 1 : Finally(n - 1); }
        finally { sum += n; if (n == 1) Finally(0); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void Throw(string text) => throw new InvalidOperationException(text);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Same()
    {
        try { throw new InvalidOperationException(); }
        catch (InvalidOperationException) { sum++; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Deep(int n)
    {
        if (n == 0) Throw("deep");
        if (n < 4) return Deep(n - 1) + 1;
        try { return Deep(n - 1); }
        catch (InvalidOperationException e) { return Length(e); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static int Length(Exception e) => e.Message.Length;
    [MethodImpl(MethodImplOptions.NoInlining)] static bool Is(Exception e, int n) => e.Message.Length == n;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Filter(int n)
    {
        try
        {
            try { Throw("ab"); }
            catch (InvalidOperationException e) when (Is(e, n + 5)) { sum += 2; }
        }
        catch (InvalidOperationException e) when (Is(e, n)) { sum++; }
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Passes(int n)
    {
        try { Middle(n); }
        catch (Exception) { sum++; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Middle(int n)
    {
        try { if (n == 0) Throw("pass"); Middle(n - 1); }
        finally { sum += Length2(n); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static int Length2(int n) => n * 2;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Again()
    {
        try
        {
            try { Throw("again"); }
            catch (Exception) { sum++; throw; }
        }
        catch (Exception) { sum++; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Nested()
    {
        try { Throw("outer"); }
        catch (Exception)
        {
            try { Throw("inner"); }
            catch (Exception) { sum++; }
            finally { Same(); }
        }
    }

    class Node { internal Node Next; internal int Value; }
    static Node none;

    [MethodImpl(MethodImplOptions.NoInlining)] static int Read(Node node) => node.Next.Value;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NullReference()
    {
        try { sum += Read(none); }
        catch (NullReferenceException) { sum++; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Divide(int by)
    {
        try { sum += 10 / by; }
        catch (DivideByZeroException) { sum++; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Index(int[] array, int at)
    {
        try { sum += array[at]; }
        catch (IndexOutOfRangeException) { sum++; }
    }

    // A type loader's failure is a C++ exception first.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Native()
    {
        try { sum += Type.GetType("No.Such.Type, NoSuchAssembly", true).GetHashCode(); }
        catch (Exception) { sum++; }
    }
}
