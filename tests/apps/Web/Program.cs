// SPDX-License-Identifier: MIT
// A Kestrel server under load: without arguments it serves on a free port and starts itself as the load,
// "load URL"; with "serve" it serves only, says where, and answers each line with what it has done so far. All
// end when their standard input does. The load says how many requests it has made; one that fails ends it with
// an exception.
using System.Diagnostics;

if (args.Length == 2 && args[0] == "load") return await Load(args[1]);

WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
builder.Logging.ClearProviders();
builder.WebHost.UseUrls("http://127.0.0.1:0");
WebApplication app = builder.Build();
app.MapGet("/items/{count:int}", (int count) =>
    Enumerable.Range(0, count).Select(i => new Item(i, $"item {i}", Math.Sqrt(i))).OrderBy(i => -i.Value).ToArray());
app.MapGet("/slow", async () =>
{
    await Task.Delay(5);
    return "slow";
});
app.MapGet("/fails", IResult () =>
{
    try
    {
        throw new InvalidOperationException("as it should");
    }
    catch (InvalidOperationException e)
    {
        return Results.Text(e.Message);
    }
});
Costs.Map(app);
await app.StartAsync();
if (args is ["serve"])
{
    Console.WriteLine(app.Urls.First());
    while (Console.In.ReadLine() is not null)
        Console.WriteLine($"{Costs.Requests} {Stopwatch.GetElapsedTime(0).TotalNanoseconds} {Environment.CpuUsage.TotalTime.TotalNanoseconds}");
    await app.StopAsync();
    return 0;
}
using Process load = Process.Start(new ProcessStartInfo("dotnet", [Environment.GetCommandLineArgs()[0], "load", app.Urls.First()])
{
    RedirectStandardInput = true,
})!;
Console.In.ReadToEnd();
load.StandardInput.Close();
load.WaitForExit();
await app.StopAsync();
return 0;

static async Task<int> Load(string url)
{
    using var client = new HttpClient { BaseAddress = new Uri(url) };
    bool over = false;
    long requests = 0;
    async Task Ask(string path)
    {
        while (!Volatile.Read(ref over))
        {
            await client.GetStringAsync(path);
            Interlocked.Increment(ref requests);
        }
    }
    Task[] all = [Ask("/items/50"), Ask("/items/500"), Ask("/items/5"), Ask("/slow"), Ask("/fails"), Ask("/items/1")];
    await Task.Run(Console.In.ReadToEnd);
    Volatile.Write(ref over, true);
    await Task.WhenAll(all);
    Console.WriteLine($"{requests} requests");
    return 0;
}

sealed record Item(int Id, string Name, double Value);
