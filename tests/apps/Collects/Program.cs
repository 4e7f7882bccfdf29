// SPDX-License-Identifier: MIT
// One thread requests one collection after the other, with objects that make each one slow, another runs managed
// code, and a third one sleeps (tests/live/stack/stack.sh, stack_gc.sh). The collections end when the file named by the first argument
// exists. With "background" they are background collections, and a thread allocates meanwhile. With "stubborn" there are
// 20 small ones, and the managed code calls a native function that no collection can interrupt; the program ends after them.
using System.Runtime.InteropServices;

bool stubborn = args.Length > 1 && args[1] == "stubborn";
object[] alive = new object[stubborn ? 1 : 300_000];
for (int i = 0; i < alive.Length; i++) alive[i] = new object[] { alive[i / 2] };
bool collecting = true, background = args.Length > 1 && args[1] == "background";
int sink = 0;

void Start(string name, Action work) => new Thread(() => work()) { Name = name, IsBackground = true }.Start();

Start("Collector", () =>
{
    for (int i = 0; Volatile.Read(ref collecting) && !(stubborn && i == 20); i++)
    {
        GC.Collect(2, GCCollectionMode.Forced, blocking: !background);
        Thread.Sleep(1); // so that others come to run at all
    }
    Console.WriteLine("ended");
    Volatile.Write(ref collecting, false);
    GC.KeepAlive(alive);
    Thread.Sleep(Timeout.Infinite);
});
nint size = 128 << 20, buffer = stubborn ? Marshal.AllocHGlobal(size) : 0;
Start("Worker", () =>
{
    while (stubborn) Native.memset(buffer, 1, size);
    while (true) Volatile.Write(ref sink, sink * 31 + 1);
});
if (background)
    Start("Allocator", () =>
    {
        for (uint i = 0; Volatile.Read(ref collecting); i++) alive[i % alive.Length] = new byte[i % 400];
        Thread.Sleep(Timeout.Infinite);
    });
Start("Sleeper", () => Thread.Sleep(Timeout.Infinite));
Console.WriteLine("ready");
while (!File.Exists(args[0]) && !(stubborn && !Volatile.Read(ref collecting))) Thread.Sleep(10);
if (stubborn) return;
Volatile.Write(ref collecting, false);
Thread.Sleep(Timeout.Infinite);

static class Native
{
    // The thread stays in cooperative mode.
    [DllImport("libc"), SuppressGCTransition]
    public static extern nint memset(nint at, int value, nint size);
}
