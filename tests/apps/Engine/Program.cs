// What tests/live/record/engine.sh records: methods with known shares of CPU time, measured on their own
// thread's clock, in a rhythm that is the kernel's tick; and a program that uses SIGURG itself.
// Arguments: the part to run; its milliseconds of CPU time, or, for faults, how many thousands.
using System;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using Microsoft.Win32.SafeHandles;

namespace Engines;

static class Program
{
    struct Timespec
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc")]
    static extern int clock_gettime(int clock, out Timespec time);

    [DllImport("libc")]
    static extern unsafe int getrusage(int who, long* usage);

    const int ThreadCpuTime = 3, Urg = 23, Jump = 500_000;
    static volatile int sink;
    static long skipped;  // CPU time that passed in jumps, because a hypervisor took the processor

    static long Used()
    {
        clock_gettime(ThreadCpuTime, out Timespec t);
        return t.Seconds * 1_000_000_000 + t.Nanoseconds;
    }

    static void Work(int rounds)
    {
        int x = 1;
        for (int i = 0; i < rounds; i++) x = x * 31 + i;
        sink = x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Seven(long us)
    {
        long from = Used();
        for (long last = from, now; (now = Used()) - from < us * 1000; last = now)
        {
            if (now - last > Jump) skipped += now - last;
            Work(3000);
        }
        return Used() - from;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Three(long us)
    {
        long from = Used();
        while (Used() - from < us * 1000) Work(3000);
        return Used() - from;
    }

    // Some 3 ms of work, then asleep until the next millisecond: where the kernel ticks every 4 ms, a scan
    // at the tick always sees the same part of it.
    static void Shares(long ms)
    {
        long seven = 0, three = 0;
        while (seven + three < ms * 1_000_000)
        {
            seven += Seven(2100);
            three += Three(900);
            Thread.Sleep(1);
        }
        Console.WriteLine($"seven {(double)seven / (seven + three):0.0000}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Reads(SafeFileHandle zeros, byte[] block, long us)
    {
        long from = Used();
        while (Used() - from < us * 1000) RandomAccess.Read(zeros, block, 0);
        return Used() - from;
    }

    // Seven's time is its own; nearly all of Reads' time is in the kernel: a call there takes far longer than the way
    // into it and out of it, which some hypervisors make long.
    static void Kernel(long ms)
    {
        using SafeFileHandle zeros = File.OpenHandle("/dev/zero");
        byte[] block = new byte[1 << 22];
        long seven = 0, reads = 0;
        while (seven + reads < ms * 1_000_000)
        {
            seven += Seven(2100);
            reads += Reads(zeros, block, 4900);
        }
        Console.WriteLine($"seven {(double)seven / (seven + reads):0.0000}");
    }

    [DllImport("libc")]
    static extern nint mmap(nint at, nint size, int protection, int flags, int file, nint offset);

    [DllImport("libc")]
    static extern int munmap(nint at, nint size);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static unsafe void Touch(byte* at, long pages)
    {
        for (long i = 0; i < pages; i++) at[i * 4096] = 1;
    }

    // A page fault for each page: the memory is new.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static unsafe void TouchesNew(long pages)
    {
        nint at = mmap(0, (nint)pages * 4096, 3, 0x22, -1, 0);
        Touch((byte*)at, pages);
        munmap(at, (nint)pages * 4096);
    }

    // No page fault, because the page is present; and most of the time.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static unsafe void TouchesOld(byte* at, long pages)
    {
        for (int i = 0; i < 400; i++) Touch(at, pages);
    }

    // This thread's page faults, as the kernel counts them.
    static unsafe long FaultsOfThread()
    {
        long* usage = stackalloc long[18];  // struct rusage
        getrusage(1, usage);
        return usage[8] + usage[9];
    }

    static unsafe void Faults(long thousands)
    {
        long begin = FaultsOfThread(), inNew = 0;
        nint old = mmap(0, 1000 * 4096, 3, 0x22, -1, 0);
        Touch((byte*)old, 1000);
        for (long i = 0; i < thousands; i++)
        {
            long before = FaultsOfThread();
            TouchesNew(1000);
            inNew += FaultsOfThread() - before;
            TouchesOld((byte*)old, 1000);
        }
        Console.WriteLine($"new {inNew}\nthread {FaultsOfThread() - begin}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Burst(int rounds) => Work(rounds);

    // Reading the thread's clock is a system call, so bursts are timed many at a time, without anything between them.
    static double NsOfBurst(int rounds, int count)
    {
        long from = Used();
        for (int i = 0; i < count; i++) Burst(rounds);
        return (double)(Used() - from) / count;
    }

    // Never computes for more than some 60 us between two system calls.
    static void Bursts(long ms)
    {
        using SafeFileHandle zeros = File.OpenHandle("/dev/zero");
        byte[] block = new byte[1 << 20];
        NsOfBurst(10_000, 5000);
        int rounds = (int)(60_000 / NsOfBurst(10_000, 5000) * 10_000);
        long from = Used();
        double bursts = 0;
        while (Used() - from < ms * 1_000_000)
        {
            double ns = NsOfBurst(rounds, 20);
            for (int i = 0; i < 500; i++)
            {
                Burst(rounds);
                RandomAccess.Read(zeros, block, 0);
            }
            bursts += ns * 520;
        }
        Console.WriteLine($"bursts {bursts / (Used() - from):0.0000}");
    }

    // It takes SIGURG after half of its time, and counts from when none has come for a while: the agent needs a processor to notice.
    static void Signal(long ms)
    {
        int count = 0;
        Seven(ms * 500);
        using var registration = PosixSignalRegistration.Create((PosixSignal)Urg, _ => Interlocked.Increment(ref count));
        int first, patience = 20;
        do
        {
            first = Volatile.Read(ref count);
            Seven(200_000);
        }
        while (Volatile.Read(ref count) != first && --patience > 0);
        Seven(ms * 500);
        Console.WriteLine($"signals {Volatile.Read(ref count) - first}");
    }

    static void Main(string[] args)
    {
        long ms = long.Parse(args[1]);
        if (args[0] == "shares") Shares(ms);
        if (args[0] == "kernel") Kernel(ms);
        if (args[0] == "bursts") Bursts(ms);
        if (args[0] == "faults") Faults(ms);
        if (args[0] == "signal") Signal(ms);
        if (args[0] == "burn")
        {
            long all = Seven(ms * 1000);
            Console.WriteLine($"burnt {all} skipped {skipped}");
        }
    }
}
