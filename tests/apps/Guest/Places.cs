// SPDX-License-Identifier: MIT
// Threads at known places: some wait in each of the ways in which .NET programs wait, some are busy.
// A thread's name is the name of its place; the method of that name is on its stack.
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Guest;

static unsafe class Places
{
    static readonly ManualResetEvent Never = new(false);
    static readonly object Taken = new();
    static readonly List<Thread> All = new();
    static volatile bool stop;
    static volatile int arrived; // threads that are at their place, or will be after the next statement
    static int sink;

    // ---- Parked ----
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Wait()
    {
        arrived++;
        Never.WaitOne();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Lock()
    {
        arrived++;
        lock (Taken) sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Join()
    {
        arrived++;
        All[0].Join();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Native() => Profiler.guest_park();

    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    static void Back() => Profiler.guest_park();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Callback() => Profiler.guest_call(&Back);

    sealed class Box<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal int Deep<U>(T what, U more, int depth)
        {
            if (depth > 0) return Deep(what, more, depth - 1) + 1;
            arrived++;
            Never.WaitOne();
            return 0;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Generic() => sink += new Box<string>().Deep("", 1.5, 20) + new Box<int>().Deep(1, "", 3);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Catch()
    {
        try
        {
            Throw(3);
        }
        catch (InvalidOperationException)
        {
            arrived++;
            Never.WaitOne();
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw(int depth)
    {
        if (depth == 0) throw new InvalidOperationException();
        Throw(depth - 1);
        sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Finally()
    {
        try
        {
            try
            {
                Throw(2);
            }
            finally
            {
                arrived++;
                Never.WaitOne();
            }
        }
        catch (InvalidOperationException)
        {
            sink++;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Dynamic()
    {
        var method = new DynamicMethod("Emitted", typeof(void), Type.EmptyTypes, typeof(Places).Module);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Call, ((Action)Wait).Method);
        il.Emit(OpCodes.Ret);
        method.CreateDelegate<Action>()();
        sink++;
    }

    // ---- Busy ----
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Leaf(int n) => n * 31 + 7;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Loop()
    {
        int value = 1;
        for (arrived++; !stop; ) value = Leaf(value);
        sink += value;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate()
    {
        var kept = new byte[16][];
        for (arrived++; !stop; )
            for (int i = 0; i < 64; i++) kept[i & 15] = new byte[200 + i];
        sink += kept[3].Length;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Raise()
    {
        for (arrived++; !stop; )
        {
            try
            {
                Throw(4);
            }
            catch (InvalidOperationException)
            {
                sink++;
            }
        }
    }

    static void Start(string name, Action place)
    {
        var thread = new Thread(() =>
        {
            Thread.CurrentThread.Name = name;
            place();
        }) { IsBackground = true };
        thread.Start();
        lock (All) All.Add(thread);
    }

    static bool Waits(Thread thread) => (thread.ThreadState & ThreadState.WaitSleepJoin) != 0;

    internal static int Run()
    {
        Thread.CurrentThread.Name = "Main";
        lock (Taken)
        {
            Action[] parked = { Wait, Join, Lock, Generic, Catch, Finally, Dynamic };
            // One by one: how a method is compiled depends on what has been initialised by then.
            int wanted = 0;
            foreach (Action place in parked)
            {
                Start(place.Method.Name, place);
                for (wanted++; arrived < wanted || !Waits(All[^1]); ) Thread.Sleep(1);
            }
            Start("Native", Native);
            while (Profiler.guest_parked() < 1) Thread.Sleep(1);
            Start("Callback", Callback);
            while (Profiler.guest_parked() < 2) Thread.Sleep(1);
            foreach (Action place in new Action[] { Loop, Allocate, Raise })
            {
                Start(place.Method.Name, place);
                for (wanted++; arrived < wanted; ) Thread.Sleep(1);
            }
            Thread.Sleep(20); // what is compiled at their first turn is
            int result = Profiler.guest_run();
            stop = true;
            Never.Set();
            Monitor.Exit(Taken);
            foreach (Thread thread in All) thread.Join();
            Monitor.Enter(Taken);
            Console.WriteLine("done");
            return result;
        }
    }

    // Threads come and go until the profiler's library is mapped no more.
    internal static int Alone()
    {
        string library = Path.GetFileName(Environment.GetEnvironmentVariable("GUEST_LIBRARY")!);
        var clock = System.Diagnostics.Stopwatch.StartNew();
        while (File.ReadAllText("/proc/self/maps").Contains(library))
        {
            if (clock.Elapsed.TotalSeconds > 30)
            {
                Console.Error.WriteLine(library + " is still there after 30 s");
                return 1;
            }
            var thread = new Thread(() => sink += Leaf(1));
            thread.Start();
            thread.Join();
            Thread.Sleep(5);
        }
        GC.Collect();
        for (int i = 0; i < 20; i++)
        {
            var thread = new Thread(() => sink += Leaf(1));
            thread.Start();
            thread.Join();
        }
        Console.WriteLine("done");
        return 0;
    }
}
