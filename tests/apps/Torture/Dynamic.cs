// SPDX-License-Identifier: MIT
// Dynamic methods that come and go, some of them hundreds of frames deep.
using System.Reflection.Emit;

namespace Torture;

sealed class Dynamic : Hazard
{
    internal override ulong Round(Random random)
    {
        int seed = random.Next();
        return Program.Team(3, number =>
        {
            var own = new Random(seed + number);
            ulong sum = (ulong)Deep()(own.Next(300), number);
            foreach (Code code in Code.Several(own, 12))
            {
                var method = new DynamicMethod("dynamic", typeof(long), new[] { typeof(long), typeof(int) });
                code.Emit(method.GetILGenerator());
                sum = Program.Mix(sum, code.Check(method.CreateDelegate<Func<long, int, long>>(), 5, 300));
            }
            return sum;
        });
    }

    // Its own caller, n times; then a loop, so that its stack is met.
    static Func<long, int, long> Deep()
    {
        var method = new DynamicMethod("deep", typeof(long), new[] { typeof(long), typeof(int) });
        ILGenerator il = method.GetILGenerator();
        Label down = il.DefineLabel();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Brtrue, down);
        new Code(new Random(1)).Emit(il);
        il.MarkLabel(down);
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Conv_I8);
        il.Emit(OpCodes.Sub);
        il.Emit(OpCodes.Ldc_I4, 20000);
        il.Emit(OpCodes.Call, method);
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Func<long, int, long>>();
    }
}
