// SPDX-License-Identifier: MIT
// Known labels: each of five methods burns CPU time under an Activity of its own, or under none, and all of
// them at once, over awaits, hops of the thread pool and nested Activities. One thread sleeps under an
// Activity. First throws, once a round.
// Prints "label METHOD TRACE SPAN,SPAN... NANOSECONDS", with - for no label, and "batch".
// Arguments: rounds of 20 ms of CPU time for each; how often to repeat all that, each time on a line of standard
// input (without: once, at once). In between a thread has an Activity, Early, with which it then continues.
// "switch", seconds: as many changes as possible instead, awake and asleep; each Activity is a span of its
// own, printed as *.
// "members", a path: compiles each method of that assembly, and prints "compiled COUNT".
using System;
using System.Diagnostics;
using System.Linq;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

// The program's own startup hook, for DOTNET_STARTUP_HOOKS.
static class StartupHook
{
    public static void Initialize() => Console.WriteLine("hook of the program");
}

static class Program
{
    const int ThreadCpuTime = 3;
    static long Slice = 10_000_000;

    struct TimeSpec
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc", EntryPoint = "clock_gettime")]
    static extern int ClockGetTime(int clock, out TimeSpec time);

    static volatile int sink;

    static long Now()
    {
        ClockGetTime(ThreadCpuTime, out var t);
        return t.Seconds * 1_000_000_000 + t.Nanoseconds;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Burn(long nanoseconds)
    {
        long begin = Now(), end = begin;
        for (; end - begin < nanoseconds; end = Now())
        {
            int x = 1;
            for (int i = 0; i < Slice / 100; i++) x = x * 31 + i;
            sink = x;
        }
        return end - begin;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long First()
    {
        try
        {
            if (sink != 1) throw new InvalidOperationException("under an Activity");
        }
        catch (InvalidOperationException)
        {
        }
        return Burn(Slice) + 0 * sink;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Second() => Burn(Slice) + 0 * sink;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Third() => Burn(Slice) + 0 * sink;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Nested() => Burn(Slice) + 0 * sink;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Outside() => Burn(Slice) + 0 * sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Early() => Burn(Slice) + 0 * sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Asleep(int milliseconds) => Thread.Sleep(milliseconds + 0 * sink);

    static void Print(string method, Activity? activity, long nanoseconds) =>
        Console.WriteLine($"label {method} {activity?.TraceId.ToHexString() ?? "-"} " +
                          $"{activity?.SpanId.ToHexString() ?? "-"} {nanoseconds}");

    static Activity Start(string name) => new Activity(name).SetIdFormat(ActivityIdFormat.W3C).Start();

    // Over awaits that continue on any thread of the pool.
    static async Task Under(string name, Func<long> burn, int rounds)
    {
        long all = 0;
        Activity? activity = Start(name);
        for (int i = 0; i < rounds; i++)
        {
            all += burn();
            await Task.Yield();
            all += burn();
            if (i % 8 == 7) await Task.Delay(1);
        }
        activity.Stop();
        Print(name, activity, all);
    }

    // A span within a span, again and again: the outer one is current again when the inner one stops.
    static async Task WithNested(int rounds)
    {
        long outer = 0, inner = 0;
        Activity activity = Start("Third"), child = activity;
        string span = "";
        for (int i = 0; i < rounds; i++)
        {
            outer += Third();
            child = new Activity("Nested").SetIdFormat(ActivityIdFormat.W3C).Start();
            await Task.Yield();
            inner += Nested();
            span += (span == "" ? "" : ",") + child.SpanId.ToHexString();
            child.Stop();
        }
        activity.Stop();
        Print("Third", activity, outer);
        Console.WriteLine($"label Nested {activity.TraceId.ToHexString()} {span} {inner}");
    }

    static async Task WithoutAny(int rounds)
    {
        long all = 0;
        for (int i = 0; i < rounds; i++)
        {
            GC.KeepAlive(new byte[200_000]);  // so that there is something for alloc mode to see
            all += Outside();
            await Task.Yield();
            all += Outside();
        }
        Print("Outside", null, all);
    }

    static void Sleeper(int rounds)
    {
        Activity activity = Start("Asleep");
        var watch = Stopwatch.StartNew();
        for (int i = 0; i < rounds; i++) Asleep(20);
        Print("Asleep", activity, watch.ElapsedTicks * 1_000_000_000 / Stopwatch.Frequency);
        activity.Stop();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AsleepToo() => Thread.Sleep(1 + 0 * sink);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AsleepOutside() => Thread.Sleep(1 + 0 * sink);

    static Activity Span(Activity trace) =>
        new Activity("span").SetParentId(trace.TraceId, trace.SpanId, ActivityTraceFlags.None).Start();

    static async Task KeepSwitching(Activity trace, Func<long> burn, Stopwatch watch, int seconds)
    {
        for (int i = 0; watch.Elapsed.TotalSeconds < seconds; i++)
        {
            using Activity span = Span(trace);
            burn();
            await Task.Yield();
            burn();
            if (i % 32 == 0) await Task.Delay(1);
        }
    }

    static void KeepSleeping(Activity one, Activity other, Stopwatch watch, int seconds)
    {
        while (watch.Elapsed.TotalSeconds < seconds)
        {
            using (Span(one)) Asleep(1);
            using (Span(other)) AsleepToo();
            AsleepOutside();
        }
    }

    static async Task Switch(int seconds)
    {
        Slice = 50_000;
        string[] names = { "First", "Second", "Third", "Asleep", "AsleepToo" };
        var traces = new Activity[names.Length];
        for (int i = 0; i < names.Length; i++)
        {
            traces[i] = Start(names[i]);
            traces[i].Stop();
            Console.WriteLine($"label {names[i]} {traces[i].TraceId.ToHexString()} * 0");
        }
        Print("AsleepOutside", null, 0);
        var watch = Stopwatch.StartNew();
        var sleeper = new Thread(() => KeepSleeping(traces[3], traces[4], watch, seconds)) { Name = "Sleeper" };
        sleeper.Start();
        Func<long>[] burns = { First, Second, Third };
        var tasks = new Task[burns.Length];
        for (int i = 0; i < burns.Length; i++)
        {
            int n = i;
            tasks[i] = Task.Run(() => KeepSwitching(traces[n], burns[n], watch, seconds));
        }
        await Task.WhenAll(tasks);
        sleeper.Join();
    }

    static async Task Batch(int rounds)
    {
        var sleeper = new Thread(() => Sleeper(rounds)) { Name = "Sleeper" };
        sleeper.Start();
        await Task.WhenAll(
            Task.Run(() => Under("First", First, rounds)), Task.Run(() => Under("Second", Second, rounds)),
            Task.Run(() => WithNested(rounds)), Task.Run(() => WithoutAny(rounds)));
        sleeper.Join();
    }

    // An Activity that is current already when the recording begins.
    static void StayEarly(int rounds, ManualResetEventSlim begin)
    {
        Activity activity = Start("Early");
        begin.Wait();
        long all = 0;
        for (int i = 0; i < rounds; i++) all += Early();
        Print("Early", activity, all);
        activity.Stop();
    }

    // Threads that begin the first Activities at once, while the assembly is being loaded, would begin some before the hook
    // has been told of the assembly (docs/labels.md).
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void LoadActivity() => GC.KeepAlive(Activity.Current);

    // Compiles each method of an assembly, which finds everything that it uses. Prints how many there are.
    static void CompileMembers(string path)
    {
        const BindingFlags Own = BindingFlags.DeclaredOnly | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Static | BindingFlags.Instance;
        int compiled = 0;
        foreach (Type type in Assembly.LoadFrom(path).GetTypes())
            foreach (MethodBase method in type.GetMethods(Own).Cast<MethodBase>().Concat(type.GetConstructors(Own)))
            {
                if (method.IsAbstract || method.ContainsGenericParameters || method.GetMethodBody() == null) continue;
                RuntimeHelpers.PrepareMethod(method.MethodHandle);
                compiled++;
            }
        Console.WriteLine($"compiled {compiled}");
    }

    // Longer than what is kept of a name, in characters or in bytes of UTF-8.
    static void LongNames()
    {
        foreach (string letter in new[] { "L", "漢" })
            foreach (int count in new[] { 340, 1000, 1023, 1024, 1100, 5000, 70_000 })
            {
                using Activity activity = new Activity(string.Concat(Enumerable.Repeat(letter, count))).Start();
                for (Stopwatch spins = Stopwatch.StartNew(); spins.ElapsedMilliseconds < 30;) continue;
            }
        Environment.ExitCode = 42;
    }

    static void Job(string name, int us)
    {
        using Activity activity = new Activity(name).Start();
        for (long until = Stopwatch.GetTimestamp() + us * (Stopwatch.Frequency / 1_000_000); Stopwatch.GetTimestamp() < until;) continue;
    }

    // Three names, each string of which is new; then more names than are kept.
    static void ManyNames()
    {
        for (int i = 0; i < 6000; i++) Job($"job {i % 3}", 300);
        for (int i = 0; i < 2000; i++) Job($"name {i}", 300);
        Environment.ExitCode = 42;
    }

    static async Task Main(string[] args)
    {
        if (args[0] == "members")
        {
            CompileMembers(args[1]);
            return;
        }
        LoadActivity();
        if (args[0] == "switch")
        {
            await Switch(int.Parse(args[1]));
            return;
        }
        if (args[0] == "long")
        {
            LongNames();
            return;
        }
        if (args[0] == "many")
        {
            ManyNames();
            return;
        }
        int rounds = int.Parse(args[0]);
        int batches = args.Length > 1 ? int.Parse(args[1]) : 0;
        if (batches == 0) await Batch(rounds);
        for (int i = 0; i < batches; i++)
        {
            using var begin = new ManualResetEventSlim();
            var early = new Thread(() => StayEarly(rounds, begin));
            early.Start();
            Console.WriteLine("batch");
            if (Console.ReadLine() == null) break;
            begin.Set();
            await Batch(rounds);
            early.Join();
        }
    }
}
