// SPDX-License-Identifier: MIT
// The managed frames of one stopped thread, leaf first, as ClrMD and we see them: same ip, same stack
// pointer, same method, in the same order. What may differ, and why, is in docs/oracles.md:
//   pinvoke ip   ClrMD takes the ip of a method inside a P/Invoke from the InlinedCallFrame; we, from the
//                stack. Same method, same stack pointer.
//   pinvoke sp   the same for the stack pointer of a method with stackalloc: the InlinedCallFrame has the one
//                from before it.
//                In both, our ip must lie on the stack right below our stack pointer, as a return address does.
//   off stack    ClrMD reports a frame that is not on this thread's stack: of a thread without managed code, or
//                where it cannot unwind a helper.
//   hijacked     the runtime has replaced a return address; ClrMD does not look for the true one, and ends.
//   below helper the thread is in cooperative mode in the runtime's helpers or stubs. ClrMD does not unwind
//                them, and begins at the next explicit Frame: its frames are the end of ours, or none.
// Each is counted and bounded, and every other walk is compared once more with a fault put in, which has to be found.
using Microsoft.Diagnostics.Runtime;

namespace ClrMdOracle;

sealed class Comparison
{
    const int MaxFrames = 100_000, Shown = 5;

    // The most walks, of a hundred, that may be of each kind: what was seen, plus what one of a dozen threads adds if
    // it stands in such a place for all of a short run; or what one stop adds that meets the suspension of all
    // threads that run managed code.
    static readonly Dictionary<string, double> most = new()
    {
        ["off stack"] = 20, ["below helper"] = 20, ["hijacked"] = 4, ["unknown thread"] = 3, ["cut"] = 0.1,
    };

    static readonly string[] faultNames =
    [
        "a frame is missing", "the end is missing", "a frame too many", "ip too high", "ip too low", "sp too high",
        "sp too low", "another method",
    ];

    readonly Random random = new(1);
    readonly Dictionary<string, int> kinds = [];
    readonly Dictionary<string, int> cut = [];
    readonly Dictionary<string, (int Put, int Found)> faults = faultNames.ToDictionary(name => name, _ => (0, 0));
    long frames, methods;
    int wrong;

    // thread is null if ClrMD does not know the thread.
    public void Add(ClrRuntime runtime, ClrThread? thread, Walk walk)
    {
        if (thread == null)
        {
            kinds["unknown thread"] = kinds.GetValueOrDefault("unknown thread") + 1;
            return;
        }
        List<ClrStackFrame> all = thread.EnumerateStackTrace(includeContext: false).Take(MaxFrames).ToList();
        List<ClrStackFrame> managed = all.Where(f => f.Kind == ClrStackFrameKind.ManagedMethod).ToList();
        List<ClrStackFrame> theirs = managed.Where(f => !IsOffStack(walk, f)).ToList();
        List<Frame> ours = walk.Frames.Where(f => f.Managed).ToList();
        bool inHelper = IsInHelper(thread, walk);
        string? kind = walk.Handler == null ? Compare(runtime, all, theirs, ours, inHelper) : null;
        if (kind != null)
            _ = faults.OrderBy(f => f.Value.Put).Any(f => TryFault(f.Key, runtime, all, theirs, ours, inHelper));
        if (kind != null && theirs.Count < managed.Count) kind = "off stack";
        if (walk.Stop != "base") cut[walk.Stop] = cut.GetValueOrDefault(walk.Stop) + 1;
        if (kind == null)
        {
            kind = "DIFFERENT";
            if (++wrong <= Shown) Show(runtime, thread, walk, all);
        }
        kinds[kind] = kinds.GetValueOrDefault(kind) + 1;
    }

