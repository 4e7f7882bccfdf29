// SPDX-License-Identifier: MIT
// Waits of every kind except locks, each in a method of its own, timed by this program: "truth wait
// METHOD NANOSECONDS", "ran wait METHOD NANOSECONDS" with how much of that may not have been in the wait itself, and
// "leaf METHOD NAME" with what it waits for. One goes on until the program ends.
using System;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Modes;

static class Waits
{
    const int Rounds = 6, Milliseconds = 30;
    static long waited, ran;

    // How long this thread has run, and has been ready to run without a processor: what a wait spends before it blocks.
    internal static long Ran() =>
        File.ReadAllText("/proc/thread-self/schedstat").Split(' ').Take(2).Sum(long.Parse);

    // How often this thread has blocked.
    static long Blocks() => File.ReadLines("/proc/thread-self/status")
        .Where(line => line.StartsWith("voluntary_ctxt_switches:")).Sum(line => long.Parse(line.Split(':')[1]));

    // A thread of its own does it later; until then it sleeps, which is no event.
    static void Later(Action action) => new Thread(() =>
    {
        Thread.Sleep(Milliseconds);
        action();
    }) { IsBackground = true, Name = "later" }.Start();

    // A thread that has blocked twice may have done so elsewhere: for a lock, or while the runtime was stopped.
    static void Time(Action wait)
    {
        long blocks = Blocks(), before = Ran(), begin = Stopwatch.GetTimestamp();
        wait();
        long lasted = (long)Stopwatch.GetElapsedTime(begin).TotalNanoseconds;
        waited += lasted;
        ran += Blocks() - blocks > 1 ? lasted : Ran() - before;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByWait()
    {
        var source = new TaskCompletionSource();
        Later(source.SetResult);
        Time(source.Task.Wait);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByResult()
    {
        var source = new TaskCompletionSource<int>();
        Later(() => source.SetResult(1));
        Time(() => _ = source.Task.Result);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByAwaiter()
    {
        var source = new TaskCompletionSource();
        Later(source.SetResult);
        Time(() => source.Task.GetAwaiter().GetResult());
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void BySemaphore()
    {
        var semaphore = new SemaphoreSlim(0);
        Later(() => semaphore.Release());
        Time(semaphore.Wait);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByTimeout()
    {
        var semaphore = new SemaphoreSlim(0);
        Time(() => semaphore.Wait(Milliseconds));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void BySlimEvent()
    {
        var slim = new ManualResetEventSlim();
        Later(slim.Set);
        Time(slim.Wait);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByEvent()
    {
        var reset = new ManualResetEvent(false);
        Later(() => reset.Set());
        Time(() => reset.WaitOne());
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByAny()
    {
        AutoResetEvent[] events = [new(false), new(false)];
        Later(() => events[1].Set());
        Time(() => WaitHandle.WaitAny(events));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByAll()
    {
        ManualResetEvent[] events = [new(true), new(false)];
        Later(() => events[1].Set());
        Time(() => WaitHandle.WaitAll(events));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByHandles()
    {
        var taken = new Mutex();
        using var has = new ManualResetEventSlim();
        new Thread(() =>
        {
            taken.WaitOne();
            has.Set();
            Thread.Sleep(Milliseconds);
            taken.ReleaseMutex();
        }) { IsBackground = true, Name = "owner" }.Start();
        while (!has.IsSet) Thread.Sleep(0);
        Time(() => taken.WaitOne());
        taken.ReleaseMutex();
        var semaphore = new Semaphore(0, 1);
        Later(() => semaphore.Release());
        Time(() => semaphore.WaitOne());
        var auto = new AutoResetEvent(false);
        Later(() => auto.Set());
        Time(() => auto.WaitOne());
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByProcess()
    {
        Process? process = null;  // another thread starts it, which waits for locks of its own
        new Thread(() => Volatile.Write(ref process, Process.Start("sleep", $"0.{Milliseconds:D3}"))).Start();
        while (Volatile.Read(ref process) is null) Thread.Sleep(0);
        Time(process!.WaitForExit);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByReaderWriter()
    {
        var rw = new ReaderWriterLockSlim();
        bool taken = false;
        new Thread(() =>
        {
            rw.EnterWriteLock();
            Volatile.Write(ref taken, true);
            Thread.Sleep(Milliseconds);
            rw.ExitWriteLock();
        }) { IsBackground = true, Name = "writer" }.Start();
        while (!Volatile.Read(ref taken)) Thread.Sleep(0);
        Time(rw.EnterReadLock);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByJoin()
    {
        var thread = new Thread(() => Thread.Sleep(Milliseconds));
        thread.Start();
        Time(thread.Join);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByMonitor()
    {
        var gate = new object();
        lock (gate) // before the other thread begins: a Pulse that comes before the Wait is lost, and the Wait never ends
        {
            Later(() =>
            {
                lock (gate) Monitor.Pulse(gate);
            });
            Time(() => Monitor.Wait(gate));
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ByCountdown()
    {
        var countdown = new CountdownEvent(1);
        Later(() => countdown.Signal());
        Time(countdown.Wait);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Forever() => new ManualResetEventSlim().Wait();

    public static void Run()
    {
        (Action, string)[] kinds =
        [
            (ByWait, "Task"), (ByResult, "Task"), (ByAwaiter, "Task"), (BySemaphore, "SemaphoreSlim"),
            (ByTimeout, "SemaphoreSlim"), (BySlimEvent, "ManualResetEventSlim"), (ByEvent, "WaitHandle.WaitOne"),
            (ByHandles, "WaitHandle.WaitOne"), (ByAny, "WaitHandle.WaitAny or WaitAll"), (ByAll, "WaitHandle.WaitAll"),
            (ByProcess, "Process.WaitForExit"), (ByReaderWriter, "ReaderWriterLockSlim"), (ByJoin, "Thread.Join"),
            (ByMonitor, "Monitor.Wait"), (ByCountdown, "CountdownEvent"),
        ];
        new Thread(Forever) { IsBackground = true, Name = "forever" }.Start();
        foreach ((Action wait, string name) in kinds)
        {
            waited = ran = 0;
            for (int i = 0; i < Rounds; i++) wait();
            Console.WriteLine($"truth wait Modes.Waits.{wait.Method.Name} {waited}");
            Console.WriteLine($"ran wait Modes.Waits.{wait.Method.Name} {ran}");
            Console.WriteLine($"leaf wait Modes.Waits.{wait.Method.Name} {name}");
        }
        Console.WriteLine($"rounds wait each {Rounds}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Ping(AutoResetEvent set, AutoResetEvent wait)
    {
        set.Set();
        wait.WaitOne();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Pong(AutoResetEvent wait, AutoResetEvent set)
    {
        wait.WaitOne();
        set.Set();
    }

    // Two threads that hand over to each other: more waits and exceptions than are walked.
    public static void RunMany(int count)
    {
        AutoResetEvent ping = new(false), pong = new(false);
        var other = new Thread(() =>
        {
            for (int i = 0; i < count; i++) Pong(ping, pong);
        }) { Name = "pong" };
        other.Start();
        long begin = Stopwatch.GetTimestamp();
        for (int i = 0; i < count; i++) Ping(ping, pong);
        Console.WriteLine($"truth wait Modes.Waits.Ping {(long)Stopwatch.GetElapsedTime(begin).TotalNanoseconds}");
        Console.WriteLine($"truth wait Modes.Waits.Pong {(long)Stopwatch.GetElapsedTime(begin).TotalNanoseconds}");
        other.Join();
    }
}
