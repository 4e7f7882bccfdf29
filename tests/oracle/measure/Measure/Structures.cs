// SPDX-License-Identifier: MIT
// Measures the structures that stand still: threads, modules, methods, code headers, tables.
using Microsoft.Diagnostics.Runtime;

namespace Measuring;

static class Structures
{
    public static void Threads(Dac dac, Table table)
    {
        foreach (ClrThread thread in dac.Runtime.Threads)
        {
            if (thread.Address == 0 || dac.Ask("GetThreadData", thread.Address) is not { } data)
                continue;
            ulong at = thread.Address, next = Dac.Member(data, "NextThread");
            void Search(string field, int size, ulong want) => table.Search("Thread", field, size,
                o => (size == 8 ? dac.Word(at + (ulong)o) : dac.Half(at + (ulong)o)) == want);
            Search("Id", 4, Dac.Member(data, "ManagedThreadId"));
            Search("OSId", 4, Dac.Member(data, "OSThreadId"));
            Search("State", 4, Dac.Member(data, "State"));
            Search("PreemptiveGCDisabled", 4, Dac.Member(data, "PreemptiveGCDisabled"));
            Search("Frame", 8, Dac.Member(data, "Frame"));
            // A link points to the next thread's link, which is at the same offset.
            if (next != 0) table.Search("Thread", "LinkNext", 8, o => dac.Word(at + (ulong)o) == next + (ulong)o);
            bool IsHandle(int o) => IsThread(dac, dac.Word(at + (ulong)o));
            if (Enumerable.Range(0, 128).Any(i => IsHandle(8 * i))) table.Search("Thread", "GCHandle", 8, IsHandle); // else it has no object yet
        }
        ulong store = dac.Word(dac.Entry(table.Index("ThreadStore")!.Value));
        object? stored = dac.Ask("GetThreadStoreData");
        ulong first = stored != null ? Dac.Member(stored, "FirstThread") : 0;
        table.Search("ThreadStore", "FirstThreadLink", 8,
            o => first != 0 && dac.Word(store + (ulong)o) == first + (ulong)table.Offset("Thread", "LinkNext"));
        if (stored == null) return;
        Variable("FinalizerThread", "FinalizerThread");
        Variable("GCThread", "GCThread");
        void Variable(string global, string member) =>
            table.Use(global, dac.Word(dac.Entry(table.Index(global)!.Value)) == Dac.Member(stored, member));
    }

    // An exception whose passes have reached a method: the iterator's sp is that of one of the two contexts to which the
    // words before them lead (between two frames it may still be the other's), and the method is one.
    public static void Exceptions(Dac dac, Table table, ulong thread)
    {
        const ulong Contexts = 6768, Rsp = 152; // before the sp; in a CONTEXT
        ulong info = dac.Word(thread + (ulong)table.Offset("Thread", "ExceptionTracker"));
        if (info == 0 || !table.Has("ExceptionInfo", "IteratorSP")) return;
        ulong method = dac.Word(info + (ulong)table.Offset("ExceptionInfo", "MethodToLeave"));
        if (method == 0) return;
        ulong at = info + (ulong)table.Offset("ExceptionInfo", "IteratorSP"), sp = dac.Word(at);
        ulong one = dac.Word(dac.Word(at - Contexts) + Rsp), other = dac.Word(dac.Word(at - Contexts + 8) + Rsp);
        table.Use("ExceptionInfo.IteratorSP", sp > info && (sp == one || sp == other), $"{sp:x}: {one:x} {other:x}");
        table.Use("ExceptionInfo.MethodToLeave", dac.Ask("GetMethodDescData", method, 0ul) != null, $"{method:x}");
    }

    static bool IsThread(Dac dac, ulong handle)
    {
        ulong thread = handle != 0 ? dac.Word(handle) : 0;
        return thread != 0 && dac.Runtime.GetTypeByMethodTable(dac.Word(thread) & ~7ul)?.Name == "System.Threading.Thread";
    }

