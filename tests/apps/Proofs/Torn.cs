// SPDX-License-Identifier: MIT
// Threads that sleep for random tiny times at random depths, and run in between; others that live for
// a few such sleeps only. Each keeps a list of the methods that it is in, which tests/oracle/asleep/torn.c
// compares with walks taken meanwhile.
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Proofs;

static unsafe class Torn
{
    const int Deepest = 48;

    // As struct shadow in tests/oracle/asleep/torn.c. Sequence is counted up with each change; History has for
    // the last of them what the list was: a hash of it, Hashes those of its beginnings.
    internal struct Shadow
    {
        public long Sequence;
        public int Depth;
        public uint Random;
        public fixed byte Path[64];
        public fixed ulong Hashes[64];
        public fixed ulong History[4096];
    }

    [DllImport("libc")] static extern int usleep(uint microseconds);
    [DllImport("libc")] static extern int poll(void* files, ulong count, int milliseconds);
    [DllImport("libc")] static extern int sched_yield();

    static readonly object Lock = new();

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static void Push(Shadow* s, byte method)
    {
        s->Path[s->Depth] = method;
        s->Hashes[s->Depth] = (s->Depth > 0 ? s->Hashes[s->Depth - 1] : 0) * 1000003 + method + 1;
        s->Depth++;
        Note(s);
    }
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static void Pop(Shadow* s)
    {
        s->Depth--;
        Note(s);
    }
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static void Note(Shadow* s)
    {
        s->History[(s->Sequence + 1) & 4095] = s->Depth > 0 ? s->Hashes[s->Depth - 1] : 0;
        Volatile.Write(ref s->Sequence, s->Sequence + 1);
    }
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static uint Next(Shadow* s) => (s->Random = s->Random * 1664525 + 1013904223) >> 8;

    // Deeper, or a short sleep: of each kind some, so that walks meet threads on their way in and out.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Go(Shadow* s)
    {
        uint random = Next(s);
        if (s->Depth < Deepest && random % 8 < 5) { Call(s, random >> 3 & 7); return; }
        switch (random >> 3 & 7)
        {
            case 0: usleep(random % 200); break;
            case 1: usleep(1); break;
            case 2: poll(null, 0, (int)(random % 2)); break;
            case 3: Thread.Sleep(0); break;
            case 4: sched_yield(); break;
            case 5: lock (Lock) Thread.SpinWait(50); break;
            case 6: lock (Lock) usleep(20); break;
            default: Thread.SpinWait((int)(random % 2000)); break;
        }
    }

    static void Call(Shadow* s, uint which)
    {
        switch (which)
        {
            case 0: F0(s); break;
            case 1: F1(s); break;
            case 2: F2(s, 1, 2, 3, 4, 5, 6, 7, 8); break;
            case 3: F3(s); break;
            case 4: F4<string>(s); break;
            case 5: F5(s); break;
            case 6: F6(s); break;
            default: F7(s); break;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void F0(Shadow* s) { Push(s, 0); Go(s); Pop(s); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void F1(Shadow* s) { Push(s, 1); Go(s); Go(s); Pop(s); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long F2(Shadow* s, long a, long b, long c, long d, long e, long f, long g, long h)
    {
        Push(s, 2);
        Go(s);
        Pop(s);
        return a * b + c * d + e * f + g * h;
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int F3(Shadow* s)
    {
        Push(s, 3);
        int* room = stackalloc int[(int)(Next(s) % 2000) + 1];
        room[0] = 3;
        Go(s);
        Pop(s);
        return room[0];
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static Type F4<T>(Shadow* s) { Push(s, 4); Go(s); Pop(s); return typeof(T); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void F5(Shadow* s) { Push(s, 5); try { Go(s); } finally { Pop(s); } }
    // A P/Invoke of its own: its frame is linked while it calls on.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void F6(Shadow* s) { Push(s, 6); usleep(Next(s) % 30); Go(s); sched_yield(); Pop(s); }
    // From native code back into managed code.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void F7(Shadow* s) { Push(s, 7); Oracle.oracle_torn_call(&Back, s); Pop(s); }
    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    static void Back(void* s) => Go((Shadow*)s);

    static void Work(int rounds)
    {
        Shadow* s = Oracle.oracle_torn_begin();
        for (int i = 0; i < rounds && Oracle.oracle_scene_done() == 0; i++) Call(s, Next(s) & 7);
        Oracle.oracle_torn_end(s);
    }

    // A shadow is not kept of these: their frames must lead to the base, whatever they are.
    static void Brief() { usleep(50); Thread.Yield(); }

    internal static void Run()
    {
        var threads = new Thread[4];
        for (int i = 0; i < threads.Length; i++)
        {
            int rounds = i < 2 ? int.MaxValue : 5;
            threads[i] = new Thread(() => Work(rounds));
            threads[i].Start();
        }
        while (Oracle.oracle_scene_done() == 0)
        {
            var brief = new Thread(Brief);
            brief.Start();
            brief.Join();
            for (int i = 2; i < threads.Length; i++)
                if (threads[i].Join(0)) { threads[i] = new Thread(() => Work(5)); threads[i].Start(); }
        }
        foreach (Thread thread in threads) thread.Join();
    }
}
