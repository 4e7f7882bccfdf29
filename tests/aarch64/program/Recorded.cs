// SPDX-License-Identifier: MIT
// What stack.sh looks at, and what record.sh records: "shares MS CODE" has two methods with known shares of CPU time, measured
// on their own thread's clock, and a thread that sleeps; "shares FILE CODE" does that until FILE exists. "events ROUNDS CODE"
// throws, allocates, waits and collects, and counts what it does. Both print what a recording should say, for record.py,
// and return CODE. "stand" has threads that wait at known places until the program is killed.
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
    [DllImport("libc")]
    static extern int open(byte[] path, int flags);
    [DllImport("libc")]
    static extern nint pread(int file, byte[] text, nint size, nint at);
    [DllImport("libc")]
    static extern nint mmap(nint at, nint size, int protection, int flags, int file, nint offset);
    [DllImport("libc")]
    static extern int madvise(nint at, nint size, int advice);
    [DllImport("libc")]
    static extern int getrusage(int who, long[] usage);

    const int RealTime = 0, Monotonic = 1, ThreadCpuTime = 3;
    const long Endless = 1L << 62;
    static volatile int sink;
    static volatile bool ends, held, asked;
    static volatile byte[] kept;
    static readonly object gate = new();
    static readonly AutoResetEvent signal = new(false);
    static readonly byte[] text = new byte[64];
    static int schedstat, nap = 50;
    static long slept, busy;

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
        while (!ends) Thread.Sleep(nap);
    }

    // "so far" lines are for recordings by attach, which have a part of the run.
    static void Shares(string until)
    {
        long seven = 0, three = 0, most = long.TryParse(until, out long ms) ? ms * 1_000_000 : Endless;
        var sleeper = new Thread(() => { long from = Now(Monotonic); Sleeps(); slept = Now(Monotonic) - from; }) { Name = "Sleeper" };
        sleeper.Start();
        for (int round = 0; seven + three < most; round++)
        {
            if (round % 5 == 0)
            {
                Console.WriteLine($"so far {Now(RealTime)} {seven} {three}");
                if (most == Endless && System.IO.File.Exists(until)) break;
            }
            seven += Seven(21_000);
            three += Three(9_000);
        }
        Console.WriteLine($"so far {Now(RealTime)} {seven} {three}");
        ends = true;
        sleeper.Join();
        Console.WriteLine($"truth slept {slept}");
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

    // Signals only if asked to, so that there is a wait even if the other thread is late.
    static void Answers()
    {
        while (!ends)
        {
            Holds();
            Thread.Sleep(5);
            if (!asked) continue;
            asked = false;
            signal.Set();
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitsForGate()
    {
        lock (gate) sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitsForSignal() => signal.WaitOne();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Collects() => GC.Collect();

    // How long the calling thread has run, and waited for a processor, which is the file's second number.
    static long BusyNs()
    {
        long delay = 0;
        nint size = pread(schedstat, text, text.Length, 0);
        for (int i = 0, field = 0; i < size && field < 2; i++)
        {
            if (text[i] == ' ') field++;
            else if (field == 1) delay = 10 * delay + text[i] - '0';
        }
        return delay + Now(ThreadCpuTime);
    }

    // How long a wait took, and how much of that its thread was busy, as it is before and after the wait proper.
    static long Timed(Action wait)
    {
        long already = BusyNs(), from = Now(Monotonic);
        wait();
        long lasted = Now(Monotonic) - from;
        busy += BusyNs() - already;
        return lasted;
    }

    static void Events(int count, string begin)
    {
        if (begin != null) Console.WriteLine("truth ready 1");
        while (begin != null && !System.IO.File.Exists(begin)) Thread.Sleep(100);
        Console.WriteLine($"truth begin {Now(RealTime)}");
        long gateNs = 0, gateBusy = 0, signalNs = 0, signalBusy = 0;
        int thrown = 0, collected = 0;
        schedstat = open("/proc/thread-self/schedstat\0"u8.ToArray(), 0);
        var holder = new Thread(Answers) { Name = "Holder" };
        holder.Start();
        for (int round = 0; round < count; round++)
        {
            try { Throws(5); }
            catch (InvalidOperationException) { thrown++; }
            Allocates();
            busy = 0;
            gateNs += Timed(WaitsForGate);
            gateBusy += busy;
            busy = 0;
            asked = true;
            signalNs += Timed(WaitsForSignal);
            signalBusy += busy;
            if (round % 20 == 0) { Collects(); collected++; }
        }
        ends = true;
        holder.Join();
        Console.WriteLine($"truth thrown {thrown}");
        Console.WriteLine($"truth objects {100 * count}");
        Console.WriteLine($"truth collected {collected}");
        Console.WriteLine($"truth gate {gateNs} {gateBusy}");
        Console.WriteLine($"truth signal {signalNs} {signalBusy}");
    }

    // The page faults of the calling thread.
    static long FaultsSoFar()
    {
        const int Thread = 1, Minor = 8, Major = 9;
        var usage = new long[18];
        getrusage(Thread, usage);
        return usage[Minor] + usage[Major];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static unsafe void Touches(nint at, int pages)
    {
        for (int i = 0; i < pages; i++) ((byte*)at)[i * 4096] = 1;
    }

    static void Faults(int pages)
    {
        const int ReadWrite = 3, PrivateAnonymous = 0x22, NoHugePage = 15;
        nint at = mmap(0, pages * 4096, ReadWrite, PrivateAnonymous, -1, 0);
        madvise(at, pages * 4096, NoHugePage);
        long before = FaultsSoFar();
        Touches(at, pages);
        Console.WriteLine($"truth faults {FaultsSoFar() - before}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Spins()
    {
        while (!ends) Work();
    }

    static void Stand()
    {
        nap = 3_600_000; // nobody is seen awake
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
        switch (args[0])
        {
            case "shares": Shares(args[1]); break;
            case "events": Events(int.Parse(args[1]), args.Length > 3 ? args[3] : null); break;
            case "faults": Faults(int.Parse(args[1])); break;
            case "stand": Stand(); break;
            default: return 2;
        }
        return args.Length > 2 ? int.Parse(args[2]) : 0;
    }
}