    // The address of the image's READYTORUN_HEADER; 0: it has none.
    static ulong HeaderOf(Dac dac, ulong image)
    {
        if (image == 0 || dac.Short(image) != 0x5A4D) return 0;
        ulong optional = image + dac.Half(image + 0x3C) + 24;
        uint cli = dac.Half(optional + 112 + 14 * 8);
        uint native = cli != 0 ? dac.Half(image + cli + 64) : 0;
        return native != 0 && dac.Half(image + native) == 0x00525452 ? image + native : 0;
    }

    public static void Modules(Dac dac, Table table)
    {
        foreach (ClrModule module in dac.Runtime.EnumerateModules())
        {
            ulong image = module.ImageBase, header = HeaderOf(dac, image), at = module.Address;
            if (header == 0) continue;
            if (table.Has("Module", "Base")) table.Search("Module", "Base", 8, o => dac.Word(at + (ulong)o) == image);
            if (table.Has("Module", "Path"))
                table.Search("Module", "Path", 8, o => module.Name != null && TextAt(dac, dac.Word(at + (ulong)o), module.Name));
            int headerAt = table.Offset("ReadyToRunInfo", "ReadyToRunHeader");
            table.Search("Module", "ReadyToRunInfo", 8, o => dac.Word(dac.Word(at + (ulong)o) + (ulong)headerAt) == header);
            ulong info = dac.Word(at + (ulong)table.Offset("Module", "ReadyToRunInfo"));
            if (info == 0) continue;
            table.Search("ReadyToRunInfo", "ReadyToRunHeader", 8, o => dac.Word(info + (ulong)o) == header);
            table.Search("ReadyToRunInfo", "CompositeInfo", 8, o => dac.Word(info + (ulong)o) == info);
            uint sections = dac.Half(header + 12);
            for (ulong section = header + 16; section < header + 16 + 12 * sections; section += 12)
                Section(dac, table, info, image, section);
            EntryPoints(dac, table, info);
        }
    }

    static bool TextAt(Dac dac, ulong at, string want) =>
        at != 0 && dac.Read(at, 2 * want.Length + 2) is { } bytes && System.Text.Encoding.Unicode.GetString(bytes) == want + "\0";

    static void Section(Dac dac, Table table, ulong info, ulong image, ulong section)
    {
        uint kind = dac.Half(section), rva = dac.Half(section + 4), size = dac.Half(section + 8);
        if (kind == 102)
        {
            table.Search("ReadyToRunInfo", "RuntimeFunctions", 8, o => dac.Word(info + (ulong)o) == image + rva);
            // The last entry of the section is a sentinel.
            table.Search("ReadyToRunInfo", "NumRuntimeFunctions", 4, o => dac.Half(info + (ulong)o) is { } n && n != 0 && (n == size / 12 || n == size / 12 - 1));
            uint previous = 0;
            for (uint i = 0; i < 200 && i < size / 12 - 1; i++, previous = dac.Half(image + rva + i * 12 - 12))
                table.Use("RuntimeFunction.BeginAddress", dac.Half(image + rva + i * 12 + (uint)table.Offset("RuntimeFunction", "BeginAddress")) > previous || i == 0);
        }
        if (kind == 106) table.Search("ReadyToRunInfo", "DelayLoadMethodCallThunks", 8, o => dac.Word(info + (ulong)o) == section + 4);
    }

    // Every key of the map is an entry point, and its value the method that the DAC finds there.
    static void EntryPoints(Dac dac, Table table, ulong info)
    {
        ulong map = info + (ulong)table.Offset("ReadyToRunInfo", "EntryPointToMethodDescMap");
        ulong buckets = dac.Word(map + (ulong)table.Offset("HashMap", "Buckets"));
        uint count = buckets != 0 ? dac.Half(buckets) : 0;
        ulong size = (ulong)table.Offset("Bucket", "!"), keys = (ulong)table.Offset("Bucket", "Keys"), values = (ulong)table.Offset("Bucket", "Values");
        for (ulong i = 1; i <= count && i < 3000; i++)
        {
            for (ulong slot = 0; slot < 4; slot++)
            {
                ulong key = dac.Word(buckets + i * size + keys + 8 * slot), value = dac.Word(buckets + i * size + values + 8 * slot);
                if (key <= 1) continue;
                ulong method = (value & 0x7FFFFFFFFFFFFFFF) << 1;
                ClrMethod? theirs = dac.Runtime.GetMethodByInstructionPointer(key);
                if (theirs == null) continue; // the DAC does not know all of them
                table.Use("ReadyToRunInfo.EntryPointToMethodDescMap", theirs.MethodDesc == method, $"{key:x}");
                if (theirs.MethodDesc == method) Method(dac, table, theirs);
            }
        }
    }

