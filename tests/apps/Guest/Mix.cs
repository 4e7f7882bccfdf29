// SPDX-License-Identifier: MIT
// So and so many threads that sleep, run, take naps, and begin and end, while the profiler makes its
// rounds (tests/guest/rounds.cpp). Says on stdout how many threads ended in a second, and how many turns
// those that nap took.
using System.Diagnostics;
using System.Globalization;
using System.Runtime.CompilerServices;

namespace Guest;

static class Mix
{
    static readonly ManualResetEvent Never = new(false);
    static volatile bool over;
    static long ended, naps;
    static int sink;

    // Stacks of 6 to 20 managed frames.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Sleep(int depth)
    {
        if (depth > 0) return Sleep(depth - 1) + 1;
        Never.WaitOne();
        return 0;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Turn(int n) => n < 2 ? n : Turn(n - 1) + Turn(n - 2);

    static void Run()
    {
        while (!over) sink += Turn(12);
    }

    static void Nap(int i)
    {
        for (; !over; Interlocked.Increment(ref naps))
        {
            sink += Turn(14);
            Thread.Sleep(1 + i % 5);
        }
    }

    static void Breed()
    {
        while (!over)
        {
            Thread[] brood = [.. Enumerable.Range(0, 4).Select(i => new Thread(() => sink += Turn(i)))];
            foreach (Thread one in brood) one.Start();
            foreach (Thread one in brood) one.Join();
            Interlocked.Add(ref ended, brood.Length);
        }
    }

    internal static int Run(int sleeping, int running, int napping, int breeding)
    {
        List<Thread> all = [];
        void Start(int count, Action<int> place)
        {
            for (int i = 0; i < count; i++)
            {
                int number = i;
                all.Add(new Thread(() => place(number)) { IsBackground = true });
                all[^1].Start();
            }
        }
        Start(sleeping, i => sink += Sleep(i % 15));
        Start(napping, Nap);
        Start(breeding, _ => Breed());
        foreach (Thread one in all.Take(sleeping))
            while ((one.ThreadState & System.Threading.ThreadState.WaitSleepJoin) == 0) Thread.Sleep(1);
        Start(running, _ => Run());
        Thread.Sleep(200);
        long ended0 = Interlocked.Read(ref ended), naps0 = Interlocked.Read(ref naps), from = Stopwatch.GetTimestamp();
        int code = Profiler.guest_run();
        double seconds = Stopwatch.GetElapsedTime(from).TotalSeconds;
        string text = string.Create(CultureInfo.InvariantCulture,
            $"threads/s {(Interlocked.Read(ref ended) - ended0) / seconds:F1} naps/s {(Interlocked.Read(ref naps) - naps0) / seconds:F1}");
        over = true;
        Never.Set();
        foreach (Thread one in all) one.Join();
        Console.WriteLine(text);
        return code;
    }
}
