// SPDX-License-Identifier: MIT
// A tour of what a managed stack can look like: every part runs a few times, so that the profiler's
// callbacks fire with as many kinds of frames below them as the language and the runtime have.
// Deterministic: no clock, no random numbers.
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

static partial class Variety
{
    static readonly List<object> Sink = new();
    static volatile int Zero;
    static string NullString;

    internal static void Run(string[] args)
    {
        string only = args.Length > 0 ? args[0] : null;
        int rounds = args.Length > 1 ? int.Parse(args[1]) : 2;
        var parts = new (string, Action)[]
        {
            ("calls", Calls), ("generics", Generics), ("exceptions", Exceptions), ("natively-caught", NativelyCaught), ("faults", Faults), ("across-native", AcrossNative), ("emitted-handlers", EmittedHandlers), ("fault-blocks", FaultBlocks),
            ("delegates", Delegates), ("reflection", Reflections), ("dispatch", Dispatch), ("pinvoke", PInvokes),
            ("dynamic", DynamicMethods), ("linq", Linq), ("collectible", Collectible), ("threads", Threads),
            ("gc", Collections),
#if !TRIMMED // a framework without what the program that it was made for does not use
            ("async", Asynchronous), ("library", Library),
#endif
        };
        for (int round = 0; round < rounds; round++)
            foreach ((string name, Action part) in parts)
                if (only == null || only == "all" || only == name) part();
        if (only == "unhandled")
        {
            while (Oracle.oracle_sync_ready() == 0) Thread.Sleep(10);
            Exceptions();
            Unhandled();
        }
        Console.WriteLine("variety: " + Sink.Count + " results");
    }

