// SPDX-License-Identifier: MIT
// Types that die: each round makes an assembly with a type of a name of its own, in which types of always the same names are nested.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;

namespace Nested;

public static class Collectible
{
    const int Arrays = 500, Errors = 20; // 4 MB
    static readonly List<WeakReference> assemblies = [];

    public static void Make(int round)
    {
        Use(round);
        Collect(3);
    }

    public static int Unloaded()
    {
        Collect(10);
        return assemblies.Count(assembly => !assembly.IsAlive);
    }

    static void Collect(int times)
    {
        for (int i = 0; i < times; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Use(int round)
    {
        var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName($"Dying{round}"), AssemblyBuilderAccess.RunAndCollect);
        var outer = assembly.DefineDynamicModule("m").DefineType($"Round{round}", TypeAttributes.Public);
        var item = outer.DefineNestedType("Item", TypeAttributes.NestedPublic);
        var error = outer.DefineNestedType("Error", TypeAttributes.NestedPublic, typeof(Exception));
        var create = error.DefineDefaultConstructor(MethodAttributes.Public);
        const MethodAttributes attributes = MethodAttributes.Public | MethodAttributes.Static;
        var make = outer.DefineMethod("Make", attributes, typeof(object), null);
        var il = make.GetILGenerator();
        il.Emit(OpCodes.Ldc_I4, 1000);
        il.Emit(OpCodes.Newarr, item);
        il.Emit(OpCodes.Ret);
        var fail = outer.DefineMethod("Fail", attributes, typeof(void), null);
        il = fail.GetILGenerator();
        il.Emit(OpCodes.Newobj, create);
        il.Emit(OpCodes.Throw);
        var type = outer.CreateType();
        item.CreateType();
        error.CreateType();
        Run(type.GetMethod("Make")!.CreateDelegate<Func<object>>(), type.GetMethod("Fail")!.CreateDelegate<Action>());
        assemblies.Add(new WeakReference(assembly));
    }

    static void Run(Func<object> make, Action fail)
    {
        for (int i = 0; i < Arrays; i++) Allocates.Sink = make();
        for (int i = 0; i < Errors; i++)
            try { fail(); } catch (Exception) { }
        Allocates.Sink = null;
    }
}
