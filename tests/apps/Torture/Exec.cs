// SPDX-License-Identifier: MIT
// A busy program that calls exec while all of its threads run: no signal that is pending for them may reach the new program.
namespace Torture;

sealed class Exec : Hazard
{
    internal override ulong Round(Random random) => Busy.Threads(random.Next());

    internal override int End(Random random)
    {
        for (int i = 0; i < 4; i++) new Thread(() => { for (ulong sum = 0; ;) sum = Busy.Work(sum, 1000); }).Start();
        Thread.Sleep(random.Next(30));
        Processes.Become(random.Next(256).ToString());
        return 1; // the new program has not been had
    }
}
