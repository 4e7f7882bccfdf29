// SPDX-License-Identifier: MIT
// Suspended async operations of known number, chain and line (tests/live/async/async.py): each await that is
// looked for has a comment "at: NAME" on its line. Prints "ready" when all of them are suspended, and ends
// with 0 when all that can be completed has been, at the end of its input.
// Suspended.dll [gc|many N]    gc: compacting collections all the time; many: N operations more.
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Threading.Channels;

List<TaskCompletionSource> sources = [];
List<Task> all = [];

Task Later()
{
    TaskCompletionSource source = new(TaskCreationOptions.RunContinuationsAsynchronously);
    sources.Add(source);
    return source.Task;
}
void Start(int count, Func<Task> operation)
{
    for (int i = 0; i < count; i++) all.Add(operation());
}

CancellationTokenSource end = new();
SemaphoreSlim gate = new(0);
Start(300, () => Shop.Checkout(Later()));
Start(50, () => Shop.Sleep(end.Token));
Start(20, () => Shop.Enter(gate));
Start(1, () => Nested.Outer(Later));
Start(7, () => Stream.Sum(Later()));
Start(11, () => Pooled.Outer(Later()));
Start(5, () => Runs.Outer(Later()));
Start(6, () => Generic<string>.Outer(Later(), "text"));
Start(2, () => Generic<int>.Outer(Later(), 1));

Start(9, () => Custom.Leads(Later()));
Start(6, () => Custom.Secret(Later()));
Start(4, () => Shop.Unseen(Later()));

Task shared = Shared.One(Later());
Start(4, () => Shared.User(shared));

Channel<int> channel = Channel.CreateUnbounded<int>();
Start(3, () => Shop.Read(channel.Reader));

using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
listener.Listen();
Start(1, () => Shop.Accept(listener));

ManualResetEventSlim stop = new();
Task running = Task.Factory.StartNew(stop.Wait, TaskCreationOptions.LongRunning);
Start(2, () => Shop.Runs(running));
Start(1, () => Shop.Any(Later(), Later()));

// These two never end.
TaskCompletionSource go = new();
Hang hang = new();
hang.First = hang.Ping(go.Task);
hang.Second = hang.Pong(go.Task);
go.SetResult();

Task blocking = Later();
new Thread(() => Blocked.Async(blocking).Wait()) { IsBackground = true }.Start();

if (args is ["many", string many]) Start(int.Parse(many), () => Shop.Many(Later()));
if (args is ["gc"])
    new Thread(() =>
    {
        for (;;)
        {
            List<byte[]> garbage = [];
            for (int i = 0; i < 2000; i++) garbage.Add(new byte[100 + i % 900]);
            for (int i = 0; i < garbage.Count; i += 2) garbage[i] = [];
            GC.Collect(2, GCCollectionMode.Forced, true, compacting: true);
        }
    }) { IsBackground = true }.Start();

while (Volatile.Read(ref Blocked.Count) == 0 || running.Status != TaskStatus.Running) Thread.Sleep(10);
Console.WriteLine("ready");
Console.In.ReadToEnd();
stop.Set();
end.Cancel();
gate.Release(20);
channel.Writer.Complete();
listener.Close();
foreach (TaskCompletionSource source in sources) source.SetResult();
try { Task.WaitAll([.. all]); }
catch (AggregateException e) { e.Handle(one => one is OperationCanceledException or SocketException or ChannelClosedException); }
Console.WriteLine("done");