    // The parts that can run for ever, on several threads at a time.
    internal static void Repeat()
    {
        Calls(); Generics(); Exceptions(); Delegates(); Dispatch(); PInvokes(); Linq();
        lock (Sink) Sink.Clear();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Keep(object o)
    {
        lock (Sink) { if (Sink.Count < 100000) Sink.Add(o); }
    }

    // ---- Plain calls: deep, mutual, big frames, many arguments, structures by value ----
    struct Big { internal long A, B, C, D, E, F, G, H; }

    static void Calls()
    {
        Down(100);
        Even(41);
        Keep(Sum(new Big { A = 1, H = 2 }, 3, 4, 5, 6, 7, 8, 9, 1.5, 2.5f, "x"));
        Span<byte> span = stackalloc byte[20000];
        Keep(BigFrame(span));
        Keep(LongLoop(200000));
        Keep(new Thrower(0).ToString() + Lazy.Value);
    }

    static class Lazy { internal static readonly string Value = Make(); static string Make() { Keep(new object()); return "made"; } }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Down(int n) { if (n == 0) Keep(new object()); else Down(n - 1); Zero = 0; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Even(int n) { if (n == 0) { Keep(new int[3]); return true; } return !Odd(n - 1); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Odd(int n) { if (n == 0) return false; return !Even(n - 1); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static string Sum(Big big, int a, long b, short c, byte d, uint e, ulong f, int g, double h, float i, string s)
        => s + (big.A + big.H + a + b + c + d + e + (long)f + g + h + i);
    [MethodImpl(MethodImplOptions.NoInlining)]
    static object BigFrame(Span<byte> span) { Span<long> more = stackalloc long[3000]; more[Zero] = span[5]; return more[0]; }
    static object LongLoop(int n)
    {
        // Long enough for on-stack replacement of the unoptimised code.
        long sum = 0;
        for (int i = 0; i < n; i++) { sum += i; if (i % 40000 == 0) Keep(new object()); }
        return sum;
    }

    // ---- Generics: shared and exact code, generic virtual methods, constraints ----
    abstract class Shape { internal abstract T Make<T>(T t, int depth); }
    class Round : Shape { internal override T Make<T>(T t, int depth) { if (depth == 0) { Keep(new T[2]); return t; } return Make(t, depth - 1); } }
    class Pair<A, B>
    {
        internal A First; internal B Second;
        [MethodImpl(MethodImplOptions.NoInlining)] internal Pair<B, A> Swap() { Keep(typeof(A)); return new Pair<B, A> { First = Second, Second = First }; }
        [MethodImpl(MethodImplOptions.NoInlining)] internal static object Nest(int depth) => depth == 0 ? new Pair<A, B>() : Pair<B, A>.Nest(depth - 1);
        [MethodImpl(MethodImplOptions.NoInlining)] internal C Pass<C>(Func<Pair<A, B>, C> f) => f(this);
    }
#if TRIMMED
    interface IMaker<T> { T Make(); }
#else
    interface IMaker<T> { T Make(); static abstract string Name(); }
#endif
    struct IntMaker : IMaker<int> { public int Make() { Keep(new object()); return 1; } public static string Name() => "int" + new string('x', 2); }
    struct StringMaker : IMaker<string> { public string Make() => new string('y', 3); public static string Name() => "string"; }

    static void Generics()
    {
        Shape shape = new Round();
        shape.Make("s", 4); shape.Make(3, 4); shape.Make(new Big(), 2); shape.Make<object>(null, 2);
        Keep(new Pair<string, int>().Swap().Swap());
        Keep(new Pair<string, object>().Swap());
        Keep(Pair<string, List<int>>.Nest(5)); Keep(Pair<int, double>.Nest(5));
        Keep(new Pair<string, int>().Pass(p => p.Swap())); Keep(new Pair<object, string>().Pass(p => 7));
        Keep(UseMaker<IntMaker, int>(default)); Keep(UseMaker<StringMaker, string>(default));
        var dictionary = new Dictionary<Big, string>(new BigComparer());
        for (int i = 0; i < 5; i++) dictionary[new Big { A = i }] = "v" + i;
        Keep(dictionary.Count);
        var list = new List<string> { "b", "c", "a" }; list.Sort((x, y) => { Keep(x); return string.CompareOrdinal(x, y); }); Keep(list);
    }

    class BigComparer : IEqualityComparer<Big>
    {
        public bool Equals(Big x, Big y) => x.A == y.A;
        public int GetHashCode(Big b) { Keep(b); return (int)b.A; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
#if TRIMMED
    static object UseMaker<M, T>(M maker) where M : IMaker<T> => maker.Make();
#else
    static object UseMaker<M, T>(M maker) where M : IMaker<T> => M.Name() + maker.Make();
#endif

#if !TRIMMED
    // ---- Async ----
    static void Asynchronous()
    {
        AsyncDown(5).GetAwaiter().GetResult();
        Keep(AsyncValue(3).AsTask().GetAwaiter().GetResult());
        try { AsyncThrow(3).GetAwaiter().GetResult(); } catch (Mine m) { Keep(m.Level); }
        Task.WhenAll(Enumerable.Range(0, 4).Select(i => Task.Run(() => AsyncDown(i)))).GetAwaiter().GetResult();
        AsyncEnumerate().GetAwaiter().GetResult();
    }
    static async Task AsyncDown(int n) { await Task.Yield(); if (n > 0) await AsyncDown(n - 1); else Down(3); Keep(new object()); }
    static async ValueTask<int> AsyncValue(int n) { if (n == 0) { await Task.Yield(); return 1; } return 1 + await AsyncValue(n - 1); }
    static async Task AsyncThrow(int n) { try { if (n == 0) { await Task.Yield(); ThrowAt(2); } else await AsyncThrow(n - 1); } finally { Keep(new object()); await Task.Yield(); } }
    static async Task AsyncEnumerate() { await foreach (int i in AsyncIterator()) Keep(i); }
    static async IAsyncEnumerable<int> AsyncIterator() { for (int i = 0; i < 3; i++) { await Task.Yield(); yield return i; } }
#endif
}
