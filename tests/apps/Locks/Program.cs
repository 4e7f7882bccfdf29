// SPDX-License-Identifier: MIT
// Threads that wait for locks, each named after what it does (tests/live/stack/locks.sh).
//   Locks              owners in known methods, deadlocks of two and three threads; prints "ready" when all of them wait
//   Locks contend      threads that contend for locks, always in the same order, so that there is no deadlock
//   Locks hand-over N  "owner" has a System.Threading.Lock for 20 ms N times, while "waits" waits for it; eight threads
//                      "passes on" hand another one over all the time, so that it is often free, and kept for the next one
//   Locks collected N  a Guard is locked for 20 ms N times while others wait for it, under collections all the time
//   Locks gives-up     "tries" gives a System.Threading.Lock up five times, after 20 ms each, and naps for 0.5 s after each;
//                      others are interrupted in a wait, and nap from then on; prints for how long "tries" has waited, in ms
using System.Runtime.CompilerServices;

if (args is ["contend"]) Contend.Run();
else if (args is ["hand-over", var rounds]) HandOver.Run(int.Parse(rounds));
else if (args is ["collected", var times]) Collected.Run(int.Parse(times));
else if (args is ["gives-up"]) GivesUp.Run();
else Known.Run();

static class GivesUp
{
    static readonly Lock held = new();

