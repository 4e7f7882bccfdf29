// SPDX-License-Identifier: MIT
// RuntimeAsync SECONDS [wait]: chains of awaits in which methods that the runtime resumes itself stand among methods with
// state machines. Prints the awaiting methods of each leaf, the innermost first, and works. wait: then suspends
// Hang.Outer > Hang.Middle > Hang.Inner, of which the middle one is the runtime's, and sleeps.
using System.Diagnostics;
using System.Runtime.CompilerServices;

Console.WriteLine("Mixed: Mixed.Middle;Mixed.Outer;Mixed.Run");
Console.WriteLine("Machines: Machines.Middle;Machines.Outer;Machines.Run");
Console.WriteLine("Runtime: Runtime.Middle;Runtime.Outer;Runtime.Run");
var watch = Stopwatch.StartNew();
double seconds = double.Parse(args[0]);
while (watch.Elapsed.TotalSeconds < seconds) Task.WaitAll(Mixed.Run(), Machines.Run(), Runtime.Run());
if (args.Length > 1)
{
    Task hangs = Hang.Outer();
    Console.WriteLine("hangs");
    Thread.Sleep(600_000);
    GC.KeepAlive(hangs);
}

static class Leaf
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static double Mixed() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static double Machines() => Work();
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static double Runtime() => Work();

    static double Work()
    {
        double x = 1;
        for (int i = 0; i < 2_000_000; i++) x = Math.Sqrt(x + i);
        return x + 1; // no tail call
    }
}

static class Mixed
{
    [RuntimeAsyncMethodGeneration(false)]
    static async Task<double> Inner() { await Task.Delay(1); return Leaf.Mixed(); }
    static async Task<double> Middle() { return await Inner() + 1; }
    [RuntimeAsyncMethodGeneration(false)]
    static async Task<double> Outer() { return await Middle() + 1; }
    [RuntimeAsyncMethodGeneration(false)]
    public static async Task Run() { await Outer(); }
}

static class Machines
{
    [RuntimeAsyncMethodGeneration(false)]
    static async Task<double> Inner() { await Task.Delay(1); return Leaf.Machines(); }
    [RuntimeAsyncMethodGeneration(false)]
    static async Task<double> Middle() { return await Inner() + 1; }
    [RuntimeAsyncMethodGeneration(false)]
    static async Task<double> Outer() { return await Middle() + 1; }
    [RuntimeAsyncMethodGeneration(false)]
    public static async Task Run() { await Outer(); }
}

static class Runtime
{
    static async Task<double> Inner() { await Task.Delay(1); return Leaf.Runtime(); }
    static async Task<double> Middle() { return await Inner() + 1; }
    static async Task<double> Outer() { return await Middle() + 1; }
    public static async Task Run() { await Outer(); }
}

static class Hang
{
    static readonly TaskCompletionSource Never = new();
    [RuntimeAsyncMethodGeneration(false)]
    static async Task Inner() { await Never.Task; }
    static async Task Middle() { await Inner(); }
    [RuntimeAsyncMethodGeneration(false)]
    public static async Task Outer() { await Middle(); }
}

namespace System.Runtime.CompilerServices
{
    // The compiler knows it by its name.
    [AttributeUsage(AttributeTargets.Method)]
    sealed class RuntimeAsyncMethodGenerationAttribute(bool runtimeAsync) : Attribute
    {
        public bool RuntimeAsync => runtimeAsync;
    }
}
