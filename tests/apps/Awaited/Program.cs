// SPDX-License-Identifier: MIT
// A Kestrel service whose routes await different things, and that counts for how long the requests of each route do.
// Requests of /first, /second and /span never end; those of /left and /right end and come again. /first has begun what the
// requests of /second await. There are jobs, too, which never end: each has an Activity, and another number of AsyncLocals.
// Lines of standard input: "begin" puts all routes under load, once somebody listens to routing, and "ready" is printed when each client's first request is
// awaiting; "count" prints a line "counted ROUTE MS" for each route: how long its requests have awaited in all, so far.
using System.Diagnostics;
using System.Net.Sockets;
using System.Text;

WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
builder.Logging.SetMinimumLevel(LogLevel.Warning); // with logging, as services have it: each request is an Activity
builder.WebHost.UseUrls("http://127.0.0.1:0");
WebApplication app = builder.Build();
app.MapGet("/first", First.GetAsync);
app.MapGet("/second/{id:int}", Second.GetAsync);
app.MapGet("/span/{id:int}", Child.GetAsync);
app.MapGet("/left/{id:int}", Left.GetAsync);
app.MapPut("/right/{name}", Right.GetAsync);
app.Start();
var url = new Uri(app.Urls.First());
var listeners = app.Services.GetRequiredService<DiagnosticListener>();
Console.WriteLine("listening");
while (Console.ReadLine() is { } line)
{
    if (line == "count")
    {
        Count.Print();
        continue;
    }
    while (!listeners.IsEnabled("Microsoft.AspNetCore.Routing.EndpointMatched")) Thread.Sleep(10);
    Clients.Begin(url);
}
Environment.Exit(0); // some requests never end

static class Count
{
    public sealed class Route
    {
        public int Running, Ever;
        public long Since, Ticks;
    }
    static readonly Dictionary<string, Route> routes = new();

    public static async Task Of(string route, Task task)
    {
        Change(route, 1);
        await task;
        Change(route, -1);
    }

    public static void Change(string route, int by)
    {
        lock (routes)
        {
            if (!routes.TryGetValue(route, out Route? r)) routes[route] = r = new Route();
            long now = Stopwatch.GetTimestamp();
            r.Ticks += r.Running * (now - r.Since);
            r.Since = now;
            r.Running += by;
            if (by > 0) r.Ever++;
        }
    }

    public static int Ever()
    {
        lock (routes) return routes.Values.Sum(r => r.Ever);
    }

    public static void Print()
    {
        foreach (string route in routes.Keys.ToArray()) Change(route, 0);
        lock (routes)
            foreach ((string route, Route r) in routes) Console.WriteLine($"counted {route} {r.Ticks * 1000 / Stopwatch.Frequency}");
        Console.WriteLine("counted");
    }
}

static class Never
{
    public static readonly TaskCompletionSource<string> Source = new();
}

// An async method of one request that others await, too.
static class First
{
    public static readonly TaskCompletionSource<Task<string>> Begun = new();

    public static async Task<string> GetAsync()
    {
        Task<string> shared = SharedAsync();
        Begun.SetResult(shared);
        Count.Change("GET /first", 1);
        return await shared;
    }

    static async Task<string> SharedAsync() => await Never.Source.Task;
}

static class Second
{
    public static async Task<string> GetAsync(int id)
    {
        Task<string> shared = First.Begun.Task.Result;
        Count.Change("GET /second/{id:int}", 1);
        return await shared;
    }
}

// A span within the request.
static class Child
{
    public static async Task<string> GetAsync(int id)
    {
        using Activity inner = new Activity("inner").Start();
        Count.Change("GET /span/{id:int}", 1);
        return await InnerAsync();
    }

    static async Task<string> InnerAsync() => await Never.Source.Task;
}

static class Job
{
    public static async Task<string> RunAsync(int count)
    {
        using Activity job = new Activity("job").Start();
        var kept = new List<AsyncLocal<string>>();
        for (int i = 0; i < count; i++) kept.Add(new AsyncLocal<string> { Value = $"local {i}" });
        Count.Change("job", 1);
        string answer = await Never.Source.Task;
        GC.KeepAlive(kept);
        return answer;
    }
}

static class Left
{
    public static async Task<string> GetAsync(int id)
    {
        await Count.Of("GET /left/{id:int}", LoadAsync());
        return $"{id}";
    }

    static async Task LoadAsync() => await Task.Delay(40);
}

static class Right
{
    static readonly SemaphoreSlim turn = new(1);

    public static async Task<string> GetAsync(string name)
    {
        await Count.Of("PUT /right/{name}", WaitAsync());
        return name;
    }

    static async Task WaitAsync()
    {
        await turn.WaitAsync();
        try
        {
            await Task.Delay(30);
        }
        finally
        {
            turn.Release();
        }
    }
}

static class Clients
{
    const int MostLocals = 18;

    public static void Begin(Uri url)
    {
        Ask(url, "GET /first");
        First.Begun.Task.Wait();
        int count = 1 + MostLocals + 1;
        for (int i = 0; i <= MostLocals; i++) _ = Job.RunAsync(i);
        foreach ((string request, int clients) in new[] { ("GET /second/1", 3), ("GET /span/1", 2), ("GET /left/1", 5), ("PUT /right/a", 4) })
        {
            for (int i = 0; i < clients; i++) Ask(url, request);
            count += clients;
        }
        while (Count.Ever() < count) Thread.Sleep(10);
        Console.WriteLine("ready");
    }

    static void Ask(Uri url, string request) => new Thread(() =>
    {
        using var socket = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        socket.Connect(url.Host, url.Port);
        byte[] bytes = Encoding.ASCII.GetBytes($"{request} HTTP/1.1\r\nHost: {url.Host}\r\nContent-Length: 0\r\n\r\n");
        for (byte[] answer = new byte[1 << 12]; ;)
        {
            socket.Send(bytes);
            for (string text = ""; !text.EndsWith("0\r\n\r\n") && !text.Contains("\r\n\r\n");)
            {
                int read = socket.Receive(answer);
                if (read == 0) throw new IOException(request);
                text += Encoding.ASCII.GetString(answer, 0, read);
            }
        }
    }) { IsBackground = true, Name = "client" }.Start();
}
