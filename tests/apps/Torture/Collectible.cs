// SPDX-License-Identifier: MIT
// Assemblies that are collected while others run: emitted ones, and this one in a load context of its own.
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;

namespace Torture;

sealed class Collectible : Hazard
{
    internal override ulong Round(Random random)
    {
        int seed = random.Next();
        ulong sum = Program.Team(3, number =>
        {
            var own = new Random(seed + number);
            return number == 0 ? Loaded(own.Next(1000)) : Emitted(own);
        });
        if (seed % 2 == 0) GC.Collect();
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static ulong Emitted(Random random)
    {
        Code[] codes = Code.Several(random, 6);
        var functions = Code.Module(codes, AssemblyBuilderAccess.RunAndCollect);
        ulong sum = 0;
        for (int i = 0; i < codes.Length; i++) sum = Program.Mix(sum, codes[i].Check(functions[i], 10, 300));
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static ulong Loaded(int n)
    {
        var context = new AssemblyLoadContext("torture", isCollectible: true);
        Type type = context.LoadFromAssemblyPath(typeof(Collectible).Assembly.Location).GetType("Torture.Collectible")!;
        var work = type.GetMethod("Work")!.CreateDelegate<Func<int, ulong>>();
        context.Unload();
        return work(n);
    }

    public static ulong Work(int n)
    {
        ulong sum = 0;
        for (int i = 0; i < 20000 + n; i++) sum = Program.Mix(sum, (ulong)i);
        return sum;
    }
}
