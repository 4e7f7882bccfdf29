// SPDX-License-Identifier: MIT
// What stack.sh looks at, and what can be recorded in the machine: "shares MS" has two methods with known shares of CPU time, measured on their
// own thread's clock, and a thread that sleeps; "events MS" throws, allocates and waits for a lock, and counts what it
// does; both print what a recording should say. "stand" has threads that wait at known places until the program is killed.
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Proofs;

static class Recorded
{
    struct Timespec
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc")]
    static extern int clock_gettime(int clock, out Timespec time);

    const int Monotonic = 1, ThreadCpuTime = 3;
    static volatile int sink;
    static volatile bool ends, held;
    static volatile byte[] kept;
    static readonly object gate = new();

    static long Now(int clock)
    {
        clock_gettime(clock, out Timespec t);
        return t.Seconds * 1_000_000_000 + t.Nanoseconds;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Work()
    {
        int x = 1;
        for (int i = 0; i < 3000; i++) x = x * 31 + i;
        sink = x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Seven(long us)
    {
        long from = Now(ThreadCpuTime);
        while (Now(ThreadCpuTime) - from < us * 1000) Work();
        return Now(ThreadCpuTime) - from;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Three(long us)
    {
        long from = Now(ThreadCpuTime);
        while (Now(ThreadCpuTime) - from < us * 1000) Work();
        return Now(ThreadCpuTime) - from;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sleeps()
    {
        while (!ends) Thread.Sleep(50);
    }

    static void Shares(long ms)
    {
        long seven = 0, three = 0;
        var sleeper = new Thread(Sleeps) { Name = "Sleeper" };
        sleeper.Start();
        for (int round = 1; seven + three < ms * 1_000_000; round++)
        {
            seven += Seven(21_000);
            three += Three(9_000);
            Thread.Sleep(1);
            if (round % 30 == 0) Console.WriteLine($"truth seven {1000 * seven / (seven + three)}");
        }
        ends = true;
        sleeper.Join();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throws(int depth)
    {
        if (depth == 0) throw new InvalidOperationException("no");
        Throws(depth - 1);
        sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocates()
    {
        for (int i = 0; i < 100; i++) kept = new byte[10_000];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Holds()
    {
        lock (gate) Thread.Sleep(30);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long WaitsForGate()
    {
        long from = Now(Monotonic);
        lock (gate) return Now(Monotonic) - from;
    }

    static void Events(long ms)
    {
        long end = Now(Monotonic) + ms * 1_000_000, waited = 0;
        int thrown = 0, allocated = 0;
        var holder = new Thread(() => { while (!ends) { Holds(); Thread.Sleep(5); } }) { Name = "Holder" };
        holder.Start();
        while (Now(Monotonic) < end)
        {
            try { Throws(5); }
            catch (InvalidOperationException) { thrown++; }
            Allocates();
            allocated++;
            waited += WaitsForGate();
        }
        ends = true;
        holder.Join();
        Console.WriteLine($"truth thrown {thrown}");
        Console.WriteLine($"truth allocated {allocated}");
        Console.WriteLine($"truth waited {waited / 1_000_000}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Spins()
    {
        while (!ends) Work();
    }

    static void Stand()
    {
        new Thread(Sleeps) { Name = "Sleeper" }.Start();
        new Thread(Spins) { Name = "Spinner" }.Start();
        var holder = new Thread(() => { lock (gate) { held = true; Sleeps(); } }) { Name = "Holder" };
        holder.Start();
        while (!held) Thread.Sleep(10);
        new Thread(() => WaitsForGate()) { Name = "Waiter" }.Start();
        Thread.Sleep(500);
        Console.WriteLine("ready");
        holder.Join();
    }

    internal static int Run(string[] args)
    {
        long ms = args.Length > 1 ? int.Parse(args[1]) : 0;
        switch (args[0])
        {
            case "shares": Shares(ms); return 0;
            case "events": Events(ms); return 0;
            case "stand": Stand(); return 0;
            default: return 2;
        }
    }
}
