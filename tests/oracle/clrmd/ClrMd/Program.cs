// SPDX-License-Identifier: MIT
// ClrMd REMOTE_WALK STOPS WHOLE COMMAND...: an independent oracle for walks of another process. Runs the command (again
// when it has ended), stops it STOPS times at arbitrary instants, and compares the managed frames of each of its
// threads, one by one, as ClrMD (the runtime's own debugger support) and remote_walk (ours) see them in the same
// stopped process. The exit code is 0 if every difference is of a known kind, no kind exceeds its bound, and WHOLE of a
// hundred walks can be compared from end to end: see Comparison.cs.
using System.Diagnostics;
using Microsoft.Diagnostics.Runtime;
using ClrMdOracle;

if (args.Length < 4 || !int.TryParse(args[1], out int wanted) || !int.TryParse(args[2], out int whole))
{
    Console.Error.WriteLine("usage: ClrMd REMOTE_WALK STOPS WHOLE COMMAND...");
    return 2;
}
int seed = int.TryParse(Environment.GetEnvironmentVariable("ORACLE_SEED"), out int given) ? given : Environment.ProcessId;
Console.WriteLine($"seed {seed}");
var random = new Random(seed);
var comparison = new Comparison();
var clock = Stopwatch.StartNew();
int stops = 0, runs = 0, unstopped = 0;
while (stops < wanted)
{
    using var target = new Target(args[3..]);
    int before = stops;
    runs++;
    try
    {
        using var session = new Session(args[0], target.Id);
        Thread.Sleep(random.Next(2000)); // so that not only its start is seen
        for (; stops < wanted; stops++)
        {
            Thread.Sleep(random.Next(20));
            if (target.HasExited) break;
            if (!session.Stop(comparison)) unstopped++;
        }
    }
    catch (InvalidOperationException e) when (target.EndsSoon())
    {
        _ = e; // the process ended during the stop
    }
    if (stops == before && runs > 20)
    {
        Console.WriteLine($"FAIL: {args[3]} ends before it can be stopped");
        return 1;
    }
}
Console.WriteLine($"{stops} stops of {runs} runs in {clock.Elapsed.TotalSeconds:F0} s; {unstopped} times a thread did not stop");
int allowed = Math.Max(1, wanted / 100); // a short run is allowed one, because the machine may be busy
if (unstopped > allowed) Console.WriteLine($"FAIL: {unstopped} times a thread did not stop, of {stops}");
return comparison.Report(whole) && unstopped <= allowed ? 0 : 1;

// A process under observation. Its output is discarded. It ends when this process does, because its input ends then.
sealed class Target : IDisposable
{
    readonly Process process;

    public Target(string[] command)
    {
        process = Process.Start(new ProcessStartInfo(command[0], command[1..])
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
        })!;
        process.OutputDataReceived += (_, _) => { };
        process.BeginOutputReadLine();
    }

    public int Id => process.Id;
    public bool HasExited => process.HasExited;
    public bool EndsSoon() => process.WaitForExit(2000);

    public void Dispose()
    {
        if (!process.HasExited) process.Kill(entireProcessTree: true);
        process.WaitForExit();
        process.Dispose();
    }
}

// Both observers of one process.
sealed class Session : IDisposable
{
    readonly Walker walker;
    readonly int pid;

    public Session(string tool, int pid)
    {
        this.pid = pid;
        walker = Open(tool, pid);
    }

    // A process that has just started has no runtime yet, or not all of it.
    static Walker Open(string tool, int pid)
    {
        for (int attempt = 0; ; attempt++)
        {
            try
            {
                return new Walker(tool, pid);
            }
            catch (InvalidOperationException) when (attempt < 100)
            {
                Thread.Sleep(50);
            }
        }
    }

    // ClrMD attaches anew each time: its flush keeps the list of threads and some of the memory that it has read, and a
    // walk by the stack of a moment ago is worthless. Returns false if the kernel did not stop one of the threads in
    // time.
    public bool Stop(Comparison comparison)
    {
        try
        {
            walker.Stop();
        }
        catch (InvalidOperationException e) when (e.Message.Contains("does not stop"))
        {
            return false;
        }
        List<Walk> walks = walker.WalkAll();
        using DataTarget memory = DataTarget.AttachToProcess(pid, suspend: false);
        var reader = new StoppedReader(memory.DataReader, walks);
        using var target = new DataTarget(new CustomDataTarget(reader));
        using ClrRuntime runtime = target.ClrVersions.Single().CreateRuntime();
        Dictionary<uint, ClrThread> threads = runtime.Threads.Where(t => t.IsAlive).ToDictionary(t => t.OSThreadId);
        foreach (Walk walk in walks.Where(w => w.Managed)) comparison.Add(runtime, threads.GetValueOrDefault(walk.Tid), walk);
        walker.Go();
        return true;
    }

    public void Dispose() => walker.Dispose();
}