    static Thread Start(string name, Action action)
    {
        Thread thread = new(() => action()) { Name = name, IsBackground = true };
        thread.Start();
        return thread;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Nap(int ms)
    {
        for (System.Diagnostics.Stopwatch watch = System.Diagnostics.Stopwatch.StartNew(); watch.ElapsedMilliseconds < ms;) Thread.Sleep(1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Try() => held.TryEnter(20);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Stay(ManualResetEvent end) => end.WaitOne();

    static void Interrupted(Action wait)
    {
        try { wait(); } catch (ThreadInterruptedException) { }
        Nap(60_000);
    }

    public static void Run()
    {
        long waited = 0;
        object pulsed = new();
        ManualResetEvent has = new(false), end = new(false);
        Start("owner", () => { held.Enter(); has.Set(); Nap(60_000); });
        has.WaitOne();
        Start("stays", () => Stay(end));
        List<Thread> interrupted =
        [
            Start("semaphore", () => Interrupted(() => new SemaphoreSlim(0).Wait())),
            Start("event", () => Interrupted(() => end.WaitOne())),
            Start("pulse", () => Interrupted(() => { lock (pulsed) Monitor.Wait(pulsed); })),
        ];
        foreach (Thread thread in interrupted)
        {
            while ((thread.ThreadState & ThreadState.WaitSleepJoin) == 0) Thread.Sleep(1);
            thread.Interrupt();
        }
        Start("tries", () =>
        {
            for (int i = 0; i < 5; i++)
            {
                long from = Environment.TickCount64;
                if (Try()) throw new InvalidOperationException("the lock is free");
                waited += Environment.TickCount64 - from;
                Nap(500);
            }
        }).Join();
        Console.WriteLine(waited);
        Nap(5000); // the recording ends meanwhile
    }
}

static class Known
{
    static readonly List<Thread> threads = [];

    static void Start(string name, Action action)
    {
        Thread thread = new(() => action()) { Name = name, IsBackground = true };
        threads.Add(thread);
        thread.Start();
    }

    static void UntilWaiting()
    {
        foreach (Thread thread in threads)
            while (thread.IsAlive && (thread.ThreadState & ThreadState.WaitSleepJoin) == 0) Thread.Sleep(1);
    }

    // ---- Owners in a known method ----

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void HoldHere(Action enter)
    {
        enter();
        Thread.Sleep(Timeout.Infinite); // the owner is here
    }

    static void Owned(string name, object what) => Owned(name, 3, () => Monitor.Enter(what), () => { lock (what) { } });

    static void Owned(string name, int waiters, Action enter, Action wait)
    {
        Start($"owner of {name}", () => HoldHere(enter));
        UntilWaiting();
        for (int i = 0; i < waiters; i++) Start($"waits for {name}", wait);
    }

    // ---- Deadlocks: a ring of threads, each of which holds a lock and wants the next one's ----

    static void Ring<T>(string name, Action<T> enter, params T[] locks)
    {
        Barrier all = new(locks.Length);
        for (int i = 0; i < locks.Length; i++)
        {
            int own = i;
            Start($"{name} {own}", () =>
            {
                enter(locks[own]);
                all.SignalAndWait();
                enter(locks[(own + 1) % locks.Length]);
            });
        }
    }

    public static void Run()
    {
        object pulsed = new();
        ReaderWriterLockSlim written = new(), upgraded = new(), read = new(), upgrade = new();
        Lock newLock = new();
        // An owner that ends without releasing what it holds.
        object orphan = new();
        Thread ended = new(() => Monitor.Enter(orphan));
        ended.Start();
        ended.Join();

        Owned("an object", new object());
        Owned("a string", new string('x', 3));
        Owned("a boxed int", 42);
        Owned("a vector", new int[2]);
        Owned("a matrix", new string[2, 2][]);
        Owned("a dictionary", new Dictionary<string, int>());
        object hashed = new();
        _ = RuntimeHelpers.GetHashCode(hashed);
        Owned("a hashed object", hashed);
        Owned("a Lock", 3, newLock.Enter, () => { lock (newLock) { } });
        Owned("a written lock", 2, written.EnterWriteLock, written.EnterReadLock);
        Owned("an upgraded lock", 1, upgraded.EnterUpgradeableReadLock, upgraded.EnterUpgradeableReadLock);
        Owned("a read lock", 1, read.EnterReadLock, read.EnterWriteLock);
        Owned("an upgrade", 1, upgrade.EnterReadLock, () => { upgrade.EnterUpgradeableReadLock(); upgrade.EnterWriteLock(); });
        Owned("a while", 1, () => Monitor.Enter(pulsed), () => Monitor.TryEnter(pulsed, 100_000_000));
        object signal = new();
        Start("waits for a signal", () => { lock (signal) Monitor.Wait(signal); });
        Start("waits for an orphan", () => { lock (orphan) { } });
        // One runs the static constructor, the other one waits for that, which is none of the states of a managed thread.
        for (int i = 0; i < 2; i++) new Thread(() => Endless.Value++) { Name = "needs a class", IsBackground = true }.Start();

        Ring<object>("two monitors", Monitor.Enter, new object(), new List<int>());
        Ring<object>("three monitors", Monitor.Enter, new object(), new object(), new object());
        Ring("two locks", l => l.Enter(), new Lock(), new Lock());
        Ring("three locks", l => l.Enter(), new Lock(), new Lock(), new Lock());
        Ring("two writers", l => l.EnterWriteLock(), new ReaderWriterLockSlim(), new ReaderWriterLockSlim());
        Ring<object>("a while", l => Monitor.TryEnter(l, 100_000_000), new object(), new object());
        Ring<Action>("mixed", a => a(), new Lock().Enter, new ReaderWriterLockSlim().EnterWriteLock, Enter(new object()));

        UntilWaiting(); // some are at their barrier still
        Console.WriteLine("ready");
        Thread.Sleep(Timeout.Infinite);
    }

    static Action Enter(object o) => () => Monitor.Enter(o);
}

static class Contend
{
    static readonly object[] objects = [new(), "text", new int[1]];
    static readonly Lock[] locks = [new(), new()];
    static readonly ReaderWriterLockSlim readers = new();
    static long total;

    // Locks are taken in one order only, and the objects are sometimes others, whose locks are thin at first.
    static void Work(int seed)
    {
        Random random = new(seed);
        for (int round = 0; ; round++)
        {
            object first = objects[0], second = objects[1];
            lock (first)
            {
                if (round % 4 == 0) Thread.Sleep(1);
                lock (second)
                    lock (locks[0])
                    {
                        if (round % 4 == 0) Thread.Sleep(1);
                        lock (locks[1]) total++;
                    }
                if (random.Next(20) == 0) objects[1] = new object();
            }
            if (random.Next(2) == 0)
            {
                readers.EnterWriteLock();
                if (round % 4 == 0) Thread.Sleep(1);
                lock (locks[1]) total++;
                readers.ExitWriteLock();
            }
            else
            {
                readers.EnterReadLock();
                lock (objects[2]) total++;
                readers.ExitReadLock();
            }
        }
    }

    public static void Run()
    {
        for (int i = 0; i < 8; i++)
        {
            int seed = i;
            new Thread(() => Work(seed)) { Name = $"worker {i}", IsBackground = true }.Start();
        }
        bool ready = false;
        // Owners end, too.
        for (; ; )
        {
            Thread owner = new(() => { lock (objects[2]) total++; }) { Name = "short" };
            owner.Start();
            owner.Join();
            if (total > 1000 && !ready) Console.WriteLine("ready");
            ready |= total > 1000;
            Thread.Sleep(1);
        }
    }
}

static class HandOver
{
    static readonly Lock held = new(), passed = new();
    static long total;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitForOwner()
    {
        lock (held) total++;
    }

    // Some of these threads run while the lock is kept for another one, which has been woken, but does not run yet.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void PassOn()
    {
        lock (passed) Thread.SpinWait(300);
        Thread.SpinWait(300);
    }

    static void WhileOwned()
    {
        Thread waits;
        lock (held)
        {
            waits = new Thread(WaitForOwner) { Name = "waits" };
            waits.Start();
            while ((waits.ThreadState & ThreadState.WaitSleepJoin) == 0) Thread.Sleep(1); // it may get no processor
            Thread.Sleep(20); // the owner has it
        }
        waits.Join();
    }

    public static void Run(int rounds)
    {
        bool over = false;
        Thread[] hands = Enumerable.Range(0, 8).Select(_ => new Thread(() =>
        {
            while (!Volatile.Read(ref over)) PassOn();
        }) { Name = "passes on" }).ToArray();
        foreach (Thread thread in hands) thread.Start();
        Thread owner = new(() =>
        {
            for (int i = 0; i < rounds; i++) WhileOwned();
        }) { Name = "owner" };
        owner.Start();
        owner.Join();
        Volatile.Write(ref over, true);
        foreach (Thread thread in hands) thread.Join();
        Console.WriteLine(total);
    }
}

sealed class Guard;

static class Collected
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitForGuard(Guard guard)
    {
        lock (guard) { }
    }

    // A new object each time, which collections move.
    static void HoldGuard()
    {
        Guard guard = new();
        Thread[] waits = new Thread[4];
        lock (guard)
        {
            for (int i = 0; i < waits.Length; i++)
            {
                waits[i] = new Thread(() => WaitForGuard(guard)) { Name = "waits" };
                waits[i].Start();
            }
            Thread.Sleep(20);
        }
        foreach (Thread thread in waits) thread.Join();
    }

    public static void Run(int times)
    {
        bool over = false;
        List<object> kept = [];
        for (int i = 0; i < 20_000; i++) kept.Add(new object[4]); // so that a collection takes a while
        Thread collector = new(() =>
        {
            for (; !Volatile.Read(ref over); Thread.Sleep(1)) GC.Collect();
        }) { Name = "collects" };
        collector.Start();
        Thread owner = new(() =>
        {
            for (int i = 0; i < times; i++) HoldGuard();
        }) { Name = "owner" };
        owner.Start();
        owner.Join();
        Volatile.Write(ref over, true);
        collector.Join();
        GC.KeepAlive(kept);
        Console.WriteLine(times);
    }
}

static class Endless
{
    public static int Value = Initialize();

    static int Initialize()
    {
        Thread.Sleep(Timeout.Infinite);
        return 1;
    }

    static Endless() { }
}
