// SPDX-License-Identifier: MIT
// What a mode of recording may cost: endpoints that do one thing, for bench/modes.py.
static class Costs
{
    static readonly object gate = new();
    static readonly SemaphoreSlim semaphore = new(1);
    static long sum, requests;

    public static long Requests => Volatile.Read(ref requests);

    public static void Map(WebApplication app)
    {
        app.Use((context, next) =>
        {
            Interlocked.Increment(ref requests);
            return next(context);
        });
        app.MapGet("/plain", () => "plain");
        app.MapGet("/alloc", () => Allocate(20_000));
        app.MapGet("/throw", () => Throw());
        app.MapGet("/lock", () => Locked());
        app.MapGet("/wait", () => Waited());
        app.MapGet("/cpu", () => Burn(1_000_000));
    }

    // Some 1.5 MB of small objects.
    static string Allocate(int count)
    {
        var list = new List<string>();
        for (int i = 0; i < count; i++) list.Add(i.ToString() + "/" + i.ToString());
        return list.Count.ToString();
    }

    static string Throw()
    {
        try
        {
            throw new InvalidOperationException("as it should");
        }
        catch (InvalidOperationException e)
        {
            return e.Message;
        }
    }

    static string Locked()
    {
        lock (gate)
        {
            Burn(20_000);
            return "locked";
        }
    }

    static string Waited()
    {
        semaphore.Wait();
        try
        {
            Burn(20_000);
            return "waited";
        }
        finally
        {
            semaphore.Release();
        }
    }

    static string Burn(int steps)
    {
        long all = 0;
        for (int i = 0; i < steps; i++) all += i * 7919 % 13;
        Interlocked.Add(ref sum, all);
        return "burnt";
    }
}
