// SPDX-License-Identifier: MIT
// A thread that asks for one collection after the other, with objects that make each take its time, beside one that runs managed
// code and one that sleeps (tests/live/stack.sh, stack_gc.sh). Ends what it collects when the file named by the first argument is
// there. With a second argument the collections are asked for in the background, and a thread allocates meanwhile.
object[] alive = new object[300_000];
for (int i = 0; i < alive.Length; i++) alive[i] = new object[] { alive[i / 2] };
bool collecting = true, background = args.Length > 1;
int sink = 0;

void Start(string name, Action work) => new Thread(() => work()) { Name = name, IsBackground = true }.Start();

Start("Collector", () =>
{
    while (Volatile.Read(ref collecting))
    {
        GC.Collect(2, GCCollectionMode.Forced, blocking: !background);
        Thread.Sleep(1); // so that others come to run at all
    }
    Console.WriteLine("ended");
    GC.KeepAlive(alive);
    Thread.Sleep(Timeout.Infinite);
});
Start("Worker", () => { while (true) Volatile.Write(ref sink, sink * 31 + 1); });
if (background)
    Start("Allocator", () =>
    {
        for (uint i = 0; Volatile.Read(ref collecting); i++) alive[i % alive.Length] = new byte[i % 400];
        Thread.Sleep(Timeout.Infinite);
    });
Start("Sleeper", () => Thread.Sleep(Timeout.Infinite));
Console.WriteLine("ready");
while (!File.Exists(args[0])) Thread.Sleep(10);
Volatile.Write(ref collecting, false);
Thread.Sleep(Timeout.Infinite);
