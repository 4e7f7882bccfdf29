// SPDX-License-Identifier: MIT
// A BenchmarkDotNet run in this process: sorting, hashing, exceptions, reflection, dynamic methods.
using System.Linq.Expressions;
using System.Security.Cryptography;
using System.Text.Json;
using BenchmarkDotNet.Attributes;
using BenchmarkDotNet.Configs;
using BenchmarkDotNet.Jobs;
using BenchmarkDotNet.Running;
using BenchmarkDotNet.Toolchains.InProcess.NoEmit;

IConfig config = ManualConfig.CreateMinimumViable()
    .AddJob(Job.ShortRun.WithToolchain(InProcessNoEmitToolchain.Instance))
    .WithArtifactsPath(Path.Combine(Path.GetTempPath(), $"bench-{Environment.ProcessId}"));
BenchmarkRunner.Run<Mix>(config);
Directory.Delete(config.ArtifactsPath, recursive: true);

public class Mix
{
    readonly int[] numbers = Enumerable.Range(0, 2000).Select(i => i * 7919 % 2003).ToArray();
    readonly byte[] bytes = new byte[64 * 1024];
    readonly Func<int, int> compiled = Compile();

    static Func<int, int> Compile()
    {
        ParameterExpression x = Expression.Parameter(typeof(int));
        return Expression.Lambda<Func<int, int>>(Expression.Add(Expression.Multiply(x, x), Expression.Constant(3)), x).Compile();
    }

    [Benchmark] public int Sort() => numbers.OrderBy(n => n % 100).ThenByDescending(n => n).First();
    [Benchmark] public byte[] Hash() => SHA256.HashData(bytes);
    [Benchmark] public string Json() => JsonSerializer.Serialize(numbers.Take(200).Select(n => new { n, text = n.ToString() }));
    [Benchmark] public int Dynamic() => numbers.Select(compiled).Aggregate((a, b) => a ^ b);

    [Benchmark]
    public int Throw()
    {
        try
        {
            return int.Parse("none");
        }
        catch (FormatException e)
        {
            return e.Message.Length;
        }
    }
}
