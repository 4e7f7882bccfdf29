// SPDX-License-Identifier: MIT
// A known share in every mode: allocations by type, waits for locks, exceptions by type, collections.
// Prints the true values, "truth MODE NAME AMOUNT", and, as "slack MODE NANOSECONDS", how long the measuring threads
// ran or waited for a processor: their clocks and the runtime's may differ by that much. Returns 0.
// Arguments: megabytes to allocate; or "mix", megabytes: of all sizes, in random order; or "many", N: N waits and exceptions as fast
// as they come.
using System;
using System.Diagnostics;
using System.IO;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Modes;

sealed class Small
{
    public long A = 1, B = 2; // 32 bytes with the header
}

[InlineArray(14)]
struct Fourteen
{
    public long First;
}

sealed class Large
{
    public Fourteen Numbers = default; // 128 bytes with the header
}

static class Program
{
    const int SmallBytes = 32, LargeBytes = 128;
    static volatile object? sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AllocateSmall(int count)
    {
        for (int i = 0; i < count; i++) sink = new Small();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AllocateLarge(int count)
    {
        for (int i = 0; i < count; i++) sink = new Large();
    }

    // 16 MiB each: every one is sampled.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AllocateArrays(int count)
    {
        for (int i = 0; i < count; i++) sink = new byte[16 << 20];
    }

    const int MediumBytes = 90_000;

    // Two in turn, each of which is less than what the runtime of .NET 9 reports one object of.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AllocateFirst() => sink = new byte[MediumBytes - 24];

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AllocateSecond() => sink = new byte[MediumBytes - 24];

    static void AllocateInTurn(int count)
    {
        for (int i = 0; i < count; i++)
        {
            AllocateFirst();
            AllocateSecond();
        }
    }

    // 60 % small objects, 20 % larger ones, 20 % arrays, interleaved, so that collections affect all of them alike.
    static void Allocate(long megabytes)
    {
        long bytes = megabytes << 20;
        int small = (int)(bytes * 6 / 10 / SmallBytes), large = (int)(bytes * 2 / 10 / LargeBytes);
        int arrays = (int)(bytes / 10 >> 24), medium = (int)(bytes / 20 / MediumBytes);
        for (int i = 0; i < 16; i++)
        {
            AllocateSmall(small / 16);
            AllocateLarge(large / 16);
            // Walks of events may take a tenth of the thread's time; beyond that they are left out.
            Thread.Sleep((int)(megabytes / 20));
        }
        AllocateArrays(arrays);
        AllocateInTurn(medium);
        Console.WriteLine($"truth alloc Modes.Program.AllocateSmall {(long)(small / 16 * 16) * SmallBytes}");
        Console.WriteLine($"truth alloc Modes.Program.AllocateLarge {(long)(large / 16 * 16) * LargeBytes}");
        Console.WriteLine($"truth alloc Modes.Program.AllocateArrays {(long)arrays << 24}");
        Console.WriteLine($"truth alloc Modes.Program.AllocateFirst {(long)medium * MediumBytes}");
        Console.WriteLine($"truth alloc Modes.Program.AllocateSecond {(long)medium * MediumBytes}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long WaitShort(object gate) => Wait(gate);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long WaitLong(object gate) => Wait(gate);

    static long Wait(object gate)
    {
        long ran = Waits.Ran(), begin = Stopwatch.GetTimestamp();
        lock (gate)
        {
            long waited = (long)Stopwatch.GetElapsedTime(begin).TotalNanoseconds;
            slack += Waits.Ran() - ran;
            return waited;
        }
    }

    static long slack;

    // How long a thread was ready to run and had no processor.
    static long QueuedAll()
    {
        long sum = 0;
        foreach (string task in Directory.GetDirectories("/proc/self/task"))
            try { sum += long.Parse(File.ReadAllText($"{task}/schedstat").Split(' ')[1]); }
            catch (IOException) { } // it has ended
        return sum;
    }

    // This thread keeps the lock for so long after the other one has begun to wait.
    static long Contend(Func<object, long> wait, int milliseconds)
    {
        var gate = new object();
        long waited = 0;
        var ready = new ManualResetEventSlim();
        var thread = new Thread(() => { ready.Set(); waited = wait(gate); }) { Name = "Waiter" };
        lock (gate)
        {
            thread.Start();
            ready.Wait();
            Thread.Sleep(milliseconds);
        }
        thread.Join();
        return waited;
    }

    static void Lock()
    {
        long shorter = 0, longer = 0;
        for (int i = 0; i < 3; i++)
        {
            shorter += Contend(WaitShort, 100);
            longer += Contend(WaitLong, 200);
        }
        Console.WriteLine($"truth lock Modes.Program.WaitShort {shorter}");
        Console.WriteLine($"truth lock Modes.Program.WaitLong {longer}");
        Console.WriteLine($"slack lock {slack}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ThrowInvalid() => throw new InvalidOperationException("known");

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Dereference(string? nothing) => nothing!.Length;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Nested()
    {
        try { ThrowInvalid(); }
        catch (InvalidOperationException e) { throw new FormatException("outer", e); }
    }

    static void Throw()
    {
        for (int i = 0; i < 60; i++)
            try { ThrowInvalid(); } catch (InvalidOperationException) { }
        for (int i = 0; i < 30; i++)
            try { Dereference(null); } catch (NullReferenceException) { }
        for (int i = 0; i < 10; i++)
            try { Nested(); } catch (FormatException) { }
        Console.WriteLine("truth exception System.InvalidOperationException 70");
        Console.WriteLine("truth exception System.NullReferenceException 30");
        Console.WriteLine("truth exception System.FormatException 10");
    }

    // Enough live objects to make a pause long compared with its beginning and its end.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static Small[] Keep(int count)
    {
        var kept = new Small[count];
        for (int i = 0; i < count; i++) kept[i] = new Small();
        Console.WriteLine($"truth alloc Modes.Program.Keep {(long)count * (SmallBytes + 8)}");
        return kept;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Collect(int count)
    {
        for (int i = 0; i < count; i++) GC.Collect(2, GCCollectionMode.Forced, blocking: true);
    }

    // Of two types, one of them nine times as often, each at a place of its own.
    static void ThrowMany(int count)
    {
        for (int i = 0; i < count; i++)
        {
            try
            {
                if (i % 10 == 0) ThrowInvalid();
                Dereference(null);
            }
            catch (InvalidOperationException) { }
            catch (NullReferenceException) { }
        }
        Console.WriteLine($"truth exception System.InvalidOperationException {count / 10}");
        Console.WriteLine($"truth exception System.NullReferenceException {count - count / 10}");
    }

    static int Main(string[] args)
    {
        if (args[0] == "many")
        {
            ThrowMany(int.Parse(args[1]));
            Waits.RunMany(int.Parse(args[1]));
            return 0;
        }
        if (args[0] == "mix")
        {
            Mix.Run(long.Parse(args[1]));
            return 0;
        }
        while (args[0] == "allocate") // until it is killed
        {
            AllocateInTurn(10);
            Console.WriteLine("round");
            Thread.Sleep(10);
        }
        Allocate(long.Parse(args[0])); // first: it takes until all modes are listened to
        Waits.Run();
        Lock();
        Throw();
        var kept = Keep(2_000_000);
        Collect(7);
        GC.KeepAlive(kept);
        Console.WriteLine("truth gc Modes.Program.Collect 7");
        Console.WriteLine($"truth gc collections {GC.CollectionCount(0)}");
        Console.WriteLine($"truth gc pauses {(long)GC.GetTotalPauseDuration().TotalNanoseconds}");
        Console.WriteLine($"slack gc {QueuedAll()}");
        return 0;
    }
}
