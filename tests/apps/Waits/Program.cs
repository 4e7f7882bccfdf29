// SPDX-License-Identifier: MIT
// Threads that wait, each named after what it waits for (tests/live/stack/stack.sh). Prints "ready" when all of them wait.
object taken = new(), pulsed = new();
Lock newLock = new();
ReaderWriterLockSlim readers = new();
Barrier barrier = new(2);
List<Thread> threads = [];

void Start(string name, Action wait)
{
    Thread thread = new(() => wait()) { Name = name, IsBackground = true };
    threads.Add(thread);
    thread.Start();
}

Monitor.Enter(taken);
newLock.Enter();
readers.EnterWriteLock();
Start("a lock", () => { lock (taken) { } });
Start("a lock", () => { lock (newLock) { } });
Start("a pulse", () => { lock (pulsed) Monitor.Wait(pulsed); });
Start("a thread to end", () => threads[0].Join());
Start("time to pass", () =>
{
    Thread.Sleep(Timeout.Infinite); // it waits here, and returns to the next line
    GC.KeepAlive(taken);
});
Start("a wait handle", () => new ManualResetEvent(false).WaitOne());
Start("an event", () => new ManualResetEventSlim().Wait());
Start("a semaphore", () => new SemaphoreSlim(0).Wait());
Start("a countdown", () => new CountdownEvent(1).Wait());
Start("a barrier", () => barrier.SignalAndWait());
Start("a reader-writer lock", () => readers.EnterReadLock());
Start("a task", () => new TaskCompletionSource().Task.Wait());
Start("a task", () => _ = new TaskCompletionSource<int>().Task.Result);
Start("a task", () => new TaskCompletionSource().Task.GetAwaiter().GetResult());

// Some spin for a while before they wait.
while (threads.Exists(t => (t.ThreadState & System.Threading.ThreadState.WaitSleepJoin) == 0)) Thread.Sleep(10);
Console.WriteLine("ready");
Thread.Sleep(Timeout.Infinite);
