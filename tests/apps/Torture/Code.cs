// SPDX-License-Identifier: MIT
// A new function, as IL and as the value that it must return.
using System.Reflection;
using System.Reflection.Emit;

namespace Torture;

sealed class Code
{
    static readonly OpCode[] Operations = { OpCodes.Add, OpCodes.Sub, OpCodes.Mul, OpCodes.Xor };
    readonly (int Operation, long Value)[] steps;

    internal Code(Random random)
    {
        steps = new (int, long)[random.Next(3, 30)];
        for (int i = 0; i < steps.Length; i++) steps[i] = (random.Next(Operations.Length), random.NextInt64() | 1);
    }

    internal long Interpret(long x, int rounds)
    {
        for (int n = 0; n < rounds; n++)
            foreach (var (operation, value) in steps)
                x = operation switch { 0 => x + value, 1 => x - value, 2 => x * value, _ => x ^ value };
        return x;
    }

    // long F(long x, int rounds), with a loop that is long enough to be replaced while it runs.
    internal void Emit(ILGenerator il)
    {
        Label test = il.DefineLabel(), top = il.DefineLabel();
        il.Emit(OpCodes.Br, test);
        il.MarkLabel(top);
        foreach (var (operation, value) in steps)
        {
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldc_I8, value);
            il.Emit(Operations[operation]);
            il.Emit(OpCodes.Starg_S, (byte)0);
        }
        il.Emit(OpCodes.Ldarg_1);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Sub);
        il.Emit(OpCodes.Starg_S, (byte)1);
        il.MarkLabel(test);
        il.Emit(OpCodes.Ldarg_1);
        il.Emit(OpCodes.Ldc_I4_0);
        il.Emit(OpCodes.Bgt, top);
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ret);
    }

    // Calls it until it is hot; the calls' results, each of which must be right.
    internal ulong Check(Func<long, int, long> function, int calls, int rounds)
    {
        long x = calls;
        for (int i = 0; i < calls; i++)
        {
            long found = function(x, rounds), right = Interpret(x, rounds);
            if (found != right) throw new InvalidOperationException($"compiled code returned {found}, not {right}");
            x = found;
        }
        return (ulong)x;
    }

    // A module of several of them.
    internal static Func<long, int, long>[] Module(Code[] codes, AssemblyBuilderAccess access)
    {
        var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("code" + codes.Length), access);
        TypeBuilder type = assembly.DefineDynamicModule("code").DefineType("Code", TypeAttributes.Public);
        for (int i = 0; i < codes.Length; i++)
            codes[i].Emit(type.DefineMethod("F" + i, MethodAttributes.Public | MethodAttributes.Static, typeof(long),
                new[] { typeof(long), typeof(int) }).GetILGenerator());
        Type made = type.CreateType();
        return Array.ConvertAll(Enumerable.Range(0, codes.Length).ToArray(),
            i => made.GetMethod("F" + i)!.CreateDelegate<Func<long, int, long>>());
    }

    internal static Code[] Several(Random random, int most)
    {
        var codes = new Code[random.Next(1, most + 1)];
        for (int i = 0; i < codes.Length; i++) codes[i] = new Code(random);
        return codes;
    }
}
