// SPDX-License-Identifier: MIT
// Methods whose hot line is known: it ends in "// hot:" and the method's name as a recording has it.
// Everything else in such a method takes too little time for a sample. The hot line includes its loop,
// so that the loop's counter is not on another line. At the beginning of a line IL's evaluation stack is
// empty (the compiler keeps locals there): optimized code has no other line boundaries. Argument: milliseconds of
// CPU time for each of them: on a busy machine there are as many samples as on an idle one.
using System.Runtime.CompilerServices;

namespace Lines;

static class Program
{
    static volatile int sink;
    static object? nothing = Environment.GetEnvironmentVariable("LINES_SOMETHING");

    static int Main(string[] args)
    {
        long each = args.Length > 0 ? long.Parse(args[0]) : 500;
        Action[] all =
        [
            Loop, Unoptimized, Inlined, Caller, InFinally, InCatch, InFilter, () => Box<string>.Generic("x"),
            () => Box<long>.Generic(1), () => Async().Wait(), () => sink = Iterator().Last(),
            () => Array.ForEach([1, 2, 3], Lambda), Elsewhere.Mapped,
            () => Faulting(Deref), () => Faulting(First),
        ];
        foreach (Action one in all)
        {
            TimeSpan begin = Environment.CpuUsage.TotalTime;
            do one(); while ((Environment.CpuUsage.TotalTime - begin).TotalMilliseconds < each);
        }
        return 42;
    }

    // Called many times and long each time: tier 0, on-stack replacement, tier 1.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Loop()
    {
        int x = sink + 1, i = 0;
        if (nothing != null)
            throw new InvalidOperationException("never");
        while (i++ < 5_000_000) x = x * 31 + i; // hot: Lines.Program.Loop
        if (nothing != null)
            x = 3;
        sink = x;
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static void Unoptimized()
    {
        int x = sink, i = 0;
        x = x + 1;
        while (i++ < 20_000_000) x = x * 31 + i; // hot: Lines.Program.Unoptimized
        sink = x;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static int Inner(int x)
    {
        int i = 0;
        while (i++ < 1_000_000)
            x = x * 31 + i;
        return x;
    }

    // The callee's code is part of this method; its time is the call's.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Inlined()
    {
        Nop();
        sink = Inner(sink); // hot: Lines.Program.Inlined
        Nop();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Slow()
    {
        int x = sink, i = 0;
        while (i++ < 20_000_000) x = x * 31 + i;
        sink = x;
    }

    // The return address is on the next line already.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Caller()
    {
        Nop();
        Slow(); // hot: Lines.Program.Caller
        Nop();
        Nop();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Nop() { }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void InFinally()
    {
        int x = sink, i = 0;
        try
        {
            Nop();
        }
        finally
        {
            Nop();
            while (i++ < 20_000_000) x = x * 31 + i; // hot: Lines.Program.InFinally
            Nop();
        }
        sink = x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void InCatch()
    {
        int x = sink, i = 0;
        try
        {
            Throw();
        }
        catch (InvalidOperationException)
        {
            Nop();
            while (i++ < 20_000_000) x = x * 31 + i; // hot: Lines.Program.InCatch
            Nop();
        }
        sink = x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw() => throw new InvalidOperationException("caught");

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void InFilter()
    {
        int x = sink, i = 0;
        try
        {
            Throw();
        }
        catch (InvalidOperationException)
            when ((x = Inner(Inner(Inner(Inner(Inner(Inner(x))))))) != i) // hot: Lines.Program.InFilter
        {
            Nop();
        }
        sink = x;
    }

    static class Box<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Generic(T item)
        {
            int x = sink, i = 0;
            if (item == null)
                throw new ArgumentNullException(nameof(item));
            while (i++ < 20_000_000) x = x * 31 + i; // hot: Lines.Program.Box<.*>.Generic
            sink = x;
        }
    }

    static async Task Async()
    {
        int x = sink, i = 0;
        await Task.Yield();
        x++;
        while (i++ < 20_000_000) x = x * 31 + i; // hot: Lines.Program.Async
        await Task.Yield();
        sink = x;
    }

    static IEnumerable<int> Iterator()
    {
        int x = sink, i = 0;
        yield return 1;
        while (i++ < 20_000_000) x = x * 31 + i; // hot: Lines.Program.Iterator
        yield return x;
        x++;
        yield return x;
    }

    static readonly Action<int> Lambda = static y =>
    {
        int x = y, i = 0;
        x += sink;
        while (i++ < 20_000_000) x = x * 31 + i; // hot: static.*Lines.Program.lambda#0
        sink = x;
    };

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Faulting(Func<Node?, int> method)
    {
        try
        {
            sink = method(nothing as Node);
        }
        catch (NullReferenceException)
        {
            sink = 2;
        }
    }

    class Node { public int Value = 1; }

    // During the exception the method's ip is that of the fault: the previous line must not be
    // shown, though the ip is its end.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Deref(Node? node)
    {
        sink = 1;
        sink = node!.Value; // hot: Lines.Program.Deref
        sink = 2;
        return 3;
    }

    // The fault is at the method's first instruction.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int First(Node? node) => node!.Value; // hot: Lines.Program.First
}
