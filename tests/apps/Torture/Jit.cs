// SPDX-License-Identifier: MIT
// New code all the time, called until it is compiled again and replaced on the stack, and generic code over new types.
using System.Reflection.Emit;
using System.Runtime.CompilerServices;

namespace Torture;

sealed class Jit : Hazard
{
    record struct Pair<A, B>(A First, B Second);

    sealed class Of<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static ulong Size(int n)
        {
            ulong sum = 0;
            for (int i = 0; i < n; i++) sum = Program.Mix(sum, (ulong)Unsafe.SizeOf<T>());
            return sum;
        }
    }

    internal override ulong Round(Random random)
    {
        int seed = random.Next();
        return Program.Team(2, number =>
        {
            var own = new Random(seed + number);
            Code[] codes = Code.Several(own, 6);
            var functions = Code.Module(codes, AssemblyBuilderAccess.Run);
            ulong sum = Generic(own, typeof(int), 4);
            for (int i = 0; i < codes.Length; i++) sum = Program.Mix(sum, codes[i].Check(functions[i], 60, 300));
            return sum;
        });
    }

    static ulong Generic(Random random, Type type, int depth)
    {
        Type[] others = { typeof(byte), typeof(short), typeof(long), typeof(double), typeof(Guid), typeof(decimal) };
        for (int i = 0; i < depth; i++) type = typeof(Pair<,>).MakeGenericType(type, others[random.Next(others.Length)]);
        var size = typeof(Of<>).MakeGenericType(type).GetMethod("Size", System.Reflection.BindingFlags.Static |
            System.Reflection.BindingFlags.NonPublic)!.CreateDelegate<Func<int, ulong>>();
        return size(5000);
    }
}
