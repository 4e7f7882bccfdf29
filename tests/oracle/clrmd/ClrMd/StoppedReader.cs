// SPDX-License-Identifier: MIT
// ClrMD's view of a process that another program has stopped: memory through ClrMD's own reader,
// and the threads' registers from that program (only a tracer can read them).
using System.Buffers.Binary;
using System.Runtime.InteropServices;
using Microsoft.Diagnostics.Runtime;

namespace ClrMdOracle;

sealed class StoppedReader(IDataReader memory, IEnumerable<Walk> walks) : IDataReader
{
    const uint AllButDebugRegisters = 0x10001F; // CONTEXT_AMD64 | control, integer, segments, floating point
    static readonly (string Name, int Offset)[] layout =
    [
        ("rax", 0x78), ("rcx", 0x80), ("rdx", 0x88), ("rbx", 0x90), ("rsp", 0x98), ("rbp", 0xA0), ("rsi", 0xA8),
        ("rdi", 0xB0), ("r8", 0xB8), ("r9", 0xC0), ("r10", 0xC8), ("r11", 0xD0), ("r12", 0xD8), ("r13", 0xE0),
        ("r14", 0xE8), ("r15", 0xF0), ("rip", 0xF8),
    ];

    readonly Dictionary<uint, Walk> threads = walks.ToDictionary(w => w.Tid);

    public bool GetThreadContext(uint threadID, uint contextFlags, Span<byte> context)
    {
        if (context.Length < 0x100 || !threads.TryGetValue(threadID, out Walk? walk)) return false;
        context.Clear();
        BinaryPrimitives.WriteUInt32LittleEndian(context[0x30..], AllButDebugRegisters);
        foreach ((string name, int offset) in layout)
            BinaryPrimitives.WriteUInt64LittleEndian(context[offset..], walk.Registers[name]);
        return true;
    }

    public string DisplayName => memory.DisplayName;
    public bool IsThreadSafe => false;
    public OSPlatform TargetPlatform => memory.TargetPlatform;
    public Architecture Architecture => memory.Architecture;
    public int ProcessId => memory.ProcessId;
    public int PointerSize => memory.PointerSize;
    public IEnumerable<ModuleInfo> EnumerateModules() => memory.EnumerateModules();
    public void FlushCachedData() => memory.FlushCachedData();
    public int Read(ulong address, Span<byte> buffer) => memory.Read(address, buffer);
    public bool Read<T>(ulong address, out T value) where T : unmanaged => memory.Read(address, out value);
    public T Read<T>(ulong address) where T : unmanaged => memory.Read<T>(address);
    public bool ReadPointer(ulong address, out ulong value) => memory.ReadPointer(address, out value);
    public ulong ReadPointer(ulong address) => memory.ReadPointer(address);
}
