// Work that is nearly all in a library of some size, so that a test can compile both into one composite
// ReadyToRun image with hot and cold parts and see where the time goes. Malformed input takes the cold
// parts (errors, exceptions). Argument: seconds.
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

double seconds = args.Length > 0 ? double.Parse(args[0]) : 3;
var end = DateTime.UtcNow.AddSeconds(seconds);
var workers = Enumerable.Range(0, 2).Select(i => new Thread(() => Work.Run(i, end))).ToArray();
foreach (var w in workers) w.Start();
foreach (var w in workers) w.Join();
Console.WriteLine($"round trips {Work.Trips} refused {Work.Refused}");

record Order(int Id, string Name, decimal Total, DateTime At, List<Line> Lines);
record Line(string Article, int Count, Dictionary<string, double> Tags);

static class Work
{
    public static long Trips, Refused;

    public static void Run(int worker, DateTime end)
    {
        for (int round = worker; DateTime.UtcNow < end; round++)
        {
            string text = JsonConvert.SerializeObject(Make(round), Formatting.Indented);
            var back = JsonConvert.DeserializeObject<Order>(text)!;
            if (back.Lines.Count != 5) throw new InvalidOperationException("a line was lost");
            Interlocked.Increment(ref Trips);
            try { JToken.Parse(text.Remove(text.Length * (round % 10) / 10)); }
            catch (JsonException) { Interlocked.Increment(ref Refused); }
        }
    }

    static Order Make(int i) => new(i, $"order {i}", i * 1.25m, DateTime.UnixEpoch.AddMinutes(i),
        Enumerable.Range(0, 5).Select(k => new Line($"article {k}", k,
            new() { ["weight"] = k * 0.5, ["é\"\\"] = -1e300 })).ToList());
}
