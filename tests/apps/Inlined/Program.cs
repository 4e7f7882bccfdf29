// SPDX-License-Identifier: MIT
// Methods that are inlined, with known shares of the time: of every 100 rounds of one and the same
// chain of multiplications 60 are in a callee's callee, 30 in a generic method's, 10 in another
// assembly's. Each has its share in one piece that is longer than a sample's period, so that few
// samples tell. A hot line ends in "// hot:" and the method's name. Arguments: what, and for how many
// milliseconds of CPU time.
using System.Runtime.CompilerServices;
using InlinedOther;

namespace Inl;

struct Tag
{
    public int Value = 1;
    public Tag() { }
}

static class Bag<T>
{
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public static int Mix<U>(int x, int rounds, T item)
    {
        int i = item is null ? 1 : 0;
        while (i++ < rounds) x = x * 31 + i; // hot: Inl.Bag<T>.Mix
        return x;
    }
}

static class Program
{
    // Of rounds: short until all has been compiled for the last time, then 0.2 s together.
    const int Short = 1, Long = 200_000;

    static volatile int sink;

    static int Main(string[] args)
    {
        double ms = args.Length > 1 ? double.Parse(args[1]) : 1000;
        TimeSpan begin = Environment.CpuUsage.TotalTime;
        Func<bool> over = () => (Environment.CpuUsage.TotalTime - begin).TotalMilliseconds >= ms;
        Func<bool> warm = () => (Environment.CpuUsage.TotalTime - begin).TotalMilliseconds >= 400;
        switch (args.Length > 0 ? args[0] : "calls")
        {
            case "calls":  // tier 0, then tier 1
                do Hot(Short); while (!warm());
                do Hot(Long); while (!over());
                break;
            case "osr":  // called once: on-stack replacement
                Endless(over);
                break;
            case "caller":  // what is inlined calls, and the time is below it
                do Above(); while (!over());
                break;
            default:
                return 2;
        }
        return 42;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static int Deep(int x, int rounds)
    {
        int i = 0;
        while (i++ < rounds) x = x * 31 + i; // hot: Inl.Program.Deep
        return x;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static int Middle(int x, int rounds)
    {
        x ^= rounds;
        return Deep(x, rounds); // call: Inl.Program.Middle
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Hot(int times)
    {
        sink = Middle(sink, 600 * times); // call: Inl.Program.Hot
        sink = Bag<Tag>.Mix<string>(sink, 300 * times, default); // call: Inl.Program.Hot
        sink = Far.Mix(sink, 100 * times); // call: Inl.Program.Hot
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Endless(Func<bool> over)
    {
        int x = sink, times = Short;
        for (int i = 0; times == Short || !over(); i++)
        {
            x = Middle(x, 600 * times); // call: Inl.Program.Endless
            x = Bag<Tag>.Mix<string>(x, 300 * times, default); // call: Inl.Program.Endless
            x = Far.Mix(x, 100 * times); // call: Inl.Program.Endless
            if (i > 100_000) times = Long;
        }
        sink = x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Leaf(int x)
    {
        int i = 0;
        while (i++ < 100_000) x = x * 31 + i; // hot: Inl.Program.Leaf
        return x;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static int Between(int x)
    {
        sink = x + 1;
        sink = Leaf(x); // call: Inl.Program.Between
        return x - 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Above()
    {
        int x = sink;
        x = Between(x); // call: Inl.Program.Above
        sink = x;
    }
}
