// SPDX-License-Identifier: MIT
// Our own walk: tests/tools/remote_walk, which stops the process and walks its threads from outside.
using System.Diagnostics;
using System.Globalization;
using System.Text.Json;

namespace ClrMdOracle;

sealed record Frame(string Kind, ulong Ip, ulong Sp, ulong Start, ulong Method, string Flags)
{
    public bool Managed => Kind is "jit" or "r2r";
}

// Handler: how the handler's own walk differs from these frames, or null if it does not.
sealed record Walk(uint Tid, bool Managed, ulong StackBegin, ulong StackEnd, Dictionary<string, ulong> Registers, List<Frame> Frames,
    string Stop, string? Handler);

sealed class Walker : IDisposable
{
    readonly Process tool;

    public Walker(string path, int pid)
    {
        tool = Process.Start(new ProcessStartInfo(path, [pid.ToString(), "--commands"])
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        })!;
        // remote_walk ends with a message if the process cannot be walked (yet).
        try
        {
            Command("go");
        }
        catch (Exception e) when (e is IOException or InvalidOperationException)
        {
            string reason = tool.StandardError.ReadToEnd().Trim();
            Dispose();
            throw new InvalidOperationException(reason.Length > 0 ? reason : e.Message);
        }
    }

    public void Stop() => Command("stop");
    public void Go() => Command("go");
    public List<Walk> WalkAll() => Command("walk").ConvertAll(Parse);

    // Returns the lines that come before the one that reports the end of the command.
    List<string> Command(string command)
    {
        List<string> lines = [];
        tool.StandardInput.WriteLine(command);
        tool.StandardInput.Flush();
        while (true)
        {
            string line = tool.StandardOutput.ReadLine() ?? throw new InvalidOperationException("remote_walk has ended");
            if (line.StartsWith("{\"error\"")) throw new InvalidOperationException(line);
            if (line.StartsWith("{\"done\"")) return lines;
            lines.Add(line);
        }
    }

    static ulong Hex(JsonElement e) => ulong.Parse(e.GetString()!.AsSpan(2), NumberStyles.HexNumber);

    static Walk Parse(string line)
    {
        JsonElement walk = JsonDocument.Parse(line).RootElement;
        List<Frame> frames = [];
        foreach (JsonElement f in walk.GetProperty("frames").EnumerateArray())
        {
            bool managed = f.TryGetProperty("start", out JsonElement start);
            frames.Add(new Frame(f.GetProperty("kind").GetString()!, Hex(f.GetProperty("ip")), Hex(f.GetProperty("sp")),
                managed ? Hex(start) : 0, managed ? Hex(f.GetProperty("method")) : 0, f.GetProperty("flags").GetString()!));
        }
        Dictionary<string, ulong> registers = walk.GetProperty("regs").EnumerateObject()
            .ToDictionary(r => r.Name, r => Hex(r.Value));
        return new Walk(walk.GetProperty("tid").GetUInt32(), Hex(walk.GetProperty("clr")) != 0,
            Hex(walk.GetProperty("stack")[0]), Hex(walk.GetProperty("stack")[1]), registers, frames,
            walk.GetProperty("stop").GetString()!,
            walk.TryGetProperty("handler", out JsonElement handler) ? handler.GetString() : null);
    }

    public void Dispose()
    {
        try
        {
            tool.StandardInput.Close(); // remote_walk lets all threads go, and ends
            tool.WaitForExit();
        }
        catch (IOException) { }
        tool.Dispose();
    }
}
