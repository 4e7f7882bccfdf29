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

    public static void Done()
    {
        foreach (string name in Names) Console.WriteLine(name);
    }
}
