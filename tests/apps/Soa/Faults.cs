// SPDX-License-Identifier: MIT
// The service's endpoints. Each class but Health has one fault; the comment says which, and "cause: NAME" marks its line.
using System.Runtime.CompilerServices;
using System.Text;

namespace Soa;

// Nothing is wrong with this one.
static class Health
{
    public static string Check() => Describe(Environment.TickCount64);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static string Describe(long now) => $"up for {now} ms";
}

// CPU: each search ranks all articles anew.
static class Search
{
    static readonly int[] articles = Enumerable.Range(0, 500_000).Select(i => i * 7919 % 1_000_003).ToArray();

    public static string Run(string text) => $"{Rank(text.GetHashCode())} articles";

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Rank(int wanted)
    {
        int best = 0;
        foreach (int article in articles) best = Math.Max(best, Score(article, wanted));
        return best;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Score(int article, int wanted)
    {
        return (int)(Math.Pow(article, 0.3) * (wanted & 0xffff)) % 1009; // cause: search
    }
}

// Slow awaits: a remote service takes its time, and nothing here uses a processor or blocks a thread.
static class Quotes
{
    public static async Task<string> GetAsync(int id) => $"quote {await FetchAsync(id)}";

    static async Task<int> FetchAsync(int id)
    {
        await Remote.CallAsync(40); // cause: quotes
        return id;
    }
}

static class Remote
{
    public static async Task CallAsync(int milliseconds) => await Task.Delay(milliseconds);
}

// A lock: the audit of the stock holds it for most of the time, and requests wait.
static class Stock
{
    static readonly object gate = new();
    static int left = 1_000_000;
    static Thread? auditor;

    public static string Reserve(int id)
    {
        if (Volatile.Read(ref auditor) == null) Start();
        lock (gate) // cause: stock
        {
            return $"{--left} left";
        }
    }

    static void Start()
    {
        var thread = new Thread(AuditAgainAndAgain) { Name = "auditor", IsBackground = true };
        if (Interlocked.CompareExchange(ref auditor, thread, null) == null) thread.Start();
    }

    static void AuditAgainAndAgain()
    {
        for (;; Thread.Sleep(5)) AuditAll();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AuditAll()
    {
        lock (gate)
        {
            Thread.Sleep(50); // holder: stock
            left += 0;
        }
    }
}

// Sync over async: a thread of the pool waits for a task. With 40 clients the pool starves.
static class Profile
{
    public static string Get(int id) => Load(id);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static string Load(int id)
    {
        return LoadAsync(id).Result; // cause: profile
    }

    static async Task<string> LoadAsync(int id)
    {
        await Remote.CallAsync(200); // far longer than a waiting thread spins, also beside other load
        return $"profile {id}";
    }
}

// Allocation: a string for each cell of each row.
static class Export
{
    public static string Rows(int rows)
    {
        int length = 0;
        for (int row = 0; row < rows; row++) length += Row(row);
        return $"{length} characters";
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Row(int row)
    {
        string line = "";
        for (int cell = 0; cell < 20; cell++)
            line = Append(line, row * cell);
        return line.Length;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static string Append(string line, int number)
    {
        return line + number + ";"; // cause: export
    }
}

// Exceptions: each text that is no number is one.
static class Parser
{
    public static string Sum(string text)
    {
        int sum = 0;
        foreach (string part in text.Split(',')) sum += Number(part);
        return $"{sum}";
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Number(string part)
    {
        try
        {
            return int.Parse(part); // cause: parse
        }
        catch (FormatException)
        {
            return 0;
        }
    }
}

// A deadlock: two requests lock the same two accounts, each the other one first.
static class Transfer
{
    static readonly object left = new(), right = new();
    static readonly Barrier both = new(2);

    public static string Run(string side) => side == "left" ? LeftToRight() : RightToLeft();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static string LeftToRight()
    {
        lock (left)
        {
            both.SignalAndWait();
            lock (right) // cause: transfer left
            {
                return "done";
            }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static string RightToLeft()
    {
        lock (right)
        {
            both.SignalAndWait();
            lock (left) // cause: transfer right
            {
                return "done";
            }
        }
    }
}

// An await that never completes: nobody sets the result.
static class Order
{
    static readonly TaskCompletionSource<string> confirmed = new();

    public static async Task<string> ConfirmAsync(int id) => $"order {id}: {await WaitForPaymentAsync()}";

    static async Task<string> WaitForPaymentAsync()
    {
        return await confirmed.Task; // cause: order
    }
}

// An async semaphore: two at a time, and the others await their turn.
static class Limited
{
    static readonly SemaphoreSlim two = new(2);

    public static async Task<string> GetAsync(int id)
    {
        await two.WaitAsync(); // cause: limited
        try
        {
            await Remote.CallAsync(60);
            return $"limited {id}";
        }
        finally
        {
            two.Release();
        }
    }
}

// GC: each request has everything collected, and what is alive takes its time.
static class Cache
{
    static readonly List<byte[]> kept = Enumerable.Range(0, 200_000).Select(_ => new byte[64]).ToList();

    public static string Get(int id)
    {
        Trim();
        return $"{kept.Count} entries";
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Trim()
    {
        GC.Collect(); // cause: cache
    }
}

// Disk: each request waits until its line is on the disk.
static class Audit
{
    static readonly object gate = new();
    static readonly FileStream file = new(Path.Combine(AppContext.BaseDirectory, Path.GetRandomFileName()), FileMode.CreateNew, FileAccess.Write, FileShare.Read, 0,
        FileOptions.DeleteOnClose);
    static readonly byte[] block = new byte[1 << 18];

    public static string Append(int id)
    {
        Encoding.UTF8.GetBytes($"audit {id}\n", block);
        lock (gate) Write(block);
        return "written";
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Write(byte[] line)
    {
        file.Seek(0, SeekOrigin.Begin);
        file.Write(line);
        file.Flush(flushToDisk: true); // cause: audit
    }
}

// Failures: every second payment is refused, with the status 503.
static class Payment
{
    public static IResult Post(int id) => id % 2 == 0 ? Refuse() : Accept();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static IResult Accept()
    {
        Work();
        return Results.Text("paid");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static IResult Refuse()
    {
        Work();
        return Results.Text("refused", statusCode: 503);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Work()
    {
        for (long end = Environment.TickCount64 + 2; Environment.TickCount64 < end;) Thread.SpinWait(20);
    }
}
