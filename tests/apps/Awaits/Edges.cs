// SPDX-License-Identifier: MIT
// Every way in which one method may await another, each in two chains that run through the same methods at once,
// two times each: only the awaiting methods differ. The body of a chain gets the leaf that it calls as an argument, so
// that the truth is on the stack itself.
using System.Runtime.CompilerServices;

static partial class Leaf
{
    [MethodImpl(MethodImplOptions.NoInlining)] public static void SyncRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void SyncBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void PrefixRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void PrefixBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void AfterRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void AfterBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void ChainedRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void ChainedBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void LongRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void LongBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void InlineRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void InlineBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void StreamRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void StreamBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void NestedRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void NestedBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void SharedRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void SharedBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void LoopedRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void LoopedBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void DisposeRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void DisposeBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void PooledRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void PooledBlue() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void LimitedRed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)] public static void LimitedBlue() => Work();
}

static class Sync  // what Task.Run runs is no async method
{
    static void Body(bool red) { if (red) Leaf.SyncRed(); else Leaf.SyncBlue(); }
    static Task Run(bool red) => Task.Run(() => Body(red));
    public static async Task Red() => await Run(true);
    public static async Task Blue() => await Run(false);
}

static class Prefix  // what an async method does before it first awaits
{
    static async Task Body(bool red)
    {
        if (red) Leaf.PrefixRed(); else Leaf.PrefixBlue();
        await Task.Yield();
        if (red) Leaf.PrefixRed(); else Leaf.PrefixBlue();
    }
    static Task Run(bool red) => Task.Run(() => Body(red));
    public static async Task Red() => await Run(true);
    public static async Task Blue() => await Run(false);
}

static class After
{
    static void Body(bool red) { if (red) Leaf.AfterRed(); else Leaf.AfterBlue(); }
    static Task<int> Run(bool red) => Task.Delay(1).ContinueWith(t => { Body(red); return 1; }, TaskScheduler.Default);
    public static async Task Red() => await Run(true);
    public static async Task Blue() => await Run(false);
}

static class Chained  // what continues runs on top of the task that it continues, when that has finished
{
    static void Body(bool red) { if (red) Leaf.ChainedRed(); else Leaf.ChainedBlue(); }
    static async Task Other(Task task) { await task; }
    static async Task Run(bool red)
    {
        var first = new Task(() => Thread.Sleep(1));
        Task second = first.ContinueWith(t => Body(red), TaskContinuationOptions.ExecuteSynchronously);
        Task other = Other(first);
        first.Start();
        await second;
        await other;
    }
    public static async Task Red() => await Run(true);
    public static async Task Blue() => await Run(false);
}

static class Long  // a thread of its own, which is there before it is awaited
{
    static void Body(bool red) { Thread.Sleep(5); if (red) Leaf.LongRed(); else Leaf.LongBlue(); }
    static Task Run(bool red) =>
        Task.Factory.StartNew(() => Body(red), default, TaskCreationOptions.LongRunning, TaskScheduler.Default);
    public static async Task Red() => await Run(true);
    public static async Task Blue() => await Run(false);
}

static class Inline  // a task that is run where it is waited for, with somebody else who awaits it
{
    static void Body(bool red) { if (red) Leaf.InlineRed(); else Leaf.InlineBlue(); }
    static async Task Other(Task task) => await task;
    static async Task Run(bool red)
    {
        await Task.Yield();
        var task = new Task(() => Body(red));
        Task other = Other(task);
        task.RunSynchronously();
        await other;
    }
    public static async Task Red() => await Run(true);
    public static async Task Blue() => await Run(false);
}

static class Stream
{
    static async IAsyncEnumerable<int> Items(bool red)
    {
        for (int i = 0; i < 3; i++)
        {
            await Task.Yield();
            if (red) Leaf.StreamRed(); else Leaf.StreamBlue();
            yield return i;
        }
    }
    public static async Task Red() { await foreach (int item in Items(true)) GC.KeepAlive(item); }
    public static async Task Blue() { await foreach (int item in Items(false)) GC.KeepAlive(item); }
}

