// SPDX-License-Identifier: MIT
// Tests whose coverage is the same in every run: some lines run always, some never, in code of all
// kinds that an instrumenting profiler rewrites.
using System.Runtime.CompilerServices;
using Xunit;

namespace Cov;

public class Shop
{
    private readonly List<int> _cart = [];

    public int Add(int price)
    {
        if (price < 0)
            throw new ArgumentOutOfRangeException(nameof(price));
        if (price > 1000)
        {
            price -= price / 10; // nobody buys that
            _cart.Clear();
        }
        _cart.Add(price);
        return _cart.Count;
    }

    public int Total => _cart.Sum(price => price > 500 ? price - 1 : price);

    public static T Never<T>(T value) where T : class
    {
        var copy = value;
        return copy;
    }
}

public class Generic<T> where T : notnull
{
    public string Name(T value) => value switch
    {
        int n when n > 5 => "many",
        int => "few",
        string => "text",
        _ => "other",
    };
}

public class Tests
{
    [Fact]
    public void Buys()
    {
        var shop = new Shop();
        Assert.Equal(1, shop.Add(10));
        Assert.Equal(2, shop.Add(600));
        Assert.Equal(609, shop.Total);
    }

    [Fact]
    public void Throws()
    {
        for (int i = 0; i < 3; i++)
            Assert.Throws<ArgumentOutOfRangeException>(() => new Shop().Add(-1));
    }

    [Theory]
    [InlineData(1, "few")]
    [InlineData(7, "many")]
    public void Names(int n, string name)
    {
        Assert.Equal(name, new Generic<int>().Name(n));
        Assert.Equal("text", new Generic<string>().Name("x"));
    }

    [Fact]
    public async Task Waits()
    {
        int sum = 0;
        await foreach (int n in Numbers(3))
        {
            await Task.Yield();
            sum += n;
        }
        Assert.Equal(3, sum);
    }

    private static async IAsyncEnumerable<int> Numbers(int count)
    {
        for (int i = 0; i < count; i++)
        {
            await Task.Delay(1);
            yield return i;
        }
    }

    [Fact]
    public void Threads()
    {
        long total = 0;
        var threads = Enumerable.Range(0, 4).Select(_ => new Thread(() => Interlocked.Add(ref total, Work(15)))).ToList();
        threads.ForEach(thread => thread.Start());
        threads.ForEach(thread => thread.Join());
        GC.Collect();
        Assert.Equal(4 * 610, total);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Work(int n) => n < 2 ? n : Work(n - 1) + Work(n - 2);

    // Facts about the host, for the script that has started it.
    [Fact]
    public void Libraries() => File.WriteAllText(
        Environment.GetEnvironmentVariable("COVERAGE_MAPS") ?? "/dev/null", File.ReadAllText("/proc/self/maps"));
}
