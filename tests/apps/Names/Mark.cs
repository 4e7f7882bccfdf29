// SPDX-License-Identifier: MIT
// The truth about a name: each is printed once, and its caller is busy for a while under it.
using System.Diagnostics;
using System.Runtime.CompilerServices;

public static class Mark
{
    private static readonly SortedSet<string> Names = new(StringComparer.Ordinal);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void At(string name)
    {
        lock (Names) Names.Add(name);
        var end = Stopwatch.StartNew();
        while (end.ElapsedMilliseconds < 40) { }
    }

    // Three threads of one name, and two that have none: busy one after the other. To be
    // called on the first thread: the kernel gives those without a name the name of who starts them.
    public static void Crew()
    {
        foreach (string? name in new[] { "Baker", null, "Baker", null, "Baker" })
        {
            Thread thread = new(static () => At("Mark.Crew.lambda#0"));
            if (name != null) thread.Name = name;
            thread.Start();
            thread.Join();
        }
    }

    public static void Done()
    {
        foreach (string name in Names) Console.WriteLine(name);
    }
}
