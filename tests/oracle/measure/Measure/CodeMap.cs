// SPDX-License-Identifier: MIT
// The way from an address to the start of the jitted method that has it, by the numbers of the description: the range
// map, a code heap's map in contract version 1, the header.
namespace Measuring;

sealed class CodeMap(Dac dac, Table table)
{
    public ulong Base { get; private set; } // of the code heap that was found last

    public ulong Find(ulong ip)
    {
        ulong at = dac.Entry(table.Index("ExecutionManagerCodeRangeMapAddress")!.Value) + Of("RangeSectionMap", "TopLevelData");
        for (int level = 4; level >= 0; level--)
        {
            at = dac.Word(at + ((ip >> (17 + 8 * level)) & 255) * 8) & ~1ul;
            if (at == 0) return 0;
        }
        for (; at != 0; at = dac.Word(at + Of("RangeSectionFragment", "Next")) & ~1ul)
            if (ip >= dac.Word(at + Of("RangeSectionFragment", "RangeBegin")) && ip < dac.Word(at + Of("RangeSectionFragment", "RangeEndOpen")))
                return InSection(dac.Word(at + Of("RangeSectionFragment", "RangeSection")), ip);
        return 0;
    }

    ulong Of(string type, string field) => (ulong)table.Offset(type, field);

    ulong InSection(ulong section, ulong ip)
    {
        ulong manager = dac.Word(dac.Entry(table.Index("EEJitManagerAddress")!.Value));
        table.Use("EEJitManagerAddress", manager == dac.Word(section + Of("RangeSection", "JitManager")));
        table.Use("RangeSection.Flags", (dac.Half(section + Of("RangeSection", "Flags")) & 2) != 0);
        table.Use("RangeSection.R2RModule", dac.Word(section + Of("RangeSection", "R2RModule")) == 0);
        table.Use("RangeSection.RangeBegin", ip >= dac.Word(section + Of("RangeSection", "RangeBegin")));
        table.Use("RangeSection.RangeEndOpen", ip < dac.Word(section + Of("RangeSection", "RangeEndOpen")));
        ulong heap = dac.Word(section + Of("RangeSection", "HeapList"));
        table.Use("CodeHeapListNode.StartAddress", ip >= dac.Word(heap + Of("CodeHeapListNode", "StartAddress")));
        table.Use("CodeHeapListNode.EndAddress", ip < dac.Word(heap + Of("CodeHeapListNode", "EndAddress")));
        Base = dac.Word(heap + Of("CodeHeapListNode", "MapBase"));
        ulong map = dac.Word(heap + Of("CodeHeapListNode", "HeaderMap"));
        for (ulong bucket = (ip - Base) / 32; ; bucket--)
        {
            uint nibble = dac.Half(map + bucket / 8 * 4) >> (int)(28 - bucket % 8 * 4) & 15;
            ulong start = Base + bucket * 32 + (nibble - 1) * 4;
            if (nibble != 0 && start <= ip) return start;
            if (bucket == 0) return 0;
        }
    }
}
