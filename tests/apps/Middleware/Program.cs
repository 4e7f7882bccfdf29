// SPDX-License-Identifier: MIT
// A service whose endpoints throw through asynchronous middleware, in front of routing and after it, each of which throws the
// exception anew; the outermost one answers with the status 500. Before it throws, an endpoint uses a processor.
// Argument: how many requests of each path the program makes of itself, one after the other.
// Prints "thrown ROUTE TIMES", by the runtime's own notification of each throw, and "answered ROUTE STATUS TIMES".
using System.Runtime.CompilerServices;

var thrown = new Dictionary<string, int>();
AppDomain.CurrentDomain.FirstChanceException += (_, args) =>
{
    if (args.Exception is Broken broken)
        lock (thrown) thrown[broken.Message] = thrown.GetValueOrDefault(broken.Message) + 1;
};
WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
builder.Logging.SetMinimumLevel(LogLevel.Warning); // with logging, as services have it: each request is an Activity
builder.WebHost.UseUrls("http://127.0.0.1:0");
WebApplication app = builder.Build();
app.Use(async (context, next) =>
{
    try
    {
        await next(context);
    }
    catch (Broken)
    {
        context.Response.StatusCode = 500;
    }
});
app.Use(async (context, next) => await next(context));
app.UseRouting();
app.Use(async (context, next) => await next(context));
app.UseEndpoints(_ => { });
app.MapGet("/late/{id:int}", Late);
app.MapGet("/sudden/{id:int}", Sudden);
app.MapGet("/fine/{id:int}", Fine);
app.Start();

using var client = new HttpClient { BaseAddress = new Uri(app.Urls.First()) };
var answered = new SortedDictionary<string, int>();
for (int i = 0; i < int.Parse(args[0]); i++)
{
    foreach (string path in new[] { "late", "sudden", "fine" })
    {
        using HttpResponseMessage answer = await client.GetAsync($"/{path}/{i}");
        string said = $"/{path}/{{id:int}} {(int)answer.StatusCode}";
        answered[said] = answered.GetValueOrDefault(said) + 1;
    }
}
await app.StopAsync();
foreach (var (route, times) in thrown) Console.WriteLine($"thrown {route} {times}");
foreach (var (said, times) in answered) Console.WriteLine($"answered {said} {times}");

static async Task<string> Late(int id)
{
    await Task.Yield();
    Burn();
    throw new Broken("/late/{id:int}");
}

static string Sudden(int id)
{
    Burn();
    throw new Broken("/sudden/{id:int}");
}

static string Fine(int id)
{
    Burn();
    return "fine";
}

[MethodImpl(MethodImplOptions.NoInlining)]
static void Burn()
{
    for (long end = Environment.TickCount64 + 4; Environment.TickCount64 < end;) Thread.SpinWait(20);
}

sealed class Broken(string route) : Exception(route);