    // Repeats the comparison with a fault in the part of our walk that ClrMD also has. Returns false if the walk has no
    // place for a fault of this kind. The kinds take turns, so that a short run has all of them.
    bool TryFault(string fault, ClrRuntime runtime, List<ClrStackFrame> all, List<ClrStackFrame> theirs, List<Frame> ours,
        bool inHelper)
    {
        int above = ours.FindIndex(f => f.Flags.Contains("hijacked")) >= 0 ? 0 : ours.Count - theirs.Count;
        if (theirs.Count == 0 || above < 0) return false;
        int at = above + random.Next(theirs.Count);
        List<Frame> changed = [.. ours];
        Frame frame = ours[at];
        switch (fault)
        {
            case "a frame is missing": changed.RemoveAt(at); break;
            case "the end is missing": changed.RemoveRange(at, changed.Count - at); break;
            case "a frame too many":
                if (inHelper && at == above) return false; // where ClrMD has no frames
                changed.Insert(at, frame with { Sp = frame.Sp - 8 });
                break;
            case "ip too high": changed[at] = frame with { Ip = frame.Ip + 1 }; break;
            case "ip too low": changed[at] = frame with { Ip = frame.Ip - 1 }; break;
            case "sp too high": changed[at] = frame with { Sp = frame.Sp + 8 }; break;
            case "sp too low": changed[at] = frame with { Sp = frame.Sp - 8 }; break;
            case "another method":
                if (theirs[at - above].Method == null || frame.Start == 0) return false;
                changed[at] = frame with { Method = 0, Start = 1 };
                break;
        }
        long framesBefore = frames, methodsBefore = methods;
        bool found = Compare(runtime, all, theirs, changed, inHelper) == null;
        (frames, methods) = (framesBefore, methodsBefore);
        (int put, int noticed) = faults[fault];
        faults[fault] = (put + 1, noticed + (found ? 1 : 0));
        return true;
    }

    static bool IsInHelper(ClrThread thread, Walk walk) =>
        thread.GCMode == GCMode.Cooperative && walk.Frames.Count > 0 && !walk.Frames[0].Managed;

    // Returns null for a difference that has no known explanation.
    string? Compare(ClrRuntime runtime, List<ClrStackFrame> all, List<ClrStackFrame> theirs, List<Frame> ours,
        bool inHelper)
    {
        int above = ours.Count - theirs.Count;
        string kind = "equal";
        if (above > 0 && ours[theirs.Count].Flags.Contains("hijacked"))
        {
            kind = "hijacked"; // their frames are the first of ours
            above = 0;
        }
        if (above < 0 || (above > 0 && !inHelper)) return null;
        for (int i = 0; i < theirs.Count; i++)
        {
            Frame mine = ours[above + i];
            if (theirs[i].StackPointer != mine.Sp)
            {
                ulong callersSp = above + i + 1 < ours.Count ? ours[above + i + 1].Sp : ulong.MaxValue;
                if (!IsBelowPInvoke(all, theirs[i]) || theirs[i].StackPointer < mine.Sp ||
                    theirs[i].StackPointer >= callersSp || !IsReturnAddress(runtime, mine))
                    return null;
                if (kind == "equal") kind = "pinvoke sp";
            }
            if (theirs[i].InstructionPointer != mine.Ip)
            {
                if (!IsBelowPInvoke(all, theirs[i]) || theirs[i].InstructionPointer < mine.Start ||
                    theirs[i].InstructionPointer > mine.Ip || !IsReturnAddress(runtime, mine))
                    return null;
                if (kind == "equal") kind = "pinvoke ip";
            }
            if (!SameMethod(runtime, theirs[i], mine)) return null;
            frames++;
        }
        return above > 0 ? "below helper" : kind;
    }

    // ClrMD has this frame from an InlinedCallFrame, not from the stack.
    static bool IsBelowPInvoke(List<ClrStackFrame> all, ClrStackFrame frame)
    {
        int before = all.IndexOf(frame) - 1;
        return before >= 0 && all[before].FrameName == "InlinedCallFrame";
    }

    // A call from this frame has left the return address on the stack.
    static bool IsReturnAddress(ClrRuntime runtime, Frame frame) =>
        runtime.DataTarget.DataReader.ReadPointer(frame.Sp - 8, out ulong word) && word == frame.Ip;

    static bool IsOffStack(Walk walk, ClrStackFrame frame) =>
        frame.StackPointer < walk.StackBegin || frame.StackPointer >= walk.StackEnd ||
        frame.StackPointer < walk.Registers["rsp"] && walk.Registers["rsp"] < walk.StackEnd;

