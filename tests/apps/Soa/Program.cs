// SPDX-License-Identifier: MIT
// A Kestrel service that is slow in known ways: each endpoint but /health has one fault (Faults.cs), and the line that
// causes it is marked "cause: FAULT". docs/symptoms.md finds them with clrsnap, and tests/live/record/symptoms.sh checks that.
// Lines of standard input: the name of a fault puts its endpoint under load (Load.cs), and "ready NAME" is printed when it
// has answered each client once, or has been asked by each, where the fault is that it does not answer; "more" prints
// "done" when every endpoint under load that answers has done so a number of times more. /health is under load from the
// start. The program ends when its standard input does.
using Soa;

WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
builder.Logging.SetMinimumLevel(LogLevel.Warning); // with logging, as services have it: each request is an Activity
builder.WebHost.UseUrls("http://127.0.0.1:0");
WebApplication app = builder.Build();
app.MapGet("/health", Health.Check);
app.MapGet("/search/{text}", Search.Run);
app.MapGet("/quotes/{id:int}", Quotes.GetAsync);
app.MapGet("/stock/{id:int}", Stock.Reserve);
app.MapGet("/profile/{id:int}", Profile.Get);
app.MapGet("/export/{rows:int}", Export.Rows);
app.MapGet("/parse/{text}", Parser.Sum);
app.MapGet("/transfer/{side}", Transfer.Run);
app.MapGet("/order/{id:int}", Order.ConfirmAsync);
app.MapGet("/limited/{id:int}", Limited.GetAsync);
app.MapGet("/cache/{id:int}", Cache.Get);
app.MapGet("/audit/{id:int}", Audit.Append);
app.MapGet("/pay/{id:int}", Payment.Post);
app.Start();
var url = new Uri(app.Urls.First());
var inputs = new Thread(() =>
{
    Load.Start("health", url);
    while (Console.ReadLine() is { } line)
    {
        if (line == "more") Load.More(20);
        else Load.Start(line, url);
    }
    Environment.Exit(0); // some requests never end
});
inputs.Start();
inputs.Join();
