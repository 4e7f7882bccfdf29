// SPDX-License-Identifier: MIT
// Measures explicit Frames: their kinds by the name that the DAC has for each table of virtual functions, and their
// members by the managed frame to which the DAC's own walk goes on from them.
using Microsoft.Diagnostics.Runtime;

namespace Measuring;

static class Frames
{
    public static void Kinds(Dac dac, Table table)
    {
        foreach ((string name, int index) in table.Indexed().Where(p => p.Name.EndsWith("FrameIdentifier")))
        {
            string? theirs = dac.FrameName(dac.Entry(index));
            table.Use(name, theirs == name[..^"Identifier".Length], $"entry {index} is {theirs}");
        }
    }

    static readonly HashSet<string> transition =
        ["PrestubMethodFrame", "StubDispatchFrame", "CallCountingHelperFrame", "ExternalMethodFrame", "DynamicHelperFrame", "PInvokeCalliFrame"];

    public static void Chain(Dac dac, Table table, ClrThread thread)
    {
        ulong last = 0;
        ClrStackFrame? open = null;
        foreach (ClrStackFrame frame in thread.EnumerateStackTrace(true))
        {
            bool isFrame = frame.Kind == ClrStackFrameKind.Runtime;
            if (isFrame)
            {
                if (last != 0) table.Use("Frame.Next", Follows(dac, table, last, frame.StackPointer), $"{frame.FrameName}");
                last = frame.StackPointer;
                open = frame;
                continue;
            }
            if (open != null && open.FrameName != null) Check(dac, table, open.StackPointer, open.FrameName, frame);
            open = null;
        }
    }

    // Frames that the DAC does not show may lie between.
    static bool Follows(Dac dac, Table table, ulong from, ulong to)
    {
        for (int i = 0; i < 64 && from != 0 && from < to; i++) from = dac.Word(from + (ulong)table.Offset("Frame", "Next"));
        return from == to;
    }

    static void Check(Dac dac, Table table, ulong at, string kind, ClrStackFrame next)
    {
        ulong Of(string type, string field) => (ulong)table.Offset(type, field);
        ulong ip = next.InstructionPointer, sp = next.StackPointer;
        if (kind == "InlinedCallFrame")
        {
            if (dac.Word(at + Of(kind, "CallerReturnAddress")) == 0) return;
            table.Use("InlinedCallFrame.CallerReturnAddress", dac.Word(at + Of(kind, "CallerReturnAddress")) == ip);
            table.Use("InlinedCallFrame.CallSiteSP", dac.Word(at + Of(kind, "CallSiteSP")) == sp);
            table.Use("InlinedCallFrame.CalleeSavedFP", dac.Word(at + Of(kind, "CalleeSavedFP")) == Rbp(next));
        }
        else if (transition.Contains(kind))
        {
            ulong block = dac.Word(at + Of("FramedMethodFrame", "TransitionBlockPtr"));
            table.Use("TransitionBlock.ReturnAddress", dac.Word(block + Of("TransitionBlock", "ReturnAddress")) == ip, kind);
            table.Use("TransitionBlock.!", block + Of("TransitionBlock", "!") == sp, kind);
            CalleeSaved(dac, table, block + Of("TransitionBlock", "CalleeSavedRegisters"), next, kind);
        }
        else if (kind == "HijackFrame")
        {
            ulong block = dac.Word(at + Of(kind, "HijackArgsPtr"));
            table.Use("HijackFrame.ReturnAddress", dac.Word(at + Of(kind, "ReturnAddress")) == ip);
            table.Use("HijackArgs.!", block + Of("HijackArgs", "!") == sp);
            CalleeSaved(dac, table, block + Of("HijackArgs", "CalleeSavedRegisters"), next, kind);
        }
        else if (kind is "ResumableFrame" or "RedirectedThreadFrame" or "FaultingExceptionFrame")
        {
            bool faulting = kind == "FaultingExceptionFrame";
            ulong context = faulting ? at + Of(kind, "TargetContext") : dac.Word(at + Of("ResumableFrame", "TargetContextPtr"));
            string name = faulting ? "FaultingExceptionFrame.TargetContext" : "ResumableFrame.TargetContextPtr";
            table.Use(name, dac.Word(context + 248) == ip && dac.Word(context + 152) == sp, $"{dac.Word(context + 248):x} {ip:x}");
        }
    }

    // Offsets in the AMD64 CONTEXT.
    static ulong Register(ClrStackFrame frame, int at) => BitConverter.ToUInt64(frame.Context[at..(at + 8)]);
    static ulong Rbp(ClrStackFrame frame) => Register(frame, 160);

    static void CalleeSaved(Dac dac, Table table, ulong block, ClrStackFrame next, string kind)
    {
        foreach ((string name, int at) in new[] { ("Rbx", 144), ("Rbp", 160), ("R12", 216), ("R13", 224), ("R14", 232), ("R15", 240) })
            table.Use("CalleeSavedRegisters." + name,
                dac.Word(block + (ulong)table.Offset("CalleeSavedRegisters", name)) == Register(next, at), kind);
    }
}
