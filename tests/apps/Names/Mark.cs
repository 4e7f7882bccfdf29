// SPDX-License-Identifier: MIT
// The truth about a name: each is printed once, and its caller is busy for a while under it. With NAMES_WAIT=1, each with
// generic arguments is printed when its caller is there, which goes on when it has read a line.
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

public static class Mark
{
    private static readonly bool Waits = Environment.GetEnvironmentVariable("NAMES_WAIT") == "1";
    private static readonly SortedSet<string> Names = new(StringComparer.Ordinal);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void At(string name)
    {
        if (Waits)
        {
            if (!name.Contains('<')) return;
            Console.WriteLine(name);
            Console.ReadLine();
            return;
        }
        lock (Names) Names.Add(name);
        for (long end = CpuTime() + 40_000_000; CpuTime() < end;) { }
    }

    // Of this thread, in nanoseconds: a busy machine must not take the samples away.
    private static long CpuTime()
    {
        long[] time = new long[2];
        if (clock_gettime(3, time) != 0) throw new InvalidOperationException();
        return time[0] * 1_000_000_000 + time[1];
    }

    [DllImport("libc")]
    private static extern int clock_gettime(int clock, [In, Out] long[] time);

    // Three threads of one name, and two without a name, busy one after the other. Must be
    // called on the first thread: the kernel gives a thread without a name its creator's name.
    public static void Crew()
    {
        foreach (string? name in new[] { "Baker", null, "Baker", null, "Baker" })
        {
            Thread thread = new(static () => At("Mark.Crew.lambda#0"));
            if (name != null) thread.Name = name;
            thread.Start();
            thread.Join();
        }
    }

    // By a worker of the pool: a thread without a name is none of them.
    public static void Hire()
    {
        if (!Thread.CurrentThread.IsThreadPoolThread) throw new InvalidOperationException();
        Thread thread = new(static () => At("Mark.Hire.lambda#0"));
        thread.Start();
        thread.Join();
    }

    public static void Done()
    {
        foreach (string name in Names) Console.WriteLine(name);
    }
}
