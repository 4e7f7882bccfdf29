// SPDX-License-Identifier: MIT
// Measure DESCRIPTION.json NOTES PID: stops the process, compares every number of a description of its runtime
// (src/core/contract/net9.json) with what the runtime's own debugger support sees, and adds the result to the file NOTES.
// Measure DESCRIPTION.json NOTES: prints the results. The exit code is 0 if no number is wrong, and each was measured or
// is listed below with the test that holds it. One process per stop, because the DAC cannot be loaded twice.
using System.Text.Json;
using Measuring;
using Microsoft.Diagnostics.Runtime;

if (args.Length is not (2 or 3))
{
    Console.Error.WriteLine("usage: Measure DESCRIPTION.json NOTES [PID]");
    return 2;
}
// What cannot be seen from outside, and which test fails where it is wrong.
var unmeasured = new Dictionary<string, string>
{
    ["Context.!"] = "oracle.sync: the size that CoreCLR passes",
    ["Thread.ExceptionTracker"] = "oracle.sync: walks during exceptions",
    ["ExceptionInfo.*"] = "oracle.sync: walks during exceptions; oracle.shadow: between two handlers, if no stop met one",
    ["DynamicMethodDesc.MethodName"] = "live.names: names of dynamic methods",
    ["SyncTableEntry.*"] = "the runtime's own descriptor; live.holders: the holders of monitors",
    ["SyncTableEntries"] = "the runtime's own descriptor; live.holders: the holders of monitors",
    ["Thread.RuntimeThreadLocals"] = "the runtime's own descriptor",
    ["ThreadStore.DeadCount"] = "the runtime's own descriptor",
    ["Module.TypeDefToMethodTableMap"] = "the runtime's own descriptor",
    ["Array.*"] = "the runtime's own descriptor",
    ["Exception.*"] = "the runtime's own descriptor",
    ["RuntimeThreadLocals.*"] = "the runtime's own descriptor",
    ["GCAllocContext.*"] = "the runtime's own descriptor",
    ["ObjectMethodTable"] = "the runtime's own descriptor",
    ["ExceptionMethodTable"] = "the runtime's own descriptor",
    ["FreeObjectMethodTable"] = "the runtime's own descriptor",
    ["MethodTable.*"] = "live.async, live.pool: classes by their names",
    ["EEClass.*"] = "live.async, live.pool: fields by their names",
    ["ModuleLookupMap.*"] = "live.pool: classes by their rows",
    ["DynamicStaticsInfo.*"] = "live.pool: statics",
    ["GenericsDictInfo.*"] = "live.async: arguments of generic classes",
    ["EEAllocContext.*"] = "live.async: gaps of the heap",
    ["String.*"] = "live.names: names of threads",
    ["ImageDataDirectory.*"] = "the format of PE images",
    ["ReadyToRunInfo.HotColdMap"] = "zero in every image that is shipped",
    ["ReadyToRunInfo.NumHotColdMap"] = "zero in every image that is shipped",
    ["RuntimeFunction.*"] = "the format of PE images",
    ["CodeHeapListNode.Next"] = "not read",
    ["CodeHeapListNode.*"] = "ExecutionManagerCodeRangeMapAddress above",
    ["RangeSectionMap.*"] = "ExecutionManagerCodeRangeMapAddress above",
    ["RangeSectionFragment.*"] = "ExecutionManagerCodeRangeMapAddress above",
    ["RangeSection.*"] = "ExecutionManagerCodeRangeMapAddress above",
    ["RealCodeHeader.NumUnwindInfos"] = "RealCodeHeader.UnwindInfos above",
    ["HashMap.*"] = "ReadyToRunInfo.EntryPointToMethodDescMap above",
    ["Bucket.*"] = "ReadyToRunInfo.EntryPointToMethodDescMap above",
    ["MethodDesc.*"] = "MethodDesc.Flags3AndTokenRemainder above",
    ["MethodDescChunk.*"] = "MethodDesc.Flags3AndTokenRemainder above",
    ["InlinedCallFrame.!"] = "not read",
    ["FramedMethodFrame.*"] = "TransitionBlock above",
    ["TransitionBlock.CalleeSavedRegisters"] = "CalleeSavedRegisters above",
    ["HijackFrame.*"] = "oracle.step: replaced return addresses, if no stop met one",
    ["HijackArgs.*"] = "oracle.step: replaced return addresses, if no stop met one",
    ["ResumableFrame.*"] = "oracle.step: collections, if no stop met one",
    ["FaultingExceptionFrame.*"] = "oracle.sync: faults, if no stop met one",
    ["CalleeSavedRegisters.!"] = "not read",
    ["HashMapSlotsPerBucket"] = "ReadyToRunInfo.EntryPointToMethodDescMap above",
    ["HashMapValueMask"] = "ReadyToRunInfo.EntryPointToMethodDescMap above",
    ["MethodDescAlignment"] = "MethodDesc.Flags3AndTokenRemainder above",
    ["MethodDescTokenRemainderBitCount"] = "MethodDesc.Flags3AndTokenRemainder above",
    ["StubCodeBlockLast"] = "the step oracle: stubs",
    ["AppDomain"] = "ThreadStore above: its neighbours",
    ["SystemDomain"] = "ThreadStore above: its neighbours",
    ["ThreadStore"] = "ThreadStore.FirstThreadLink above",
};
var table = new Table(JsonDocument.Parse(File.ReadAllText(args[0])).RootElement);
table.Load(args[1]);
if (args.Length == 2) return table.Report(unmeasured) ? 0 : 1;

using (var dac = new Dac(int.Parse(args[2])))
{
    bool first = !File.Exists(args[1]);
    if (first) Frames.Kinds(dac, table);
    Structures.Threads(dac, table);
    if (first || Random.Shared.Next(20) == 0) Structures.Modules(dac, table);
    foreach (ClrThread thread in dac.Runtime.Threads)
    {
        if (thread.Address == 0 || !thread.IsAlive) continue;
        Frames.Chain(dac, table, thread);
        Structures.Exceptions(dac, table, thread.Address);
        foreach (ClrStackFrame frame in thread.EnumerateStackTrace())
            if (frame.InstructionPointer != 0) Structures.Jitted(dac, table, frame.InstructionPointer);
    }
}
table.Save(args[1]);
return 0;
