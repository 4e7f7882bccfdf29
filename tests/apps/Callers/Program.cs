// Threads of a native library that call managed code, come and go. A thread's name says which method it runs:
// a thread "native-3" runs Kinds.Kind3, and no other one.
//   Callers THREADS AT_ONCE
//   Callers small SECONDS         threads with small stacks: each calls managed code once, and then computes
//   Callers asleep PIPE           each calls managed code once, and then sleeps until a line comes through the pipe
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Callers;

[UnmanagedFunctionPointer(CallingConvention.Cdecl)]
delegate void Work(int kind);

static class Native
{
    // Starts so many threads, so many at once, and waits until all have ended.
    [DllImport("libtest_callers")]
    internal static extern int callers_run(int threads, int atOnce, int kinds, Work work);

    [DllImport("libtest_callers")]
    internal static extern int callers_small(Work work);

    [DllImport("libtest_callers")]
    internal static extern int sleepers_begin(Work work);

    // Prints what each thread has noticed.
    [DllImport("libtest_callers")]
    internal static extern void sleepers_end();
}

static class Kinds
{
    internal const int Count = 8;
    static readonly object gate = new();
    [ThreadStatic] static byte[]? kept;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Kind0() { Allocate(); Throw(); Wait(); Spin(); GC.KeepAlive(kept); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Kind1() { Allocate(); Throw(); Wait(); Spin(); GC.KeepAlive(kept); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Kind2() { Allocate(); Throw(); Wait(); Spin(); GC.KeepAlive(kept); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Kind3() { Allocate(); Throw(); Wait(); Spin(); GC.KeepAlive(kept); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Kind4() { Allocate(); Throw(); Wait(); Spin(); GC.KeepAlive(kept); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Kind5() { Allocate(); Throw(); Wait(); Spin(); GC.KeepAlive(kept); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Kind6() { Allocate(); Throw(); Wait(); Spin(); GC.KeepAlive(kept); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Kind7() { Allocate(); Throw(); Wait(); Spin(); GC.KeepAlive(kept); }

    static readonly Action[] all = [Kind0, Kind1, Kind2, Kind3, Kind4, Kind5, Kind6, Kind7];

    internal static void Run(int kind) => all[kind]();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate()
    {
        for (int i = 0; i < 30; i++) kept = new byte[8000];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw()
    {
        try { throw new InvalidOperationException(); }
        catch (InvalidOperationException) { }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Wait()
    {
        lock (gate) Thread.Sleep(0);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Spin()
    {
        for (int i = 0; i < 20; i++) Thread.SpinWait(1000);
    }
}

static class Program
{
    static int called;

    static int Small(int seconds)
    {
        Work work = _ => Interlocked.Increment(ref called);
        work(0);  // compiled on a stack that is large enough for it
        if (Native.callers_small(work) != 0) return 1;
        while (Volatile.Read(ref called) < 5) Thread.Sleep(10);
        Console.WriteLine("ready");
        Thread.Sleep(1000 * seconds);
        GC.KeepAlive(work);
        return 42;
    }

    static int Asleep(string pipe)
    {
        Work work = _ => Interlocked.Increment(ref called);
        if (Native.sleepers_begin(work) != 0) return 1;
        Console.WriteLine("ready");
        using (StreamReader reader = new(pipe)) reader.ReadLine();
        Native.sleepers_end();
        GC.KeepAlive(work);
        return 42;
    }

    static int Main(string[] args)
    {
        if (args[0] == "asleep") return Asleep(args[1]);
        if (args[0] == "small") return Small(int.Parse(args[1]));
        Work work = Kinds.Run;
        int failed = Native.callers_run(int.Parse(args[0]), int.Parse(args[1]), Kinds.Count, work);
        GC.KeepAlive(work);
        Console.WriteLine($"threads {args[0]} failed {failed}");
        return failed == 0 ? 0 : 1;
    }
}
