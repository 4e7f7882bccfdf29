// SPDX-License-Identifier: MIT
// Chains of async methods of known truth. Each ends in an async method that is busy, after real
// suspensions, in a leaf of its own: a sample of Leaf.X must have the awaiting methods that are
// printed for it ("leaf: next awaiter;its awaiter;...", "-" if there is none), and never another
// chain's. Before that each chain runs for a while with Leaf.Warm above its leaf. The work is counted,
// not timed. Awaits.dll chains|kinds|edges ROUNDS [gc|events]; gc: during compacting collections.
using System.Diagnostics;
using System.Runtime.CompilerServices;

static partial class Leaf
{
    public static long Sum;
    public static volatile bool Warming;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Spin()
    {
        long sum = Sum;
        for (int i = 0; i < 3_000_000; i++) sum = sum * 31 + i;
        Sum = sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void Warm() => Spin();
    static void Work() { if (Warming) Warm(); else Spin(); }

    [MethodImpl(MethodImplOptions.NoInlining)] public static void Red() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Blue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Yielded() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Valued() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Generic() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void All() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Any() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Ran() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Nobody() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Scheduled() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Context() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Continued() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Inlined() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void Twice() => Work();

    [MethodImpl(MethodImplOptions.NoInlining)] static void WarmSleep() => Thread.Sleep(5);
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Slept() { if (Warming) WarmSleep(); else Thread.Sleep(5); }
}

// Two chains that end in the same async method: only the awaiters distinguish them. `Deep.Work` gets the
// leaf that it calls as an argument, so that the truth is on the stack itself.
static class Deep
{
    public static async Task Work(bool red)
    {
        byte[] garbage = new byte[64];
        await Task.Delay(1).ConfigureAwait(false);
        if (red) Leaf.Red(); else Leaf.Blue();
        await Task.Yield();
        if (red) Leaf.Red(); else Leaf.Blue();
        GC.KeepAlive(garbage);
    }

    public static async Task<int> Middle(bool red)
    {
        await Task.Yield();
        await Work(red);
        return 1;
    }

    public static async Task RedOuter() { if (await Middle(true) != 1) throw new InvalidOperationException(); }
    public static async Task BlueOuter() { await Task.Delay(1); await Middle(false); }
}

static class Kinds
{
    public static async Task YieldTop() => await YieldMiddle();
    static async Task YieldMiddle() => await YieldLow();
    static async Task YieldLow() { await Task.Yield(); Leaf.Yielded(); }

    public static async Task ValueTop() => await ValueMiddle();
    static async ValueTask<int> ValueMiddle() => await ValueLow();
    static async ValueTask<int> ValueLow() { await Task.Delay(1); Leaf.Valued(); return 3; }

    public static async Task GenericTop() { await GenericMiddle("a"); await GenericMiddle(new List<int>()); await GenericMiddle(7); }
    static async Task<T> GenericMiddle<T>(T value) => await Box<T>.Low(value);
    static class Box<T>
    {
        public static async Task<T> Low(T value) { await Task.Yield(); Leaf.Generic(); return value; }
    }

    public static async Task AllTop() { Task a = AllLow(), b = Task.Delay(1); await Task.WhenAll(a, b); }
    static async Task AllLow() { await Task.Delay(1); Leaf.All(); }

    public static async Task AnyTop() { Task a = AnyLow(), b = Task.Delay(10000); await Task.WhenAny(a, b); }
    static async Task AnyLow() { await Task.Yield(); Leaf.Any(); }

    public static async Task RunTop() => await Task.Run(async () => { await Task.Yield(); Leaf.Ran(); });

    public static async Task NobodyTop()
    {
        var done = new TaskCompletionSource();
        NobodyVoid(done);
        await done.Task;
    }
    static async void NobodyVoid(TaskCompletionSource done)
    {
        await Task.Yield();
        Leaf.Nobody();
        done.SetResult();
    }

    public static async Task SchedulerTop() =>
        await Task.Factory.StartNew(SchedulerMiddle, default, TaskCreationOptions.None, OneThread.Instance).Unwrap();
    static async Task SchedulerMiddle() => await SchedulerLow();
    static async Task SchedulerLow() { await Task.Yield(); Leaf.Scheduled(); }

    public static async Task ContextTop()
    {
        await Task.Yield();
        SynchronizationContext.SetSynchronizationContext(new PoolContext());
        Task low = ContextMiddle();
        SynchronizationContext.SetSynchronizationContext(null);
        await low;
    }
    static async Task ContextMiddle() { await ContextLow(); }
    static async Task ContextLow() { await Task.Delay(1); Leaf.Context(); }

    public static async Task ContinueTop() => await ContinueLow().ContinueWith(t => t.Status);
    static async Task ContinueLow() { await Task.Yield(); Leaf.Continued(); }

    // The continuation runs on the stack of the method that has ended, without awaiting it.
    public static async Task InlineTop() => await InlineMiddle();
    static async Task InlineMiddle() { await InlineLow(); Leaf.Inlined(); }
    static async Task InlineLow() => await Task.Delay(1);

    // It continues once both await it: until then it has a single awaiter.
    public static async Task TwiceTop()
    {
        var both = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
        Task low = TwiceLow(both.Task), all = Task.WhenAll(TwiceOne(low), TwiceTwo(low));
        both.SetResult();
        await all;
    }
    static async Task TwiceOne(Task low) => await low;
    static async Task TwiceTwo(Task low) => await low;
    static async Task TwiceLow(Task both) { await both; Leaf.Twice(); }

