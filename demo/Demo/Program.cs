// A shop on a busy day: a program with a bit of everything that .NET programs do, for people to look at
// in a flame graph. Two named threads work side by side until the time is up (default: 8 seconds):
// the back office reports, sorts, exports and imports; the front office takes orders through an
// asynchronous pipeline and books them. Nothing is faked: each part's result is used by the summary.
using System.Diagnostics;

namespace Demo;

static class Program
{
    static int Main(string[] args)
    {
        if (!double.TryParse(args.Length > 0 ? args[0] : "8", out double seconds) || seconds <= 0)
        {
            Console.Error.WriteLine("usage: Demo [SECONDS]");
            return 2;
        }

        var clock = Stopwatch.StartNew();
        var closing = new Closing(TimeSpan.FromSeconds(seconds));
        var backOffice = new BackOffice(OrderBook.Fill(20_000, seed: 1));
        var frontOffice = new FrontOffice();
        Thread[] staff =
        [
            new(() => backOffice.WorkUntil(closing)) { Name = "back office" },
            new(() => frontOffice.WorkUntil(closing)) { Name = "front office" },
        ];
        foreach (Thread thread in staff) thread.Start();
        foreach (Thread thread in staff) thread.Join();

        Console.WriteLine($"The shop was open for {clock.Elapsed.TotalSeconds:F1} s.");
        Console.WriteLine(backOffice.Summary());
        Console.WriteLine(frontOffice.Summary());
        return 0;
    }
}

/// <summary>When the working day ends.</summary>
sealed class Closing(TimeSpan after)
{
    readonly Stopwatch clock = Stopwatch.StartNew();
    public bool IsNow => clock.Elapsed >= after;
}
