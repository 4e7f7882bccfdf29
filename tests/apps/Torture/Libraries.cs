// SPDX-License-Identifier: MIT
// Libraries that come and go at each other's addresses, one of them with much thread-local memory, while other threads
// throw exceptions, whose unwinder calls the loader.
using System.Runtime.InteropServices;

namespace Torture;

sealed unsafe class Libraries : Hazard
{
    [DllImport(Native.Library)]
    static extern ulong torture_throw(ulong seed, int count);

    internal override ulong Round(Random random)
    {
        int seed = random.Next();
        return Program.Team(4, number =>
        {
            var own = new Random(seed + number);
            ulong sum = 0;
            for (int i = 0; i < 10; i++)
                sum = Program.Mix(sum, number switch { 0 => Managed(own), 1 => torture_throw((ulong)own.Next(), 20), 2 => Local(own), _ => Plug(own) });
            return sum;
        });
    }

    static ulong Managed(Random random)
    {
        int value = random.Next();
        try { throw new InvalidOperationException(value.ToString()); }
        catch (InvalidOperationException e) { return ulong.Parse(e.Message); }
    }

    static ulong Local(Random random) => With("libtest_tls.so", "tls_sum",
        function => ((delegate* unmanaged<ulong, ulong>)function)((ulong)random.Next()));

    static ulong Plug(Random random)
    {
        ulong first = (ulong)random.Next();
        return With($"libtest_plug_{random.Next(8)}.so", "plug_entry", entry =>
        {
            ulong sum = first;
            for (int i = 0; i < 5; i++)
                ((delegate* unmanaged<delegate* unmanaged<ulong*, void>, ulong*, void>)*(nint*)entry)(&Spin, &sum);
            return sum;
        });
    }

    static ulong With(string name, string export, Func<nint, ulong> use)
    {
        nint library = NativeLibrary.Load(Path.Combine(Native.Folder, name));
        ulong sum = use(NativeLibrary.GetExport(library, export));
        NativeLibrary.Free(library);
        return sum;
    }

    [UnmanagedCallersOnly]
    static void Spin(ulong* sum)
    {
        for (int i = 0; i < 3000; i++) *sum = Program.Mix(*sum, (ulong)i);
    }
}
