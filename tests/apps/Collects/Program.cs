// SPDX-License-Identifier: MIT
// One thread requests one collection after the other, with objects that make each one slow, another runs managed
// code, and a third one sleeps (tests/live/stack.sh, stack_gc.sh). The collections end when the file named by the first argument
// exists. With a second argument they are background collections, and a thread allocates meanwhile.
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
