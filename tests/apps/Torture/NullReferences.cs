// SPDX-License-Identifier: MIT
// The runtime makes exceptions of faults, in its own handler of SIGSEGV (and of SIGFPE): null references and divisions by
// zero, in loops, at several depths, and on threads that have just begun.
using System.Runtime.CompilerServices;

namespace Torture;

sealed class NullReferences : Hazard
{
    static string? nothing = null;
    static int zero;

    internal override ulong Round(Random random)
    {
        int seed = random.Next();
        return Program.Team(4, number =>
        {
            var own = new Random(seed + number);
            ulong sum = 0;
            for (int i = 0; i < 200; i++) sum = Program.Mix(sum, (ulong)Fault(own.Next(12), own.Next(8)));
            return sum;
        });
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fault(int depth, int kind)
    {
        if (depth > 0)
            try { return 1 + Fault(depth - 1, kind); }
            finally { zero = 0; }
        try { return kind == 0 ? 7 / zero : nothing!.Length; }
        catch (NullReferenceException) { return 100; }
        catch (DivideByZeroException) { return 200; }
    }
}
