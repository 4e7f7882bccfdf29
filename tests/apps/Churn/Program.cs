// Libraries that come and go at each other's addresses (tests/unit/lib/plug.c, of eight shapes), under
// a method of their own each: InShape3 calls shape 3 and no other. So a frame that is attributed to the
// wrong library is called by the wrong method.
// Arguments: folder of the libraries, seconds. Prints how many were loaded, and how many of them at the
// address of the previous one, and the CPU time of the thread in ms.
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

long cpu = Churn.CpuMs();
string folder = args[0];
var end = Stopwatch.StartNew();
double seconds = double.Parse(args[1]);
var methods = new Action<nint>[] { Churn.InShape0, Churn.InShape1, Churn.InShape2, Churn.InShape3,
                                   Churn.InShape4, Churn.InShape5, Churn.InShape6, Churn.InShape7 };
foreach (var method in methods) method(0);
long loads = 0, replaced = 0;
nint last = 0;
var random = new Random(4711);
while (end.Elapsed.TotalSeconds < seconds)
{
    int shape = random.Next(methods.Length);
    nint library = NativeLibrary.Load(Path.Combine(folder, $"libtest_plug_{shape}.so"));
    nint plug = Marshal.ReadIntPtr(NativeLibrary.GetExport(library, "plug_entry"));
    for (int calls = random.Next(1, 40); calls > 0; calls--) methods[shape](plug);
    NativeLibrary.Free(library);
    loads++;
    if (plug == last) replaced++;
    last = plug;
}
Console.WriteLine($"loads {loads} replaced {replaced} cpu {Churn.CpuMs() - cpu}");

static unsafe class Churn
{
    struct Time { internal long Seconds, Nanoseconds; }

    [DllImport("libc")]
    static extern int clock_gettime(int clock, out Time time);

    internal static long CpuMs()
    {
        _ = clock_gettime(3, out var time);  // CLOCK_THREAD_CPUTIME_ID
        return time.Seconds * 1000 + time.Nanoseconds / 1000000;
    }

    static long sum;

    [MethodImpl(MethodImplOptions.NoInlining)] public static void InShape0(nint plug) => Call(plug);
    [MethodImpl(MethodImplOptions.NoInlining)] public static void InShape1(nint plug) => Call(plug);
    [MethodImpl(MethodImplOptions.NoInlining)] public static void InShape2(nint plug) => Call(plug);
    [MethodImpl(MethodImplOptions.NoInlining)] public static void InShape3(nint plug) => Call(plug);
    [MethodImpl(MethodImplOptions.NoInlining)] public static void InShape4(nint plug) => Call(plug);
    [MethodImpl(MethodImplOptions.NoInlining)] public static void InShape5(nint plug) => Call(plug);
    [MethodImpl(MethodImplOptions.NoInlining)] public static void InShape6(nint plug) => Call(plug);
    [MethodImpl(MethodImplOptions.NoInlining)] public static void InShape7(nint plug) => Call(plug);

    // Inlined into each: the library's caller is InShapeN itself.
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static void Call(nint plug)
    {
        if (plug == 0) return;
        ((delegate* unmanaged<delegate* unmanaged<nint, void>, nint, void>)plug)(&Spin, 200_000);
        sum++;
    }

    [UnmanagedCallersOnly]
    static void Spin(nint rounds)
    {
        long s = 0;
        for (nint i = 0; i < rounds; i++) s += i ^ (s >> 3);
        sum += s;
    }
}