    // ClrMD cannot name every method (dynamic ones, some instantiations); those are compared by ip alone.
    bool SameMethod(ClrRuntime runtime, ClrStackFrame frame, Frame mine)
    {
        ClrMethod? method = frame.Method;
        if (method == null || mine.Start == 0) return true;
        methods++;
        if (mine.Method != 0) return method.MethodDesc == mine.Method;
        ClrMethod? atStart = runtime.GetMethodByInstructionPointer(mine.Start);
        return atStart != null && atStart.MethodDesc == method.MethodDesc;
    }

    static void Show(ClrRuntime runtime, ClrThread thread, Walk walk, List<ClrStackFrame> all)
    {
        Console.WriteLine($"DIFFERENT: thread {thread.OSThreadId}, {thread.GCMode}, our walk ended at {walk.Stop} {walk.Handler}");
        foreach (Frame f in walk.Frames.Take(60))
        {
            ClrMethod? method = f.Managed ? runtime.GetMethodByInstructionPointer(f.Ip) : null;
            string what = f.Managed ? $"{method}" : Place(runtime.DataTarget.DataReader.ProcessId, f.Ip);
            Console.WriteLine($"  ours  {f.Kind,-6} {f.Ip:x} {f.Sp:x} {f.Flags} {what}");
        }
        foreach (ClrStackFrame f in all.Take(60))
            Console.WriteLine($"  ClrMD {f.Kind,-14} {f.InstructionPointer:x} {f.StackPointer:x} {f.FrameName} {f.Method}");
    }

    // The file that contains an address, and the offset in it.
    static string Place(int process, ulong ip)
    {
        foreach (string line in File.ReadLines($"/proc/{process}/maps"))
        {
            string[] words = line.Split(' ', StringSplitOptions.RemoveEmptyEntries), range = words[0].Split('-');
            ulong begin = Convert.ToUInt64(range[0], 16);
            if (ip < begin || ip >= Convert.ToUInt64(range[1], 16)) continue;
            return words.Length < 6 ? "" : $"{Path.GetFileName(words[5])}+{ip - begin + Convert.ToUInt64(words[2], 16):x}";
        }
        return "";
    }

    // whole: how many of a hundred walks must be comparable from end to end. Returns true if all checks pass.
    public bool Report(double whole)
    {
        int walks = kinds.Values.Sum(), equal = kinds.Where(k => k.Key is "equal" or "pinvoke ip" or "pinvoke sp").Sum(k => k.Value);
        Console.WriteLine($"{walks} walks of threads, {frames} managed frames compared, of {methods} the method too");
        bool enough = true;
        foreach ((string kind, int count) in kinds.OrderByDescending(k => k.Value)) enough &= IsWithin(kind, count, walks);
        foreach ((string stop, int count) in cut) Console.WriteLine($"  {count,6} of ours cut: {stop}");
        enough &= IsWithin("cut", cut.Values.Sum(), walks);
        foreach ((string fault, (int put, int found)) in faults.OrderBy(f => f.Key))
        {
            Console.WriteLine($"  fault put in: {fault}, {put} times, found {found}");
            if (found < put) enough = Fail("the comparison overlooks faults");
        }
        if (faults.Values.Any(f => f.Put == 0)) enough = Fail("not every kind of fault was put in");
        if (wrong > 0) enough = Fail($"{wrong} walks differ (the first {Math.Min(wrong, Shown)} are above)");
        if (walks == 0 || equal < walks * whole / 100 || frames < walks)
            enough = Fail($"only {equal} of {walks} walks could be compared as a whole, not {whole} of 100");
        if (methods < frames * 0.5) enough = Fail($"only {methods} of {frames} frames had a method to be compared");
        return enough;
    }

    static bool Fail(string sentence)
    {
        Console.WriteLine($"FAIL: {sentence}");
        return false;
    }

    // The bound is one walk higher than the share: a short run has only a few hundred walks.
    static bool IsWithin(string kind, int count, int walks)
    {
        bool bounded = most.TryGetValue(kind, out double share);
        int bound = (int)(walks * share / 100) + 1;
        Console.WriteLine($"  {count,6} {kind}{(bounded ? $", at most {bound}" : "")}");
        return !bounded || count <= bound || Fail($"{count} walks are excused as '{kind}'");
    }
}
