// SPDX-License-Identifier: MIT
// A process that ends while its threads run: by return, Environment.Exit, exit(), _exit(), or a signal of its own.
using System.Runtime.InteropServices;

namespace Torture;

sealed class Exit : Hazard
{
    [DllImport("libc", EntryPoint = "exit")] static extern void CExit(int code);
    [DllImport("libc", EntryPoint = "_exit")] static extern void KernelExit(int code);
    [DllImport("libc")] static extern int kill(int pid, int signal);

    internal override ulong Round(Random random) => Busy.Threads(random.Next());

    internal override int End(Random random)
    {
        int code = random.Next(1, 120);
        for (int i = 0; i < 4; i++) new Thread(() => { for (ulong sum = 0; ;) sum = Busy.Work(sum, 1000); }) { IsBackground = true }.Start();
        Thread.Sleep(random.Next(30));
        switch (random.Next(6))
        {
            case 0: return code;
            case 1: Environment.Exit(code); break;
            case 2: new Thread(() => Environment.Exit(code)).Start(); Thread.Sleep(Timeout.Infinite); break;
            case 3: CExit(code); break;
            case 4: KernelExit(code); break;
            case 5: kill(Environment.ProcessId, 15); Thread.Sleep(Timeout.Infinite); break;
        }
        return 1;
    }
}
