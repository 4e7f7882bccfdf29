// SPDX-License-Identifier: MIT
// Managed code that calls native code, and native code that calls back.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Step;

static unsafe class Native
{
    [DllImport("libc")] static extern int getppid();
    [DllImport("libc", SetLastError = true)] static extern int close(int fd);
    [DllImport("libc")] static extern void* memcpy(void* to, void* from, nuint size);
    [DllImport("libc")] static extern void* malloc(nuint size);
    [DllImport("libc")] static extern void free(void* memory);
    [DllImport("libc", CharSet = CharSet.Ansi)] static extern nuint strlen(string text);
    [DllImport("libc", EntryPoint = "abs"), SuppressGCTransition] static extern int QuickAbs(int x);

    internal static IEnumerable<Program.Scene> Scenes()
    {
        yield return new("native: a system call", () => sum += getppid());
        yield return new("native: an error code", () => sum += close(-1));
        yield return new("native: memcpy", Copy);
        yield return new("native: malloc", Allocate);
        yield return new("native: the C library", () => sum += (int)Mark.step_libc(2));
        yield return new("native: marshalled text", () => sum += (int)strlen("some text"));
        yield return new("native: without a transition", () => sum += QuickAbs(-3));
        yield return new("native: callbacks", Callbacks);
        yield return new("native: qsort with a managed comparison", Sort);
        yield return new("native: time", () => sum += (int)System.Diagnostics.Stopwatch.GetTimestamp() + Environment.TickCount);
        yield return new("native: a child process", Child);
        yield return new("first: a P/Invoke", () => sum += getpgrp(), Cold: true);
    }

    [DllImport("libc")] static extern int getpgrp();

    static int sum;

    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    static int Callback(int depth) => depth == 0 ? 1 : Mark.step_callback(&Callback, depth - 1) + depth;

    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    static int Compare(int* a, int* b) => a->CompareTo(*b);

    static void Child()
    {
        using System.Diagnostics.Process child = System.Diagnostics.Process.Start(new System.Diagnostics.ProcessStartInfo("/bin/true", ""));
        child.WaitForExit();
        sum += child.ExitCode;
    }

    static void Callbacks() => sum += Mark.step_callback(&Callback, 4);

    static void Sort()
    {
        int* numbers = stackalloc int[9];
        for (int i = 0; i < 9; i++) numbers[i] = i * 5 % 9;
        Mark.step_sort(numbers, 9, &Compare);
        sum += numbers[2];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Copy()
    {
        byte* from = stackalloc byte[3000], to = stackalloc byte[3000];
        foreach (int size in stackalloc[] { 1, 15, 64, 200, 1000, 3000 }) memcpy(to, from, (nuint)size);
        Buffer.MemoryCopy(from, to, 3000, 2500);
        new Span<byte>(to, 900).Fill(7);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate()
    {
        foreach (int size in stackalloc[] { 8, 100, 5000, 300_000 })
        {
            byte* memory = (byte*)malloc((nuint)size);
            memory[0] = 1;
            free(memory);
        }
    }
}
