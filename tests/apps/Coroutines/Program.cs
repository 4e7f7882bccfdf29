// SPDX-License-Identifier: MIT
// Coroutines SECONDS [FILE]: until then, or until FILE exists, two threads compute on coroutines' stacks of a native library, of 8 KiB, and call managed code on
// a larger one; two others compute as usual, one of them with null references. Prints how much of a small stack was
// written to, and exits with 42 if all results are right.
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

public static unsafe class Program
{
    const int Rounds = 50;
    static volatile bool s_over;
    static volatile int s_wrong, s_most;
    static string? s_nothing = null;

    [DllImport("libtest_coroutines")]
    static extern int coroutines_run(int rounds, delegate* unmanaged<int, int> callback, out uint value);

    [UnmanagedCallersOnly]
    static int Called(int value) => OnCoroutine(value);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int OnCoroutine(int value)
    {
        for (int i = 0; i < 20000; i++) value = value * 31 + i;
        return value;
    }

    static void Switch()
    {
        uint expected = 0;
        for (int i = 0; !s_over; i++)
        {
            int used = coroutines_run(Rounds, &Called, out uint value);
            if (i == 0) expected = value;
            if (used < 0 || value != expected) s_wrong++;
            if (used > s_most) s_most = used;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Dereference() => s_nothing!.Length;

    static void Fail()
    {
        while (!s_over)
        {
            try { Dereference(); s_wrong++; }
            catch (NullReferenceException) { }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Plain(int value)
    {
        for (int i = 0; i < 100000; i++) value = value * 31 + i;
        return value;
    }

    static void Compute()
    {
        int value = 0;
        while (!s_over) value = Plain(value);
    }

    static int Main(string[] args)
    {
        Thread[] threads = [new(Switch), new(Switch), new(Fail), new(Compute)];
        foreach (Thread thread in threads) thread.Start();
        Console.WriteLine("ready");
        var time = Stopwatch.StartNew();
        while (time.Elapsed.TotalSeconds < double.Parse(args[0]) && !(args.Length > 1 && File.Exists(args[1]))) Thread.Sleep(20);
        s_over = true;
        foreach (Thread thread in threads) thread.Join();
        Console.WriteLine($"used {s_most} wrong {s_wrong}");
        return s_wrong == 0 ? 42 : 1;
    }
}
