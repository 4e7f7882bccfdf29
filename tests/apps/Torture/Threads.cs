// SPDX-License-Identifier: MIT
// Threads that end as soon as they have begun: managed ones with stacks of all sizes, the pool's, and a native library's
// own, some of which call managed code.
using System.Runtime.InteropServices;

namespace Torture;

sealed class Threads : Hazard
{
    [DllImport(Native.Library)]
    static extern unsafe ulong torture_threads(ulong seed, int count, delegate* unmanaged<ulong, ulong> function);

    internal override ulong Round(Random random)
    {
        ulong seed = (ulong)random.NextInt64(), sum = 0;
        for (int stack = 0; stack < 4; stack++)
            sum = Program.Mix(sum, Program.Team(12, number => Work(seed + (ulong)number), stack * 100_000));
        var tasks = new Task<ulong>[40];
        for (int i = 0; i < tasks.Length; i++)
        {
            ulong own = seed ^ (ulong)i;
            tasks[i] = Task.Run(async () => { await Task.Yield(); return Work(own); });
        }
        foreach (var task in tasks) sum = Program.Mix(sum, task.Result);
        return Program.Mix(sum, Natives(seed));
    }

    static unsafe ulong Natives(ulong seed) => torture_threads(seed, 30, &FromNative);

    static ulong Work(ulong seed)
    {
        for (int i = 0; i < 3000; i++) seed = Program.Mix(seed, (ulong)i);
        return seed;
    }

    [UnmanagedCallersOnly]
    static ulong FromNative(ulong seed) => Work(seed);
}
