// SPDX-License-Identifier: MIT
// Programs that are hard to record, one class each. A hazard runs in rounds, each of which computes a number that
// depends on the seed only; so the checksum of a number of rounds is the same whether the program is sampled or not.
// Arguments: HAZARD SEED ROUNDS; instead of ROUNDS, SECONDS followed by s, or @ and the name of a file that ends the
// run when it appears. The environment: TORTURE_LIB, the folder of the native parts;
// TORTURE_PLANT, a fault that the harness must notice (checksum, code, crash, hang).
using System.Diagnostics;

namespace Torture;

abstract class Hazard
{
    internal abstract ulong Round(Random random);

    // How the program ends, after its checksum was printed.
    internal virtual int End(Random random) => 42;
}

static class Program
{
    static readonly Dictionary<string, Func<Hazard>> Hazards = new()
    {
        ["jit"] = () => new Jit(), ["dynamic"] = () => new Dynamic(), ["collectible"] = () => new Collectible(),
        ["exceptions"] = () => new Exceptions(), ["nullref"] = () => new NullReferences(),
        ["gc"] = () => new Collections(), ["activation"] = () => new Activation(), ["threads"] = () => new Threads(),
        ["libraries"] = () => new Libraries(), ["malloc"] = () => new Malloc(), ["stacks"] = () => new Stacks(),
        ["fork"] = () => new Processes(Processes.Fork), ["vfork"] = () => new Processes(Processes.VFork),
        ["spawn"] = () => new Processes(Processes.Spawn), ["exec"] = () => new Exec(), ["eintr"] = () => new Interrupted(),
        ["realtime"] = () => new Signals(Signals.RealTime), ["masked"] = () => new Signals(Signals.Masked),
        ["replaced"] = () => new Signals(Signals.Replaced), ["exit"] = () => new Exit(), ["crash"] = () => new Crash(),
        ["busy"] = () => new Busy(),
    };

    static int Main(string[] args)
    {
        Hazard hazard = Hazards[args[0]]();
        ulong seed = ulong.Parse(args[1]), sum = seed;
        var more = More(args[2]);
        long round = 0;
        Console.WriteLine("ready");
        for (; round == 0 || more(round); round++)
            sum = Mix(sum, hazard.Round(Draw(seed, round)));
        int code = 42;
        Plant(ref sum, ref code);
        Console.WriteLine($"rounds {round} checksum {sum:x16}");
        Console.Out.Flush();
        int end = hazard.End(Draw(seed, -1));
        return code == 42 ? end : code;
    }

    static Func<long, bool> More(string until)
    {
        var clock = Stopwatch.StartNew();
        if (until.StartsWith('@')) return _ => !File.Exists(until[1..]);
        if (!until.EndsWith('s')) return round => round < long.Parse(until);
        double seconds = double.Parse(until[..^1]);
        return _ => clock.Elapsed.TotalSeconds < seconds;
    }

    internal static Random Draw(ulong seed, long round) => new((int)(Mix(seed, (ulong)round) >> 33));

    internal static ulong Mix(ulong sum, ulong value)
    {
        sum = (sum ^ value) * 0x9E3779B97F4A7C15;
        return sum ^ sum >> 29;
    }

    // Runs the same on several threads at once, each with a number of its own; returns their results in that order.
    internal static ulong Team(int threads, Func<int, ulong> work, int stack = 0)
    {
        var results = new ulong[threads];
        var team = new Thread[threads];
        for (int i = 0; i < threads; i++)
        {
            int number = i;
            team[i] = new Thread(() => results[number] = work(number), stack);
            team[i].Start();
        }
        foreach (Thread thread in team) thread.Join();
        return results.Aggregate(0ul, Mix);
    }

    static void Plant(ref ulong sum, ref int code)
    {
        switch (Environment.GetEnvironmentVariable("TORTURE_PLANT"))
        {
            case "checksum": sum ^= 1; break;
            case "code": code = 41; break;
            case "crash": Environment.FailFast("planted"); break;
            case "hang": Thread.Sleep(Timeout.Infinite); break;
        }
    }
}
