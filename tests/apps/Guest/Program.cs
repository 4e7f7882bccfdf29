// SPDX-License-Identifier: MIT
// The program that the client profiler of tests/guest watches. It always does the same: its threads
// stand or run at places that are known by name, and its objects and exceptions come from known sites,
// so that the profiler's notes of two runs can be compared.
//   Guest stacks     threads parked and busy, until the profiler has seen enough
//   Guest sites      allocations and exceptions, all on one thread
//   Guest busy       a loop that knows when it stood still: for the benchmark
//   Guest churn      the same beside threads that begin and end
//   Guest hostile    work of every kind, and the sum of its results
//   Guest mix SLEEPING RUNNING NAPPING BREEDING   so many threads of each kind
//   Guest alone      asks the profiler for nothing, and ends when its library is gone
using System.Reflection;
using System.Runtime.InteropServices;

namespace Guest;

static unsafe partial class Profiler
{
    const string Lib = "guest";

    // Everything is in place; comes back when the profiler has what it wants. The program's exit code.
    [DllImport(Lib)] internal static extern int guest_run();
    // The calling thread's allocations and exceptions count from now on, or no more.
    [DllImport(Lib)] internal static extern void guest_sites(int on);
    // Has a hostile profiler made as many calls of each kind as it wants to?
    [DllImport(Lib)] internal static extern int guest_has_enough();
    // Stands still in native code until guest_run has come back.
    [DllImport(Lib)] internal static extern void guest_park();
    // Calls back through native code.
    [DllImport(Lib)] internal static extern void guest_call(delegate* unmanaged[Cdecl]<void> back);
    // How many threads are in guest_park.
    [DllImport(Lib)] internal static extern int guest_parked();

    internal static void Resolve() =>
        NativeLibrary.SetDllImportResolver(Assembly.GetExecutingAssembly(), (name, _, _) =>
            name != Lib ? IntPtr.Zero : NativeLibrary.Load(Environment.GetEnvironmentVariable("GUEST_LIBRARY")
                ?? throw new DllNotFoundException("GUEST_LIBRARY does not name the profiler")));
}

static class Program
{
    static int Main(string[] args)
    {
        Profiler.Resolve();
        switch (args.Length is 1 or 5 ? args[0] : "")
        {
            case "stacks": return Places.Run();
            case "sites": return Sites.Run();
            case "alone": return Places.Alone();
#if !TRIMMED // tests/aarch64: these need more of the framework
            case "busy": return Busy.Run();
            case "mix": return Mix.Run(int.Parse(args[1]), int.Parse(args[2]), int.Parse(args[3]), int.Parse(args[4]));
            case "churn": return Busy.RunBesideChurn();
            case "hostile": return Hostile.Run();
#endif
        }
        Console.Error.WriteLine("usage: Guest stacks|sites|alone|busy|churn|hostile|mix SLEEPING RUNNING NAPPING BREEDING");
        return 2;
    }
}
