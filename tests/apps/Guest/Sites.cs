// SPDX-License-Identifier: MIT
// Allocations and exceptions at known sites, in a fixed order, all on one thread.
using System.IO;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Guest;

sealed class Payload
{
    internal int Number;
}

struct Pair
{
    internal long First;
}

static unsafe class Sites
{
    static object? kept;
    static int sink;
    static readonly int[] Two = new int[2];

    [MethodImpl(MethodImplOptions.NoInlining)]
    static object Make(int depth) => depth == 0 ? new Payload { Number = depth } : Make(depth - 1);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static object Of<T>(int count) where T : new() => count == 0 ? new T() : new T[count];

    [MethodImpl(MethodImplOptions.NoInlining)]
    static object Boxed(object value) => value;

    static class Lazy
    {
        internal static readonly Payload First = new() { Number = 1 };
    }

    sealed class Fails : IComparable<Fails>
    {
        static readonly int Zero = int.Parse("0");
        public int CompareTo(Fails? other) => throw new NotSupportedException("never");
        internal static int Divide(int what) => what / Zero;
    }

    static IEnumerable<Payload> Several(int count)
    {
        for (int i = 0; i < count; i++) yield return new Payload { Number = i };
    }

    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    static void Back()
    {
        kept = Make(1);
        Catch(() => throw new TimeoutException());
    }

    static void Allocations()
    {
        for (int depth = 0; depth < 6; depth++) kept = Make(depth);
        kept = Of<Payload>(0);
        kept = Of<Payload>(3);
        kept = Of<Pair>(100);
        kept = Of<Pair>(10_000); // on the large object heap
        kept = Of<object>(0);
        kept = Boxed(7);
        kept = Boxed(new Pair { First = 1 });
        kept = Lazy.First;
        kept = string.Concat("a", sink.ToString(), "b");
        kept = new int[2, 3];
        kept = (Action)(() => sink++);
        kept = Activator.CreateInstance(typeof(Payload));
        foreach (Payload one in Several(3)) sink += one.Number;
        kept = new List<int>(Enumerable.Range(0, 20)).ToArray();
        kept = new Dictionary<string, Payload> { ["one"] = new() };
        Profiler.guest_call(&Back);
    }

    static void Catch(Action action)
    {
        try
        {
            action();
        }
        catch (Exception)
        {
            sink++;
        }
    }

    static bool Filter(Exception exception)
    {
        Catch(() => throw new FormatException());
        return exception is InvalidOperationException;
    }

    static void Again()
    {
        try
        {
            throw new ArgumentException();
        }
        catch (ArgumentException)
        {
            throw;
        }
        finally
        {
            Catch(() => throw new ApplicationException());
        }
    }

    static void Filtered()
    {
        try
        {
            throw new InvalidOperationException();
        }
        catch (Exception exception) when (Filter(exception))
        {
            Catch(() => throw new InvalidCastException());
        }
    }

    static void Emitted()
    {
        var method = new DynamicMethod("Emitted", typeof(void), Type.EmptyTypes, typeof(Sites).Module);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Newobj, typeof(Payload).GetConstructor(
            System.Reflection.BindingFlags.Instance | System.Reflection.BindingFlags.Public |
            System.Reflection.BindingFlags.NonPublic, Type.EmptyTypes)!);
        il.Emit(OpCodes.Pop);
        il.Emit(OpCodes.Newobj, typeof(NotImplementedException).GetConstructor(Type.EmptyTypes)!);
        il.Emit(OpCodes.Throw);
        method.CreateDelegate<Action>()();
    }

    static void Exceptions()
    {
        Catch(() => throw new InvalidOperationException());
        Catch(Again);
        Catch(Filtered);
        Catch(() => sink += Fails.Divide(3));
        Catch(() => sink += ((string)kept!).Length); // an invalid cast
        Catch(() => sink += ((Payload)null!).Number); // a null reference
        Catch(() => sink += Two[5]);
        Catch(() => Array.Sort(new[] { new Fails(), new Fails() }));
        Catch(() => int.Parse("x"));
        Catch(Emitted);
        Catch(() => typeof(Sites).GetMethod("Throws")!.Invoke(null, null));
    }

    public static void Throws() => throw new AccessViolationException();

    static int Tasks() => Directory.GetDirectories("/proc/self/task").Length;

    internal static int Run()
    {
        int before = Tasks();
        var thread = new Thread(() =>
        {
            Thread.CurrentThread.Name = "Sites";
            // Twice: what is done at the first time only (types are loaded, statics made) is not compared.
            Allocations();
            Exceptions();
            Profiler.guest_sites(1);
            for (int i = 0; i < 3; i++)
            {
                Allocations();
                Exceptions();
            }
            Profiler.guest_sites(0);
        });
        thread.Start();
        thread.Join();
        // It is gone for the runtime once it is gone for the kernel.
        for (int i = 0; i < 20_000 && Tasks() > before; i++) Thread.Sleep(1);
        int result = Profiler.guest_run();
        Console.WriteLine("done");
        return result;
    }
}
