// SPDX-License-Identifier: MIT
// Frames of every shape: few and many saved registers, small and large ones, stackalloc, loops that are
// replaced on the stack, leaf functions without a frame.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;

namespace Step;

static unsafe class Plain
{
    internal static IEnumerable<Program.Scene> Scenes()
    {
        yield return new("frames: recursion", () => Recurse(12, 1));
        yield return new("frames: many saved registers", () => Many(1, 2, 3, 4, 5, 6, 7, 8));
        yield return new("frames: optimized", () => Optimized(6));
        yield return new("frames: stackalloc", () => Stack(40));
        yield return new("frames: larger than a page", () => Large(3));
        yield return new("frames: much larger than a page", () => Huge(2));
        yield return new("frames: structures by value", () => Structures(new Four { A = 1, B = 2, C = 3, D = 4 }));
        yield return new("frames: vectors", () => Vectors(8));
        yield return new("osr: a hot loop", HotLoop, Cold: true);
        yield return new("osr: warm", () => Loop(300));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Recurse(int n, int k) => n == 0 ? k : Recurse(n - 1, k * 3) + n;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Many(long a, long b, long c, long d, long e, long f, long g, long h)
    {
        long x = a * 3, y = b * 5, z = c * 7, u = d * 11, v = e * 13, w = f * 17;
        for (int i = 0; i < 3; i++)
        {
            x += Id(y); y += Id(z); z += Id(u); u += Id(v); v += Id(w); w += Id(x) + g * h;
        }
        return x ^ y ^ z ^ u ^ v ^ w;
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static long Id(long x) => x + 1;

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static long Optimized(int n)
    {
        long sum = 0, other = n, third = n * 2;
        for (int i = 0; i < n; i++)
        {
            sum += Leaf(i, (int)other);
            other += Middle(i, sum, third);
            third ^= other;
        }
        return n <= 0 ? sum : sum + Optimized(n - 3);
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static int Leaf(int a, int b) => a * b + 1;

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static long Middle(int a, long b, long c) => b > 100 ? Leaf(a, 3) + b : Leaf(a, 5) * Id(c);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Stack(int n)
    {
        byte* bytes = stackalloc byte[n * 100 + 17];
        Span<int> numbers = stackalloc int[n];
        for (int i = 0; i < n; i++) { bytes[i * 100] = (byte)i; numbers[i] = bytes[i * 100]; }
        return n > 10 ? Stack(n / 2) + numbers[1] : numbers[0];
    }

    struct Page { fixed byte bytes[5000]; }
    struct Pages { fixed byte bytes[40000]; }
    struct Four { public long A, B, C, D; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Large(int n)
    {
        Page page;
        Touch((byte*)&page);
        return n == 0 ? 1 : Large(n - 1) + ((byte*)&page)[100];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Huge(int n)
    {
        Pages pages;
        Touch((byte*)&pages);
        return n == 0 ? 1 : Huge(n - 1) + ((byte*)&pages)[100];
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void Touch(byte* at) => at[100] = 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Four Structures(Four four)
    {
        Four other = four;
        other.A += four.D;
        return other.A > 100 ? other : Structures(other);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static float Vectors(int n)
    {
        System.Numerics.Vector<float> sum = System.Numerics.Vector<float>.Zero, one = new(1.5f);
        for (int i = 0; i < n; i++) sum += one * sum + one;
        return (sum * one)[0];
    }

    static int seed = 1;

    static void HotLoop() => sink += Loop(60000);

    static long sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Loop(int n)
    {
        long sum = 0;
        for (int i = 0; i < n; i++)
        {
            sum += i ^ seed;
            if ((i & 63) == 0) sum += Id(sum);
            if (n > 10000 && i > 200 && sum != 0 && i % 1000 == 0) n -= 1000;
        }
        return sum;
    }
}