    static readonly HashSet<ulong> seen = [];

    // What a MethodDesc says: its class, module and token.
    static void Method(Dac dac, Table table, ClrMethod method)
    {
        if (!seen.Add(method.MethodDesc) || method.MetadataToken == 0 || method.Type.Module == null) return;
        ulong at = method.MethodDesc;
        int bits = table.Number("MethodDescTokenRemainderBitCount");
        ulong index = dac.Half(at + (ulong)table.Offset("MethodDesc", "ChunkIndex")) & 0xFF;
        ulong chunk = at - (ulong)table.Offset("MethodDescChunk", "!") - index * (ulong)table.Number("MethodDescAlignment");
        uint low = (uint)dac.Short(at + (ulong)table.Offset("MethodDesc", "Flags3AndTokenRemainder")) & ((1u << bits) - 1);
        uint high = (uint)dac.Short(chunk + (ulong)table.Offset("MethodDescChunk", "FlagsAndTokenRange")) & ((1u << (24 - bits)) - 1);
        ulong type = dac.Word(chunk + (ulong)table.Offset("MethodDescChunk", "MethodTable"));
        table.Use("MethodDesc.Flags3AndTokenRemainder", (high << bits | low) == (method.MetadataToken & 0xFFFFFF), $"{method.Signature}");
        object? data = dac.Ask("GetMethodDescData", at, 0ul);
        if (data == null) return;
        table.Use("MethodDescChunk.MethodTable", type == Dac.Member(data, "MethodTable"));
        table.Use("MethodTable.Module", dac.Word(type + (ulong)table.Offset("MethodTable", "Module")) == Dac.Member(data, "Module"), $"{method.Signature}");
        table.Use("MethodDesc.Flags", (dac.Short(at + (ulong)table.Offset("MethodDesc", "Flags")) & 7) is var kind && kind != 7);
    }

    // A jitted method's code header, and the way through the code map to it.
    public static void Jitted(Dac dac, Table table, ulong ip)
    {
        ClrMethod? method = dac.Runtime.GetMethodByInstructionPointer(ip);
        if (method == null || dac.Ask("GetCodeHeaderData", ip) is not { } data) return;
        if (Dac.Member(data, "JITType") != 1) return; // TYPE_JIT
        ulong start = Dac.Member(data, "MethodStart"), header = dac.Word(start - 8);
        table.Search("RealCodeHeader", "MethodDesc", 8, o => o < 64 && dac.Word(header + (ulong)o) == Dac.Member(data, "MethodDesc"));
        table.Search("RealCodeHeader", "GCInfo", 8, o => o < 64 && dac.Word(header + (ulong)o) == Dac.Member(data, "GCInfo"));
        var map = new CodeMap(dac, table);
        table.Use("ExecutionManagerCodeRangeMapAddress", map.Find(ip) == start, $"{ip:x}: {map.Find(ip):x}, not {start:x}");
        ulong infos = header + (ulong)table.Offset("RealCodeHeader", "UnwindInfos");
        uint count = dac.Half(header + (ulong)table.Offset("RealCodeHeader", "NumUnwindInfos"));
        bool inside = false;
        ulong imageBase = start - dac.Half(infos);
        for (uint i = 0; i < count && i < 4096; i++)
            inside |= ip >= imageBase + dac.Half(infos + 12 * i) && ip < imageBase + dac.Half(infos + 12 * i + 4);
        // A heap of dynamic methods has a header of its own before that base.
        table.Use("RealCodeHeader.UnwindInfos", inside && imageBase - map.Base < 64, $"{method.Signature}");
    }
}
