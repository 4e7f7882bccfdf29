// SPDX-License-Identifier: MIT
// Nested types of one name: each method allocates objects, or throws exceptions, of one type only. Prints them,
// "truth MODE METHOD TYPE", and for exceptions how many. Returns 0.
// Arguments: rounds, each of which also makes collectible types and lets them be unloaded; or "again": until it is killed.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;

namespace Nested;

class First
{
    public class Item { public long A = 1, B = 2; }
    public class Error : Exception { }
}

class Second
{
    public class Item { public long A = 1, B = 2; }
    public class Error : Exception { }
    public class Deep { public class Item { public long A = 1, B = 2; } }
}

class Outer<T>
{
    public class Inner<U> { public T? A = default; public U? B = default; public long C = 1, D = 2; }
    public class Plain { public T? A = default; public long B = 1, C = 2; }
    public class Error<U> : Exception { public T? A = default; public U? B = default; }
}

static class Allocates
{
    const int Small = 200_000, Large = 20; // 6 MB and more; 4 MB
    public static volatile object? Sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FirstItem() { for (int i = 0; i < Small; i++) Sink = new First.Item(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void SecondItem() { for (int i = 0; i < Small; i++) Sink = new Second.Item(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void DeepItem() { for (int i = 0; i < Small; i++) Sink = new Second.Deep.Item(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void IntOfString() { for (int i = 0; i < Small; i++) Sink = new Outer<int>.Inner<string>(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void StringOfInt() { for (int i = 0; i < Small; i++) Sink = new Outer<string>.Inner<int>(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void PlainOfItem() { for (int i = 0; i < Small; i++) Sink = new Outer<Second.Item>.Plain(); }

    // The code is shared by all reference types; the object's type is exact.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Shared<T>() where T : class { for (int i = 0; i < Small; i++) Sink = new Outer<T>.Inner<T>(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ArrayOfFirst() { for (int i = 0; i < Small / 1000; i++) Sink = new First.Item[5000]; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ArrayOfSecond() { for (int i = 0; i < Large; i++) Sink = new Second.Item[25_000]; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ListOfSecond() { for (int i = 0; i < Small; i++) Sink = new List<Second.Item>(); }

    // A type that is not nested has its name as before.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Plain() { for (int i = 0; i < Small; i++) Sink = new List<Dictionary<string, int>>(); }

    public static void All()
    {
        FirstItem();
        SecondItem();
        DeepItem();
        IntOfString();
        StringOfInt();
        PlainOfItem();
        Shared<string>();
        ArrayOfFirst();
        ArrayOfSecond();
        ListOfSecond();
        Plain();
    }

    public static void Tell()
    {
        Console.WriteLine("truth alloc Nested.Allocates.FirstItem Nested.First.Item");
        Console.WriteLine("truth alloc Nested.Allocates.SecondItem Nested.Second.Item");
        Console.WriteLine("truth alloc Nested.Allocates.DeepItem Nested.Second.Deep.Item");
        Console.WriteLine("truth alloc Nested.Allocates.IntOfString Nested.Outer<int>.Inner<string>");
        Console.WriteLine("truth alloc Nested.Allocates.StringOfInt Nested.Outer<string>.Inner<int>");
        Console.WriteLine("truth alloc Nested.Allocates.PlainOfItem Nested.Outer<Nested.Second.Item>.Plain");
        Console.WriteLine("truth alloc Nested.Allocates.Shared<T> Nested.Outer<string>.Inner<string>");
        Console.WriteLine("truth alloc Nested.Allocates.ArrayOfFirst Nested.First.Item[]");
        Console.WriteLine("truth alloc Nested.Allocates.ArrayOfSecond Nested.Second.Item[]");
        Console.WriteLine("truth alloc Nested.Allocates.ListOfSecond System.Collections.Generic.List<Nested.Second.Item>");
        Console.WriteLine("truth alloc Nested.Allocates.Plain System.Collections.Generic.List<System.Collections.Generic.Dictionary<string,int>>");
    }
}

static class Throws
{
    const int FirstCount = 300, SecondCount = 100;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FirstError() => throw new First.Error();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void SecondError() => throw new Second.Error();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void GenericError() => throw new Outer<int>.Error<string>();

    // While the first exception is handled, another type of the same name is thrown.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void SecondInCatch()
    {
        try { FirstError(); }
        catch (First.Error) { throw new Second.Error(); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FirstInFinally()
    {
        try { SecondError(); }
        finally { FirstError(); }
    }

    static void Many(Action what, int count)
    {
        for (int i = 0; i < count; i++)
            try { what(); } catch (Exception) { }
    }

    public static void All()
    {
        Many(FirstError, FirstCount);
        Many(SecondError, SecondCount);
        Many(GenericError, SecondCount);
        Many(SecondInCatch, SecondCount);
        Many(FirstInFinally, SecondCount);
    }

    public static void Tell(int rounds)
    {
        Console.WriteLine($"truth exception Nested.Throws.FirstError Nested.First.Error {rounds * (FirstCount + 2 * SecondCount)}");
        Console.WriteLine($"truth exception Nested.Throws.SecondError Nested.Second.Error {rounds * 2 * SecondCount}");
        Console.WriteLine($"truth exception Nested.Throws.GenericError Nested.Outer<int>.Error<string> {rounds * SecondCount}");
        Console.WriteLine($"truth exception Nested.Throws.SecondInCatch Nested.Second.Error {rounds * SecondCount}");
    }
}

static class Program
{
    static int Main(string[] args)
    {
        bool again = args[0] == "again";
        int rounds = again ? int.MaxValue : int.Parse(args[0]);
        Allocates.Tell();
        for (int round = 0; round < rounds; round++)
        {
            Allocates.All();
            Throws.All();
            Collectible.Make(round);
            if (round == 0) Console.WriteLine("ready");
        }
        Throws.Tell(rounds);
        Console.WriteLine($"unloaded {Collectible.Unloaded()} of {rounds}");
        return 0;
    }
}
