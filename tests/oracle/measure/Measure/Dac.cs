// SPDX-License-Identifier: MIT
// One stopped process: its memory, and what the runtime's own debugger support (the DAC, through ClrMD) says of it.
// ClrMD keeps the interface that has the addresses to itself, so it is called by reflection.
using System.Buffers.Binary;
using System.Reflection;
using Microsoft.Diagnostics.Runtime;

namespace Measuring;

sealed class Dac : IDisposable
{
    readonly DataTarget target;
    readonly object sos;

    public Dac(int pid)
    {
        target = DataTarget.AttachToProcess(pid, suspend: true);
        Runtime = target.ClrVersions[0].CreateRuntime();
        const BindingFlags any = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;
        sos = typeof(DacLibrary).GetProperty("SOSDacInterface", any)?.GetValue(Runtime.DacLibrary)
            ?? throw new InvalidOperationException("ClrMD has no SOSDacInterface");
        Table = Runtime.ClrInfo.ModuleInfo.GetExportSymbolAddress("g_dacTable");
    }

    public ClrRuntime Runtime { get; }
    public ulong Table { get; }
    public ulong Begin => Runtime.ClrInfo.ModuleInfo.ImageBase;

    public void Dispose() => target.Dispose();

    public ulong Entry(int index) => Word(Table + 8 * (ulong)index);
    public ulong Word(ulong at) => target.DataReader.ReadPointer(at);
    public uint Half(ulong at) => Read(at, 4) is { } bytes ? BinaryPrimitives.ReadUInt32LittleEndian(bytes) : 0;
    public ushort Short(ulong at) => Read(at, 2) is { } bytes ? BinaryPrimitives.ReadUInt16LittleEndian(bytes) : (ushort)0;
    public byte[]? Read(ulong at, int size)
    {
        var bytes = new byte[size];
        return target.DataReader.Read(at, bytes) == size ? bytes : null;
    }

    // A method of the DAC's interface whose last argument is filled in; null if it fails.
    public object? Ask(string name, params ulong[] arguments)
    {
        MethodInfo method = sos.GetType().GetMethods(BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic)
            .First(m => m.Name == name && m.GetParameters().Length == arguments.Length + 1);
        object?[] all = [.. arguments.Zip(method.GetParameters(), (a, p) => As(p.ParameterType, a)), null];
        object? result = method.Invoke(sos, all);
        return result is false ? null : all[^1];
    }

    static object As(Type type, ulong address) => type == typeof(ulong) ? address : Activator.CreateInstance(type, (long)address)!;

    public string? FrameName(ulong vtable) =>
        (string?)sos.GetType().GetMethod("GetFrameName", BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic)!
            .Invoke(sos, [vtable]);

    // A member of what Ask has returned.
    public static ulong Member(object data, string name)
    {
        const BindingFlags any = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;
        object? value = data.GetType().GetField(name, any)?.GetValue(data) ?? data.GetType().GetProperty(name, any)?.GetValue(data);
        return value switch
        {
            ulong u => u,
            uint u => u,
            int i => (uint)i,
            null => throw new InvalidOperationException($"{data.GetType()} has no {name}: " +
                string.Join(' ', data.GetType().GetMembers(any).Select(m => m.Name))),
            _ => value.GetType().GetMethod("AsUInt64") is { } m ? (ulong)m.Invoke(value, null)! : (ulong)(dynamic)value,
        };
    }
}