static class Nested  // a stream that reads another one, the one of values and the other of objects
{
    static async IAsyncEnumerable<string> Inner(bool red)
    {
        for (int i = 0; i < 3; i++)
        {
            await Task.Delay(1).ConfigureAwait(false);
            if (red) Leaf.NestedRed(); else Leaf.NestedBlue();
            yield return "a";
        }
    }
    static async IAsyncEnumerable<int> Outer(bool red)
    {
        await foreach (string item in Inner(red).ConfigureAwait(false)) yield return item.Length;
    }
    public static async Task Red() { await foreach (int item in Outer(true)) GC.KeepAlive(item); }
    public static async Task Blue() { await foreach (int item in Outer(false)) GC.KeepAlive(item); }
}

static class Shared  // a generic stream, whose code two types share; fed by what a task runs inside another task
{
    static string Body(bool red) { if (red) Leaf.SharedRed(); else Leaf.SharedBlue(); return "a"; }
    static async IAsyncEnumerable<T> Items<T>(bool red, T last) where T : class
    {
        yield return last;
        await Task.Run(async () => { await Task.Run(() => Body(red)); });
        yield return last;
    }
    public static async Task Red() { await foreach (string item in Items(true, "a")) GC.KeepAlive(item); }
    public static async Task Blue() { await foreach (object item in Items(false, new object())) GC.KeepAlive(item); }
}

static class Dispose  // who leaves a stream waits for its end; by a Task that is made for it
{
    static async IAsyncEnumerable<int> Items(bool red)
    {
        try
        {
            yield return 1;
            yield return 2;
        }
        finally
        {
            await Task.Yield();
            if (red) Leaf.DisposeRed(); else Leaf.DisposeBlue();
        }
    }
    static async Task Run(bool red)
    {
        IAsyncEnumerator<int> items = Items(red).GetAsyncEnumerator();
        await items.MoveNextAsync();
        await items.DisposeAsync().AsTask();
    }
    public static async Task Red() => await Run(true);
    public static async Task Blue() => await Run(false);
}

static class Pooled  // boxes that are used again and again, and are no tasks
{
    static async Task Body(bool red)
    {
        await Task.Yield();
        if (red) Leaf.PooledRed(); else Leaf.PooledBlue();
    }
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    static async ValueTask Low(bool red) => await Body(red);
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    static async ValueTask<int> Middle(bool red) { await Low(red); return 1; }
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    static async ValueTask<string> High(bool red) => (await Middle(red).ConfigureAwait(false)).ToString();
    public static async Task Red() => await High(true);
    public static async Task Blue() => await High(false).AsTask();
}

static class Limited
{
    static async Task Body(bool red)
    {
        await Task.Yield();
        if (red) Leaf.LimitedRed(); else Leaf.LimitedBlue();
    }
    public static async Task Red() => await Body(true).WaitAsync(TimeSpan.FromMinutes(1));
    public static async Task Blue() => await Task.WhenAny(Body(false), Task.Delay(60000));
}

static class Looped  // a task that has been awaited before, by who gave up
{
    static async Task Body(bool red)
    {
        for (int i = 0; i < 3; i++)
        {
            await Task.Delay(3);
            if (red) Leaf.LoopedRed(); else Leaf.LoopedBlue();
        }
    }
    static async Task Run(bool red)
    {
        Task body = Body(red);
        await Task.WhenAny(body, Task.Delay(1));
        await Task.WhenAny(body, Task.Delay(1));
        await Task.WhenAny(body, Task.Delay(60000));
    }
    public static async Task Red() => await Run(true);
    public static async Task Blue() => await Run(false);
}

static class Edges
{
    public static readonly (string Leaf, string Between, Func<Task> Red, Func<Task> Blue)[] All = [
        ("Sync", "", Sync.Red, Sync.Blue),
        ("Prefix", "", Prefix.Red, Prefix.Blue),
        ("After", "", After.Red, After.Blue),
        ("Long", "", Long.Red, Long.Blue),
        ("Chained", "Chained.Run;", Chained.Red, Chained.Blue),
        ("Inline", "Inline.Run;", Inline.Red, Inline.Blue),
        ("Stream", "", Stream.Red, Stream.Blue),
        ("Nested", "Nested.Outer;", Nested.Red, Nested.Blue),
        ("Shared", "Shared.Items.lambda#0;Shared.Items;", Shared.Red, Shared.Blue),
        ("Dispose", "Dispose.Run;", Dispose.Red, Dispose.Blue),
        ("Pooled", "Pooled.Low;Pooled.Middle;Pooled.High;", Pooled.Red, Pooled.Blue),
        ("Looped", "Looped.Run;", Looped.Red, Looped.Blue),
        ("Limited", "", Limited.Red, Limited.Blue),
    ];
}
