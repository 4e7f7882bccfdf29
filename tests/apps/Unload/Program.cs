// Code that dies: dynamic methods and collectible assemblies are made, run for a while, dropped and
// collected, again and again, on several threads. Each generation's methods have names of their own
// and burn CPU time, so that a sampler finds them on the stack right before they are unloaded.
// Arguments: seconds, threads. Prints how many of each were made and unloaded.
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;

double seconds = args.Length > 0 ? double.Parse(args[0]) : 3;
int threads = args.Length > 1 ? int.Parse(args[1]) : 2;
var end = DateTime.UtcNow.AddSeconds(seconds);
var workers = Enumerable.Range(0, threads)
    .Select(i => new Thread(() => Unload.Work(i, end)) { Name = $"unload-{i}" }).ToArray();
foreach (var w in workers) w.Start();
foreach (var w in workers) w.Join();
GC.Collect();
GC.WaitForPendingFinalizers();
Console.WriteLine($"dynamic {Unload.Dynamic} collectible {Unload.Collectible} unloaded {Unload.Dead()} sum {Unload.Sum}");

static class Unload
{
    public static long Dynamic, Collectible, Sum;
    static readonly List<WeakReference> assemblies = new();

    public static int Dead()
    {
        for (int i = 0; i < 10; i++) { GC.Collect(); GC.WaitForPendingFinalizers(); }
        lock (assemblies) return assemblies.Count(a => !a.IsAlive);
    }

    public static void Work(int worker, DateTime end)
    {
        for (int round = 0; DateTime.UtcNow < end; round++)
        {
            RunDynamic(worker, round);
            if (round % 4 == 0) RunCollectible(worker, round);
            if (round % 8 == 0) { GC.Collect(); GC.WaitForPendingFinalizers(); }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void RunDynamic(int worker, int round)
    {
        var method = new DynamicMethod($"Dyn_{worker}_{round}", typeof(long), new[] { typeof(long) }, typeof(Unload).Module);
        EmitLoop(method.GetILGenerator());
        var f = method.CreateDelegate<Func<long, long>>();
        Interlocked.Add(ref Sum, f(200_000 + round % 7));
        Interlocked.Increment(ref Dynamic);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void RunCollectible(int worker, int round)
    {
        var name = new AssemblyName($"Collectible_{worker}_{round}");
        var assembly = AssemblyBuilder.DefineDynamicAssembly(name, AssemblyBuilderAccess.RunAndCollect);
        var type = assembly.DefineDynamicModule("m").DefineType($"T_{worker}_{round}", TypeAttributes.Public);
        var run = type.DefineMethod("Spin", MethodAttributes.Public | MethodAttributes.Static, typeof(long), new[] { typeof(long) });
        EmitLoop(run.GetILGenerator());
        var made = type.CreateType();
        var spin = made.GetMethod("Spin")!.CreateDelegate<Func<long, long>>();
        Interlocked.Add(ref Sum, spin(200_000));
        // Generic code over a collectible type lives in the collectible assembly's own heap.
        var list = (System.Collections.IList)Activator.CreateInstance(typeof(List<>).MakeGenericType(made))!;
        for (int i = 0; i < 2000; i++) list.Add(null);
        lock (assemblies) assemblies.Add(new WeakReference(assembly));
        Interlocked.Increment(ref Collectible);
    }

    // long s = 0; while (n > 0) { s += n * n; n--; } return s;
    static void EmitLoop(ILGenerator il)
    {
        var s = il.DeclareLocal(typeof(long));
        Label top = il.DefineLabel(), done = il.DefineLabel();
        il.Emit(OpCodes.Ldc_I4_0); il.Emit(OpCodes.Conv_I8); il.Emit(OpCodes.Stloc, s);
        il.MarkLabel(top);
        il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ldc_I4_0); il.Emit(OpCodes.Conv_I8); il.Emit(OpCodes.Ble, done);
        il.Emit(OpCodes.Ldloc, s); il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Mul); il.Emit(OpCodes.Add); il.Emit(OpCodes.Stloc, s);
        il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ldc_I4_1); il.Emit(OpCodes.Conv_I8); il.Emit(OpCodes.Sub); il.Emit(OpCodes.Starg_S, (byte)0);
        il.Emit(OpCodes.Br, top);
        il.MarkLabel(done);
        il.Emit(OpCodes.Ldloc, s); il.Emit(OpCodes.Ret);
    }
}
