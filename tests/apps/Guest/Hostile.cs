// SPDX-License-Identifier: MIT
// Work of every kind whose result is known to be the same each time, whatever a profiler does to it:
// objects, exceptions, code made at run time, threads that begin and end, native memory, locks, collections.
using System.Diagnostics;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Guest;

static class Hostile
{
    static readonly object Gate = new();
    static long turn;

    static long Mix(long sum, long value) => unchecked((sum ^ value) * 0x5851F42D4C957F2D + 0x14057B7EF767814F);

    static long Allocate(int rounds)
    {
        var kept = new Dictionary<int, string>();
        long sum = 1;
        for (int i = 0; i < rounds * 500; i++)
        {
            kept[i % 97] = i.ToString();
            sum = Mix(sum, kept[i * 31 % 97 % Math.Min(i + 1, 97)].Length);
        }
        return sum;
    }

    static int Throw(Exception what, int depth) => depth == 0 ? throw what : Throw(what, depth - 1) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Catch(Exception what, int depth, long value)
    {
        try
        {
            return Throw(what, depth);
        }
        catch (InvalidOperationException e) when (e.Message == "4")
        {
            return value;
        }
    }

    sealed class Raw
    {
        internal byte First;
    }

    // The exceptions are pinned because .NET 10 has a GC hole. While the profiler's ExceptionSearchFilterEnter
    // and ExceptionCatcherEnter run, in preemptive mode, CallFilterFunclet and CallCatchFunclet keep the exception
    // in a local variable that no collection updates (dotnet/runtime#132462; #132482 mends it for .NET 11). If a
    // collection moves the exception, the filter or the handler gets a wild pointer: the filter rejects the
    // exception, or the program ends with an access violation. That takes neither clrsnap nor a walk:
    // `tests/guest/run.sh BUILD SOURCE MATERIAL hole` shows it. GUEST_MOVES=1 lets the exceptions move.
    static unsafe long Raise(int rounds)
    {
        bool moves = Environment.GetEnvironmentVariable("GUEST_MOVES") == "1";
        long sum = 2;
        for (int i = 0; i < rounds * 4; i++)
        {
            var what = new InvalidOperationException("4");
            fixed (byte* pinned = &Unsafe.As<Raw>(moves ? new Raw() : what).First)
                sum = Mix(sum, Catch(what, i % 8, i));
        }
        return sum;
    }

    static long Emit(int rounds)
    {
        long sum = 3;
        for (int i = 0; i < rounds; i++)
        {
            var method = new DynamicMethod("Emitted", typeof(long), [typeof(long)]);
            ILGenerator il = method.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldc_I8, (long)i);
            il.Emit(OpCodes.Mul);
            il.Emit(OpCodes.Ret);
            sum = Mix(sum, ((Func<long, long>)method.CreateDelegate(typeof(Func<long, long>)))(7));
        }
        return sum;
    }

    static long Breed(int rounds)
    {
        long sum = 4;
        for (int i = 0; i < rounds; i++)
        {
            var results = new long[4];
            Thread[] brood = [.. Enumerable.Range(0, 4).Select(k => new Thread(() => results[k] = Allocate(1) + k))];
            foreach (Thread one in brood) one.Start();
            foreach (Thread one in brood) one.Join();
            foreach (long result in results) sum = Mix(sum, result);
        }
        return sum;
    }

    static long Native(int rounds)
    {
        var blocks = new IntPtr[32];
        long sum = 5;
        for (int i = 0; i < rounds * 200; i++)
        {
            int k = i % blocks.Length;
            if (blocks[k] != IntPtr.Zero) sum = Mix(sum, Marshal.ReadInt64(blocks[k]));
            Marshal.FreeHGlobal(blocks[k]);
            blocks[k] = Marshal.AllocHGlobal(8 + i * 37 % 3000);
            Marshal.WriteInt64(blocks[k], i);
        }
        foreach (IntPtr block in blocks) Marshal.FreeHGlobal(block);
        return sum;
    }

    static long Wait(int rounds, int side)
    {
        long sum = 6;
        for (int i = 0; i < rounds * 2; i++)
        {
            lock (Gate)
            {
                while (turn % 2 != side) Monitor.Wait(Gate);
                sum = Mix(sum, turn++ & 1);
                Monitor.PulseAll(Gate);
            }
            if (i % 16 == 0) Thread.Sleep(1);
        }
        return sum;
    }

    static long Collect(int rounds)
    {
        var tree = new List<int[]>();
        long sum = 7;
        for (int i = 0; i < rounds * 4; i++)
        {
            for (int k = 0; k < 20; k++) tree.Add([i, k]);
            if (tree.Count > 2000) tree.RemoveRange(0, 1000);
            if (i % 16 == 0) GC.Collect(i % 3);
            sum = Mix(sum, tree[i % tree.Count][1]);
        }
        return sum;
    }

    internal static int Run()
    {
        // Without the profiler there is nobody to ask. One that detaches is still there to be asked at the end.
        bool watched = Environment.GetEnvironmentVariable("GUEST_MODE") is not null;
        if (watched) _ = Profiler.guest_has_enough();
        int rounds = int.Parse(Environment.GetEnvironmentVariable("GUEST_WORK") ?? "100");
        Func<int, long>[] work = [Allocate, Raise, Emit, Breed, Native, n => Wait(n, 0), n => Wait(n, 1), Collect];
        long Work()
        {
            var results = new long[work.Length];
            Thread[] all = [.. work.Select((one, i) => new Thread(() => results[i] = one(rounds)))];
            foreach (Thread one in all) one.Start();
            foreach (Thread one in all) one.Join();
            return results.Aggregate(0L, Mix);
        }
        long result = Work();
        // How much the profiler does meanwhile depends on the machine and its load.
        for (var clock = Stopwatch.StartNew(); watched && Profiler.guest_has_enough() == 0 && clock.Elapsed.TotalSeconds < 150;)
            if (Work() is var again && again != result) result = again + 1; // a result that no run has
        Console.WriteLine($"done {result:x}");
        return watched ? Profiler.guest_run() : 0;
    }
}
