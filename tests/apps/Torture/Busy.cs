// SPDX-License-Identifier: MIT
// A mixture, for tests that attach and detach while it runs: collections, new code, exceptions, threads.
namespace Torture;

sealed class Busy : Hazard
{
    readonly Hazard[] all = { new Collections(), new Jit(), new Exceptions(), new NullReferences(), new Dynamic() };

    internal override ulong Round(Random random) => Program.Mix(all[random.Next(all.Length)].Round(random), Threads(random.Next()));

    internal static ulong Threads(int seed) => Program.Team(2, number => Work((ulong)(seed + number), 100_000));

    internal static ulong Work(ulong sum, int rounds)
    {
        for (int i = 0; i < rounds; i++) sum = Program.Mix(sum, (ulong)i);
        return sum;
    }
}