static class Shop
{
    public static async Task Checkout(Task source)
    {
        await Cart(source); // at: Checkout
        await Task.Yield();
    }
    static async Task<int> Cart(Task source)
    {
        await Task.CompletedTask;
        await Send(source).ConfigureAwait(false); // at: Cart
        return 1;
    }
    static async ValueTask<int> Send(Task source)
    {
        int size = source.Id;
        if (size < 0) await Task.Delay(size);
        await source; // at: Send
        return size;
    }
    public static async Task Sleep(CancellationToken end) =>
        await Task.Delay(Timeout.Infinite, end); // at: Sleep
    public static async Task Enter(SemaphoreSlim gate) =>
        await gate.WaitAsync(); // at: Enter
    public static async Task<int> Read(ChannelReader<int> reader) =>
        await reader.ReadAsync(); // at: Read
    public static async Task Accept(Socket listener) =>
        await listener.AcceptAsync(); // at: Accept
    public static async Task Runs(Task running) =>
        await running; // at: Runs
    public static async Task Many(Task source) =>
        await source; // at: Many
    // No line is right for this await.
    public static async Task Unseen(Task source)
    {
        GC.KeepAlive(source);
#line hidden
        await source;
#line default
        GC.KeepAlive(source);
    }
    public static async Task Any(Task one, Task two) =>
        await await Task.WhenAny(one, two, Task.Delay(Timeout.Infinite)); // at: Any
}

static class Nested
{
    public static async Task Outer(Func<Task> later) =>
        await Task.WhenAll(Branch(later), Branch(later), Branch(later)); // at: Outer
    static async Task<int> Branch(Func<Task> later)
    {
        int[] all = await Task.WhenAll(Leaf(later()), Leaf(later())); // at: Branch
        return all.Length;
    }
    static async Task<int> Leaf(Task source)
    {
        await source; // at: Leaf
        return 1;
    }
}

static class Stream
{
    public static async Task<int> Sum(Task source)
    {
        int sum = 0;
        await foreach (int item in Items(source)) // at: Sum
            sum += item;
        return sum;
    }
    static async IAsyncEnumerable<int> Items(Task source)
    {
        yield return 1;
        await source; // at: Items
        yield return 2;
    }
}

static class Pooled
{
    public static async Task Outer(Task source) =>
        await Inner(source); // at: Pooled
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    static async ValueTask<int> Inner(Task source)
    {
        await source; // at: Inner
        return 1;
    }
}

// Awaiters that are structs with more in them than what they wait for, which comes last.
struct Named(string name, Task source) : INotifyCompletion
{
    public readonly Named GetAwaiter() => this;
    public readonly bool IsCompleted => false;
    public readonly void OnCompleted(Action then) => source.GetAwaiter().OnCompleted(then);
    public readonly void GetResult() => GC.KeepAlive(name);
}

// Nothing on the heap says what this one waits for: a list has its continuation.
struct Opaque<T>(T name, Task source) : INotifyCompletion
{
    static readonly List<Action> waiting = [];
    public readonly Opaque<T> GetAwaiter() => this;
    public readonly bool IsCompleted => false;
    public readonly void OnCompleted(Action then)
    {
        lock (waiting) waiting.Add(then);
        source.ContinueWith(static _ => { lock (waiting) { foreach (Action one in waiting) one(); waiting.Clear(); } },
            TaskContinuationOptions.ExecuteSynchronously);
    }
    public readonly void GetResult() => GC.KeepAlive(name);
}

static class Custom
{
    public static async Task Leads(Task source) =>
        await new Named("leads", source); // at: Leads
    public static async Task Secret(Task source) =>
        await new Opaque<string>("secret", source); // at: Secret
}

static class Runs
{
    public static async Task Outer(Task source) =>
        await Task.Run(async () => await source); // at: Run
}

static class Generic<T>
{
    public static async Task<T> Outer(Task source, T value) =>
        await Inner(source, value); // at: Generic
    static async Task<T> Inner<U>(Task source, U value) where U : T
    {
        await source; // at: GenericInner
        return value;
    }
}

static class Shared
{
    public static async Task One(Task source) =>
        await source; // at: One
    public static async Task User(Task shared) =>
        await shared; // at: User
}

sealed class Hang
{
    public Task? First, Second;
    public async Task Ping(Task go)
    {
        await go;
        await Second!; // at: Ping
    }
    public async Task Pong(Task go)
    {
        await go;
        await First!; // at: Pong
    }
}

static class Blocked
{
    public static int Count;
    public static async Task Async(Task source)
    {
        Interlocked.Increment(ref Count);
        await source; // at: Blocked
    }
}
