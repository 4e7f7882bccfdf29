// SPDX-License-Identifier: MIT
// A Kestrel server whose requests spend 70 % of their CPU time in First and 30 % in Second, and which notes for each call how much
// it was. It serves until its standard input ends, and says where on the first line of its output.
//
//   /sync/US     both methods on one thread, one after the other; US microseconds of CPU time in all
//   /async/US    an await between them, so that they may run on two threads
//   /tick/US     as sync, after a wait whose end is the kernel's tick: a receive's time-out is counted in ticks
//   /thread/US   both on a thread that is made for this request
//   /calls       what was noted since the last time, and forgets it: per call six numbers of eight bytes, the method (0: First), the
//                thread, CLOCK_REALTIME at its begin and end in ns, and the thread's CPU clock at its begin and end
using System.Collections.Concurrent;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
builder.Logging.ClearProviders();
builder.WebHost.UseUrls("http://127.0.0.1:0");
WebApplication app = builder.Build();
Work.Calibrate();
app.MapGet("/sync/{us:int}", (int us) => Work.Both(us));
app.MapGet("/async/{us:int}", async (int us) =>
{
    Work.Part(0, us);
    await Task.Yield();
    Work.Part(1, us);
    return "done";
});
app.MapGet("/tick/{us:int}", (int us) =>
{
    Tick.Wait();
    return Work.Both(us);
});
app.MapGet("/thread/{us:int}", async (int us) =>
{
    var done = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
    new Thread(() =>
    {
        Work.Both(us);
        done.SetResult();
    }).Start();
    await done.Task;
    return "done";
});
app.MapGet("/calls", () => Results.Bytes(Calls.Take()));
await app.StartAsync();
Console.WriteLine(app.Urls.First());
Console.In.ReadToEnd();
await app.StopAsync();

static class Work
{
    static double turnsPerUs;
    static long sink;

    // A leaf without calls, the same machine code for both but for a constant: their instructions per second are the same. Never
    // compiled anew, so each has one address.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    public static long First(long turns)
    {
        ulong x = 1;
        for (long i = 0; i < turns; i++) x = x * 6364136223846793005 + 1442695040888963407;
        return (long)x;
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    public static long Second(long turns)
    {
        ulong x = 2;
        for (long i = 0; i < turns; i++) x = x * 6364136223846793005 + 1442695040888963407;
        return (long)x;
    }

    public static void Calibrate()
    {
        const long turns = 20_000_000;
        Second(turns);
        long begin = Clock.Cpu();
        First(turns);
        turnsPerUs = turns * 1000.0 / (Clock.Cpu() - begin);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Part(int method, int us)
    {
        long turns = (long)(turnsPerUs * us * (method == 0 ? 0.7 : 0.3));
        long time = Clock.Real(), cpu = Clock.Cpu();
        long result = method == 0 ? First(turns) : Second(turns);
        long cpuEnd = Clock.Cpu();
        Calls.Add(method, time, Clock.Real(), cpu, cpuEnd);
        Volatile.Write(ref sink, result);
    }

    public static string Both(int us)
    {
        Part(0, us);
        Part(1, us);
        return "done";
    }
}

static class Clock
{
    [StructLayout(LayoutKind.Sequential)]
    struct Timespec
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc", EntryPoint = "clock_gettime"), SuppressGCTransition]
    static extern int Get(int clock, out Timespec time);

    static long Now(int clock)
    {
        _ = Get(clock, out Timespec time);
        return time.Seconds * 1_000_000_000 + time.Nanoseconds;
    }

    public static long Real() => Now(0);
    public static long Cpu() => Now(3); // CLOCK_THREAD_CPUTIME_ID
}

static class Calls
{
    const int Most = 1 << 19, Numbers = 6;
    static readonly object gate = new();
    static long[] notes = new long[Most * Numbers];
    static int count;

    public static void Add(int method, long begin, long end, long cpuBegin, long cpuEnd)
    {
        lock (gate)
        {
            if (count == Most) return;
            Span<long> note = notes.AsSpan(count++ * Numbers, Numbers);
            (note[0], note[1], note[2], note[3], note[4], note[5]) = (method, Environment.CurrentManagedThreadId, begin, end, cpuBegin, cpuEnd);
        }
    }

    public static byte[] Take()
    {
        lock (gate)
        {
            byte[] bytes = MemoryMarshal.AsBytes(notes.AsSpan(0, count * Numbers)).ToArray();
            count = 0;
            return bytes;
        }
    }
}

// Blocks for one to two ticks of the kernel, and wakes with one.
static class Tick
{
    static readonly ConcurrentBag<int> sockets = []; // that nobody waits at

    [DllImport("libc", EntryPoint = "socketpair")]
    static extern int Pair(int domain, int type, int protocol, int[] pair);
    [DllImport("libc", EntryPoint = "setsockopt")]
    static extern int SetOption(int socket, int level, int name, long[] value, int size);
    [DllImport("libc", EntryPoint = "recv")]
    static extern nint Receive(int socket, byte[] buffer, nint size, int flags);

    static int NewSocket()
    {
        int[] pair = new int[2];
        if (Pair(1, 1, 0, pair) != 0 || SetOption(pair[0], 1, 20, [0, 1000], 16) != 0) // AF_UNIX, SOCK_STREAM; SO_RCVTIMEO
            throw new InvalidOperationException("there is no socket with a time-out");
        return pair[0];
    }

    public static void Wait()
    {
        int socket = sockets.TryTake(out int free) ? free : NewSocket();
        _ = Receive(socket, new byte[1], 1, 0);
        sockets.Add(socket);
    }
}
