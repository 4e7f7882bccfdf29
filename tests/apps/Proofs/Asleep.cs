// SPDX-License-Identifier: MIT
// Threads that are blocked in the kernel, each in a different kind of wait, 20 times 100 ms. They show
// the effect of signals: native waits return early with EINTR. tests/oracle/asleep/asleep.c walks the threads
// every 5 ms meanwhile; with "alone" there is no such profiler, and the program prints its results.
using System;
using System.Diagnostics;
using System.IO;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Proofs;

static unsafe class Asleep
{
    const int Rounds = 20, Milliseconds = 100, EINTR = 4, SolSocket = 1, SoReceiveTimeout = 20;

    struct TimeSpec { public long Seconds, Rest; }

    [DllImport("libc", SetLastError = true)] static extern int usleep(uint microseconds);
    [DllImport("libc", SetLastError = true)] static extern int nanosleep(TimeSpec* wanted, TimeSpec* left);
    [DllImport("libc", SetLastError = true)] static extern int poll(void* files, ulong count, int milliseconds);
    [DllImport("libc", SetLastError = true)] static extern int epoll_create1(int flags);
    [DllImport("libc", SetLastError = true)] static extern int epoll_wait(int epoll, void* events, int most, int milliseconds);
    [DllImport("libc", SetLastError = true)] static extern int socketpair(int family, int type, int protocol, int* pair);
    [DllImport("libc", SetLastError = true)] static extern int setsockopt(int socket, int level, int name, void* value, uint size);
    [DllImport("libc", SetLastError = true)] static extern nint recv(int socket, void* bytes, nuint count, int flags);

    static readonly int Epoll = epoll_create1(0), Silent = SilentSocket();
    static readonly Socket Receiver = SilentReceiver();
    static readonly object Lock = new();
    static readonly ManualResetEventSlim Never = new(false);
    static readonly Task Endless = new TaskCompletionSource().Task;

    static int SilentSocket()
    {
        int* pair = stackalloc int[2];
        if (socketpair(1, 1, 0, pair) != 0) throw new InvalidOperationException("socketpair");
        TimeSpec wait = new() { Rest = Milliseconds * 1000 };  // a timeval: microseconds
        if (setsockopt(pair[0], SolSocket, SoReceiveTimeout, &wait, (uint)sizeof(TimeSpec)) != 0)
            throw new InvalidOperationException("setsockopt");
        return pair[0];
    }

    static Socket SilentReceiver()
    {
        var socket = new Socket(AddressFamily.InterNetwork, SocketType.Dgram, ProtocolType.Udp);
        socket.Bind(new System.Net.IPEndPoint(System.Net.IPAddress.Loopback, 0));
        socket.ReceiveTimeout = Milliseconds;
        return socket;
    }

    // Each waits once; true: it was interrupted.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Interrupted(int answer) => answer == -1 && Marshal.GetLastPInvokeError() == EINTR;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Usleep() => Interrupted(usleep(Milliseconds * 1000));
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Nanosleep()
    {
        TimeSpec wait = new() { Rest = Milliseconds * 1000000 };
        return Interrupted(nanosleep(&wait, null));
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Poll() => Interrupted(poll(null, 0, Milliseconds));
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool EpollWait()
    {
        byte* events = stackalloc byte[12];
        return Interrupted(epoll_wait(Epoll, events, 1, Milliseconds));
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Recv()
    {
        byte* bytes = stackalloc byte[8];
        return Interrupted((int)recv(Silent, bytes, 8, 0));
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool ThreadSleep() { Thread.Sleep(Milliseconds); return false; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool MonitorWait() { lock (Lock) { Monitor.Wait(Lock, Milliseconds); return false; } }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool EventWait() { Never.Wait(Milliseconds); return false; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool TaskWait() { Endless.Wait(Milliseconds); return false; }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool SocketReceive()
    {
        try { Receiver.Receive(new byte[8]); } catch (SocketException) { }
        return false;
    }
    // Ten deep, and more of a stack than is copied at once.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool DeepSleep() => Deeper(10);
    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Deeper(int depth)
    {
        byte* room = stackalloc byte[8192];
        room[0] = (byte)depth;
        bool early = depth > 0 ? Deeper(depth - 1) : Interrupted(usleep(Milliseconds * 1000));
        return early && room[0] == (byte)depth;
    }

    static void Sleeper(string name, Func<bool> wait, bool alone)
    {
        wait();  // once to have it all compiled
        int interrupted = 0, early = 0;
        long switches = alone ? Switches() : 0;
        if (!alone) Oracle.oracle_sleeper_begin(name);
        int rounds = alone ? 3 * Rounds : Rounds;  // on its own, it must outlive an attach
        for (int i = 0; i < rounds; i++)
        {
            long start = Stopwatch.GetTimestamp();
            if (wait()) interrupted++;
            if (Stopwatch.GetElapsedTime(start).TotalMilliseconds < Milliseconds * 0.9) early++;
        }
        if (alone) Console.WriteLine($"waited {name} {rounds} {interrupted} {early} {Switches() - switches}");
        else Oracle.oracle_sleeper_end(rounds, interrupted, early);
    }

    static long Switches()
    {
        foreach (string line in File.ReadLines("/proc/thread-self/status"))
            if (line.StartsWith("voluntary_ctxt_switches:")) return long.Parse(line.AsSpan(24));
        return 0;
    }

    internal static void Run(string[] args)
    {
        bool alone = args.Length > 0 && args[0] == "alone";
        (string, Func<bool>)[] waits =
        {
            ("Usleep", Usleep), ("Nanosleep", Nanosleep), ("Poll", Poll), ("EpollWait", EpollWait), ("Recv", Recv),
            ("ThreadSleep", ThreadSleep), ("MonitorWait", MonitorWait), ("EventWait", EventWait), ("TaskWait", TaskWait),
            ("SocketReceive", SocketReceive), ("DeepSleep", DeepSleep),
        };
        var threads = new Thread[waits.Length];
        for (int i = 0; i < waits.Length; i++)
        {
            (string name, Func<bool> wait) = waits[i];
            threads[i] = new Thread(() => Sleeper(name, wait, alone));
            threads[i].Start();
        }
        foreach (Thread thread in threads) thread.Join();
    }
}
