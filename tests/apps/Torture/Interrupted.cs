// SPDX-License-Identifier: MIT
// Native code that does not expect EINTR where it may rely on SA_RESTART (signal(7)), and handles it elsewhere.
using System.Runtime.InteropServices;

namespace Torture;

sealed class Interrupted : Hazard
{
    [DllImport(Native.Library)]
    static extern long torture_calls(ulong seed, int count);

    internal override ulong Round(Random random)
    {
        int seed = random.Next();
        return Program.Team(4, number =>
        {
            long sum = torture_calls((ulong)(seed + number), 60);
            if (sum < 0) throw new InvalidOperationException($"a system call that restarts has failed with {-sum}");
            return (ulong)sum;
        });
    }
}
