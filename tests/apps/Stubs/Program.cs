// SPDX-License-Identifier: MIT
// Makes the runtime make each kind of code that has no unwind data, finds it in this very process, and
// prints "NAME ADDRESS BYTES" for one of each: by its address where the runtime hands it out (delegates,
// function pointers), else by its shape in executable memory that no file is mapped to. "spin MS" instead
// runs through the stubs that the runtime enters into no map, for a recording.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Stubs;

interface IShape { int Area(); }
class Square : IShape { public int Area() => 1; }
class Circle : IShape { public int Area() => 3; }
class Line : IShape { public int Area() => 0; }

static class Program
{
    // ?? is any byte.
    static readonly (string Name, string Shape)[] shapes =
    {
        ("fixup-precode", "FF 25 ?? ?? ?? ?? 4C 8B 15 ?? ?? ?? ?? FF 25 ?? ?? ?? ??"),
        ("stub-precode", "4C 8B 15 ?? ?? ?? ?? FF 25 ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? ?? 4C 8B 15"),
        ("call-counting", "48 8B 05 ?? ?? ?? ?? 66 FF 08 74 06 FF 25 ?? ?? ?? ?? FF 25 ?? ?? ?? ??"),
        ("dispatch", "48 B8 ?? ?? ?? ?? ?? ?? ?? ?? 48 39 07"),
        ("resolve", "48 8B 07 52 49 BA ?? ?? ?? ?? ?? ?? ?? ?? 48 8B D0 48 C1 E8 0C"),
        ("resolve-slow-path", "49 83 CB 01 52 49 BA ?? ?? ?? ?? ?? ?? ?? ?? 50 48 B8 ?? ?? ?? ?? ?? ?? ?? ?? FF E0"),
        ("lookup", "49 BA ?? ?? ?? ?? ?? ?? ?? ?? 50 48 B8 ?? ?? ?? ?? ?? ?? ?? ?? FF E0"),
        ("dynamic-helper", "48 BF ?? ?? ?? ?? ?? ?? ?? ?? E9"),
        ("jump-stub", "48 B8 ?? ?? ?? ?? ?? ?? ?? ?? FF E0"),
        ("write-barrier", "48 89 37"),
    };

    static int Main(string[] args)
    {
        Exercise();
        if (args.Length == 2 && args[0] == "spin") return Spin(int.Parse(args[1]));
        var found = new List<(string Name, long Address)>();
        AddByAddress(found);
        foreach ((long begin, byte[] bytes) in ExecutableMemory())
        {
            foreach ((string name, string shape) in shapes)
            {
                if (found.Any(f => f.Name == name)) continue;
                int at = Find(bytes, shape, name);
                if (at >= 0) found.Add((name, begin + at));
            }
        }
        foreach ((string name, long address) in found)
        {
            var bytes = new byte[64];
            Marshal.Copy((IntPtr)address, bytes, 0, bytes.Length);
            Console.WriteLine($"{name} {address:x} {BitConverter.ToString(bytes).Replace("-", " ")}");
        }
        return 0;
    }

    // ---- what the runtime makes ----

    delegate int Binary(int a, int b);
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate int Compare(IntPtr a, IntPtr b);
    [DllImport("libc")] static extern void qsort(int[] items, UIntPtr count, UIntPtr size, Compare compare);

    [MethodImpl(MethodImplOptions.NoInlining)] static int Add(int a, int b) => a + b;
    [MethodImpl(MethodImplOptions.NoInlining)] static int Sum(IShape shape) => shape.Area();
    [MethodImpl(MethodImplOptions.NoInlining)] static int SumOnce(IShape shape) => shape.Area() + 1;
    [MethodImpl(MethodImplOptions.NoInlining)] static int SumNever(IShape? shape) => shape == null ? 0 : shape.Area();
    [MethodImpl(MethodImplOptions.NoInlining)] static int NotYetCalled(int a) => a;
    [MethodImpl(MethodImplOptions.NoInlining)] static int Counted(int a) => a + 1;