    public static async Task SleepTop() => await SleepLow();
    static async Task SleepLow() { await Task.Yield(); Leaf.Slept(); }
}

// While the events of tasks have a listener, each continuation is wrapped.
sealed class TaskEvents : System.Diagnostics.Tracing.EventListener
{
    protected override void OnEventSourceCreated(System.Diagnostics.Tracing.EventSource source)
    {
        if (source.Name == "System.Threading.Tasks.TplEventSource")
            EnableEvents(source, System.Diagnostics.Tracing.EventLevel.Informational);
    }
}

sealed class OneThread : TaskScheduler
{
    public static readonly OneThread Instance = new();
    readonly System.Collections.Concurrent.BlockingCollection<Task> tasks = [];

    OneThread()
    {
        var thread = new Thread(() => { foreach (Task task in tasks.GetConsumingEnumerable()) TryExecuteTask(task); });
        thread.IsBackground = true;
        thread.Start();
    }

    protected override void QueueTask(Task task) => tasks.Add(task);
    protected override bool TryExecuteTaskInline(Task task, bool queued) => false;
    protected override IEnumerable<Task> GetScheduledTasks() => [];
}

sealed class PoolContext : SynchronizationContext
{
    public override void Post(SendOrPostCallback d, object? state) => ThreadPool.QueueUserWorkItem(_ =>
    {
        SetSynchronizationContext(this);
        d(state);
        SetSynchronizationContext(null);
    });
}

static class Program
{
    static async Task Repeat(Func<Task> chain, int rounds)
    {
        await Task.Yield();
        for (int i = 0; i < rounds; i++) await chain();
    }

    static readonly (string Leaf, string Awaiters, Func<Task> Chain)[] Kinds = [
        ("Yielded", "Kinds.YieldMiddle;Kinds.YieldTop;Program.Repeat;Program.Main", global::Kinds.YieldTop),
        ("Valued", "Kinds.ValueMiddle;Kinds.ValueTop;Program.Repeat;Program.Main", global::Kinds.ValueTop),
        ("Generic", "Kinds.GenericMiddle;Kinds.GenericTop;Program.Repeat;Program.Main", global::Kinds.GenericTop),
        ("All", "Kinds.AllTop;Program.Repeat;Program.Main", global::Kinds.AllTop),
        ("Any", "Kinds.AnyTop;Program.Repeat;Program.Main", global::Kinds.AnyTop),
        ("Ran", "Kinds.RunTop;Program.Repeat;Program.Main", global::Kinds.RunTop),
        ("Scheduled", "Kinds.SchedulerMiddle;Kinds.SchedulerTop;Program.Repeat;Program.Main", global::Kinds.SchedulerTop),
        ("Context", "Kinds.ContextMiddle;Kinds.ContextTop;Program.Repeat;Program.Main", global::Kinds.ContextTop),
        ("Continued", "Kinds.ContinueTop;Program.Repeat;Program.Main", global::Kinds.ContinueTop),
        ("Inlined", "Kinds.InlineTop;Program.Repeat;Program.Main", global::Kinds.InlineTop),
        ("Slept", "Kinds.SleepTop;Program.Repeat;Program.Main", global::Kinds.SleepTop),
        ("Nobody", "-", global::Kinds.NobodyTop),
        ("Twice", "-", global::Kinds.TwiceTop),
    ];

    static volatile bool over;

    static void Collect()
    {
        while (!over)
        {
            GC.Collect(2, GCCollectionMode.Forced, blocking: true, compacting: true);
            Thread.Sleep(1);
        }
    }

    static Task Both(Func<Task> red, Func<Task> blue, int rounds) =>
        Task.WhenAll(Repeat(red, rounds), Repeat(blue, rounds), Repeat(red, rounds), Repeat(blue, rounds));

    static async Task Main(string[] args)
    {
        int rounds = int.Parse(args[1]);
        if (args.Length > 2 && args[2] == "gc") new Thread(Collect) { Name = "collector" }.Start();
        using var events = args.Length > 2 && args[2] == "events" ? new TaskEvents() : null;
        if (args[0] == "chains")
        {
            Console.WriteLine("Red: Deep.Middle;Deep.RedOuter;Program.Repeat;Program.Main");
            Console.WriteLine("Blue: Deep.Middle;Deep.BlueOuter;Program.Repeat;Program.Main");
            Leaf.Warming = true;
            await Both(Deep.RedOuter, Deep.BlueOuter, rounds);
            Leaf.Warming = false;
            await Both(Deep.RedOuter, Deep.BlueOuter, rounds);
        }
        else if (args[0] == "edges")
        {
            foreach (var (leaf, between, red, blue) in Edges.All)
            {
                Console.WriteLine($"{leaf}Red: {between}{leaf}.Red;Program.Repeat;Program.Main");
                Console.WriteLine($"{leaf}Blue: {between}{leaf}.Blue;Program.Repeat;Program.Main");
                Leaf.Warming = true;
                await Both(red, blue, rounds / 4 + 1);
                Leaf.Warming = false;
                await Both(red, blue, rounds);
            }
        }
        else
        {
            foreach (var (leaf, awaiters, chain) in Kinds)
            {
                Console.WriteLine($"{leaf}: {awaiters}");
                Leaf.Warming = true;
                await Repeat(chain, rounds / 2);
                Leaf.Warming = false;
                await Repeat(chain, rounds);
            }
        }
        over = true;
    }
}
