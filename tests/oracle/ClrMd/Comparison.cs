// SPDX-License-Identifier: MIT
// The managed frames of one stopped thread, leaf first, as ClrMD and we see them: same ip, same stack
// pointer, same method, in the same order. What may differ, and why, is in docs/oracles.md:
//   pinvoke ip   ClrMD takes the ip of a method inside a P/Invoke from the InlinedCallFrame; we, from the
//                stack. Same method, same stack pointer.
//   pinvoke sp   the same for the stack pointer of a method with stackalloc: the InlinedCallFrame has the one
//                from before it.
//   off stack    ClrMD reports a frame that is not on this thread's stack: of a thread without managed code, or
//                where it cannot unwind a helper.
//   hijacked     the runtime has replaced a return address; ClrMD does not look for the true one, and ends.
//   below helper the thread is in cooperative mode in the runtime's helpers or stubs. ClrMD does not unwind
//                them, and begins at the next explicit Frame: its frames are the end of ours, or none.
using Microsoft.Diagnostics.Runtime;

namespace ClrMdOracle;

sealed class Comparison
{
    const int MaxFrames = 100_000, Shown = 5;

    readonly Dictionary<string, int> kinds = [];
    readonly Dictionary<string, int> cut = [];
    long frames, methods;
    int wrong;

    // thread: null if ClrMD does not know it.
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
        string? kind = Compare(runtime, all, theirs, ours, IsInHelper(thread, walk));
        if (kind != null && theirs.Count < managed.Count) kind = "off stack";
        if (walk.Stop != "base") cut[walk.Stop] = cut.GetValueOrDefault(walk.Stop) + 1;
        if (kind == null)
        {
            kind = "DIFFERENT";
            if (++wrong <= Shown) Show(runtime, thread, walk, all);
        }
        kinds[kind] = kinds.GetValueOrDefault(kind) + 1;
    }

    static bool IsInHelper(ClrThread thread, Walk walk) =>
        thread.GCMode == GCMode.Cooperative && walk.Frames.Count > 0 && !walk.Frames[0].Managed;

    // Null: a difference that nobody has explained.
    string? Compare(ClrRuntime runtime, List<ClrStackFrame> all, List<ClrStackFrame> theirs, List<Frame> ours,
        bool inHelper)
    {
        int above = ours.Count - theirs.Count;
        string kind = "equal";
        if (above > 0 && ours[theirs.Count].Flags.Contains("hijacked"))
        {
            kind = "hijacked"; // theirs are the beginning of ours
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
                    theirs[i].StackPointer >= callersSp)
                    return null;
                if (kind == "equal") kind = "pinvoke sp";
            }
            if (theirs[i].InstructionPointer != mine.Ip)
            {
                if (!IsBelowPInvoke(all, theirs[i]) || theirs[i].InstructionPointer < mine.Start ||
                    theirs[i].InstructionPointer > mine.Ip)
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

    static bool IsOffStack(Walk walk, ClrStackFrame frame) => walk.Stop == "base" &&
        (frame.StackPointer < walk.Frames[0].Sp || frame.StackPointer > walk.Frames[^1].Sp + 0x10000);

    // ClrMD cannot name every method (dynamic ones, some instantiations): those are compared by ip alone.
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
        Console.WriteLine($"DIFFERENT: thread {thread.OSThreadId}, {thread.GCMode}, our walk ended at {walk.Stop}");
        foreach (Frame f in walk.Frames.Take(60))
        {
            ClrMethod? method = f.Managed ? runtime.GetMethodByInstructionPointer(f.Ip) : null;
            string what = f.Managed ? $"{method}" : Place(runtime.DataTarget.DataReader.ProcessId, f.Ip);
            Console.WriteLine($"  ours  {f.Kind,-6} {f.Ip:x} {f.Sp:x} {f.Flags} {what}");
        }
        foreach (ClrStackFrame f in all.Take(60))
            Console.WriteLine($"  ClrMD {f.Kind,-14} {f.InstructionPointer:x} {f.StackPointer:x} {f.FrameName} {f.Method}");
    }

    // The file that an address is in, and where in it.
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

    // True: all is well.
    public bool Report()
    {
        int walks = kinds.Values.Sum(), equal = kinds.Where(k => k.Key is "equal" or "pinvoke ip" or "pinvoke sp").Sum(k => k.Value);
        Console.WriteLine($"{walks} walks of threads, {frames} managed frames compared, of {methods} the method too");
        foreach ((string kind, int count) in kinds.OrderByDescending(k => k.Value)) Console.WriteLine($"  {count,6} {kind}");
        foreach ((string stop, int count) in cut) Console.WriteLine($"  {count,6} of ours cut: {stop}");
        if (wrong > 0) Console.WriteLine($"FAIL: {wrong} walks differ (the first {Math.Min(wrong, Shown)} are above)");
        // Not a comparison at all if ClrMD had seen next to nothing. Nothing narrower: in the twenty stops of a short
        // run one thread in a long helper, or one that is just being born, is several walks in a hundred.
        bool enough = walks > 0 && equal >= walks * 0.5 && frames >= walks &&
            kinds.GetValueOrDefault("unknown thread") <= walks * 0.1;
        if (!enough) Console.WriteLine($"FAIL: only {equal} of {walks} walks could be compared as a whole");
        return wrong == 0 && enough;
    }
}