    static readonly object[] store = new object[8];
    static readonly Binary open = Add;
    static readonly Compare compare = (a, b) => Marshal.ReadInt32(a) - Marshal.ReadInt32(b);

    static void Exercise()
    {
        IShape[] many = { new Square(), new Circle(), new Line() };
        int sum = 0;
        for (int i = 0; i < 5; i++) sum += SumOnce(many[0]);      // one type: a dispatch stub
        for (int i = 0; i < 2000; i++) sum += Sum(many[i % 3]);   // many types: a resolve stub
        for (int i = 0; i < 1000; i++) store[i % 8] = many[i % 3];
        int[] items = { 3, 1, 2 };
        qsort(items, (UIntPtr)3, (UIntPtr)4, compare);
        sum += open(1, 2) + SumNever(null);
        // Call counting begins 100 ms after the last tier-0 code was made, and ends after 30 calls.
        for (int round = 0; round < 50; round++)
        {
            sum += Counted(round);
            Thread.Sleep(20);
        }
        GC.KeepAlive(sum);
    }

    static int Spin(int milliseconds)
    {
        DateTime end = DateTime.UtcNow.AddMilliseconds(milliseconds);
        int sum = 0;
        while (DateTime.UtcNow < end)
        {
            for (int i = 0; i < 100_000; i++)
            {
                store[i & 7] = store[(i + 1) & 7];
                sum = open(sum, i);
            }
        }
        return sum == 1 ? 1 : 0;
    }

    static void AddByAddress(List<(string, long)> found)
    {
        FieldInfo code = typeof(Delegate).GetField("_methodPtr", BindingFlags.Instance | BindingFlags.NonPublic)!;
        RuntimeMethodHandle never = typeof(Program).GetMethod(nameof(NotYetCalled), BindingFlags.Static | BindingFlags.NonPublic)!.MethodHandle;
        found.Add(("delegate-shuffle", (long)(IntPtr)code.GetValue(open)!));
        found.Add(("entry-of-a-method-not-yet-called", (long)never.GetFunctionPointer()));
        found.Add(("umthunk", (long)Marshal.GetFunctionPointerForDelegate(compare)));
    }

    // ---- where it is ----

    static IEnumerable<(long, byte[])> ExecutableMemory()
    {
        foreach (string line in File.ReadAllLines("/proc/self/maps"))
        {
            string[] parts = line.Split(new[] { ' ' }, StringSplitOptions.RemoveEmptyEntries);
            bool ofFile = parts.Length > 5 && !parts[5].Contains("doublemapper");
            if (ofFile || parts[1][0] != 'r' || parts[1][2] != 'x') continue;
            long[] range = parts[0].Split('-').Select(s => long.Parse(s, NumberStyles.HexNumber)).ToArray();
            var bytes = new byte[range[1] - range[0]];
            Marshal.Copy((IntPtr)range[0], bytes, 0, bytes.Length);
            yield return (range[0], bytes);
        }
    }

    // A fixup precode has a stub precode's instructions in it, a resolve stub a lookup stub's.
    static bool IsInside(string name, byte[] bytes, int at) => name switch
    {
        "stub-precode" => at >= 6 && bytes[at - 6] == 0xFF && bytes[at - 5] == 0x25,
        "lookup" => at >= 1 && bytes[at - 1] == 0x52,
        _ => false,
    };

    static int Find(byte[] bytes, string shape, string name)
    {
        int[] wanted = shape.Split(' ').Select(b => b == "??" ? -1 : Convert.ToInt32(b, 16)).ToArray();
        int step = name == "write-barrier" ? 16 : 1;
        for (int at = 0; at + wanted.Length <= bytes.Length; at += step)
        {
            int i = 0;
            while (i < wanted.Length && (wanted[i] < 0 || bytes[at + i] == wanted[i])) i++;
            if (i == wanted.Length && !IsInside(name, bytes, at)) return at;
        }
        return -1;
    }
}
