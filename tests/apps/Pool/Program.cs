// SPDX-License-Identifier: MIT
// A thread pool in a known state, by the first argument (tests/live/stack/pool.sh): starved (sync over async), idle, busy
// (all processors), or brief (items that wait for a moment each). Prints "ready" when it is in that state.
public static class Program
{
    const int Workers = 8, Global = 25, Local = 7;
    static readonly TaskCompletionSource Never = new();
    static readonly CountdownEvent Started = new(Workers);
    static int queued;

    // Sync over async: the item holds its worker until a task ends.
    static void Blocking()
    {
        Started.Signal();
        Never.Task.Wait(); // it waits here
    }

    static void Held()
    {
        Started.Signal();
        new ManualResetEventSlim().Wait(); // it is held here
    }

    static void Starve()
    {
        ThreadPool.SetMinThreads(Workers, 1);
        ThreadPool.SetMaxThreads(Workers, Workers);
        using (CountdownEvent done = new(5))
        {
            for (int i = 0; i < 5; i++) ThreadPool.QueueUserWorkItem(_ => done.Signal());
            done.Wait();
        }
        for (int i = 1; i < Workers; i++) ThreadPool.QueueUserWorkItem(_ => Blocking());
        while (Started.CurrentCount > 1) Thread.Sleep(10);
        // The last free worker has a queue of its own, which it keeps: Task.Wait would give it away.
        ThreadPool.QueueUserWorkItem(_ =>
        {
            for (int i = 0; i < Local; i++) ThreadPool.QueueUserWorkItem(Nothing, 0, preferLocal: true);
            Held();
        });
        Started.Wait();
        for (int i = 0; i < Global; i++) ThreadPool.QueueUserWorkItem(Nothing, 0, preferLocal: false);
    }

    static void Nothing(int state) { }

    static void Spin()
    {
        for (long end = Environment.TickCount64 + 10; Environment.TickCount64 < end;) Thread.SpinWait(100);
        Interlocked.Decrement(ref queued);
    }

    static void Brief()
    {
        Thread.Sleep(2);
        Interlocked.Decrement(ref queued);
    }

    // Keeps that many items queued or in progress.
    static void Feed(int items, Action item)
    {
        Thread feeder = new(() =>
        {
            for (;; Thread.Sleep(1))
                while (Volatile.Read(ref queued) < items)
                {
                    Interlocked.Increment(ref queued);
                    ThreadPool.QueueUserWorkItem(_ => item());
                }
        }) { IsBackground = true };
        feeder.Start();
        while (ThreadPool.CompletedWorkItemCount < items) Thread.Sleep(10);
    }

    public static void Main(string[] args)
    {
        switch (args[0])
        {
            case "starved":
                Starve();
                break;
            case "idle":
                for (int i = 0; i < 100; i++) ThreadPool.QueueUserWorkItem(Nothing, 0, preferLocal: false);
                while (ThreadPool.CompletedWorkItemCount < 100) Thread.Sleep(10);
                break;
            case "busy":
                Feed(20 * Environment.ProcessorCount, Spin);
                break;
            case "brief":
                ThreadPool.SetMinThreads(Workers, 1);
                ThreadPool.SetMaxThreads(Workers, Workers);
                Feed(3 * Workers, Brief);
                break;
        }
        Console.WriteLine($"ready {ThreadPool.PendingWorkItemCount} {ThreadPool.CompletedWorkItemCount} {ThreadPool.ThreadCount}");
        Thread.Sleep(Timeout.Infinite);
    }
}
