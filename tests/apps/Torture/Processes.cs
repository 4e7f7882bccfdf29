// SPDX-License-Identifier: MIT
// A program that makes processes all the time, in one of three ways: what they return is their exit code.
using System.Runtime.InteropServices;

namespace Torture;

sealed class Processes(Func<Random, ulong> make) : Hazard
{
    [DllImport(Native.Library)] static extern int torture_fork(int code);
    [DllImport(Native.Library)] static extern int torture_vfork(string code);
    [DllImport(Native.Library)] static extern int torture_spawn(string code);
    [DllImport(Native.Library, SetLastError = true)] static extern int torture_exec(string sum);

    internal static ulong Fork(Random random) => (ulong)torture_fork(random.Next(256));
    internal static ulong VFork(Random random) => (ulong)torture_vfork(random.Next(256).ToString());

    // Every fourth by the runtime's own way.
    internal static ulong Spawn(Random random)
    {
        string code = random.Next(256).ToString();
        if (random.Next(4) > 0) return (ulong)torture_spawn(code);
        using var process = System.Diagnostics.Process.Start("/bin/sh", new[] { "-c", "exit " + code });
        process.WaitForExit();
        return (ulong)process.ExitCode;
    }

    internal override ulong Round(Random random)
    {
        int seed = random.Next();
        return Program.Team(3, number =>
        {
            var own = new Random(seed + number);
            ulong sum = 0;
            for (int i = 0; i < 5; i++) sum = Program.Mix(sum, Busy.Work((ulong)own.Next(), 20000) ^ make(own));
            return sum;
        });
    }

    internal static void Become(string word) => torture_exec(word);
}
