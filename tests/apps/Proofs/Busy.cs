// SPDX-License-Identifier: MIT
// A busy loop whose truth is known: nearly all of its time is in the recursive Work, the rest in the
// clock. Argument: seconds.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;

namespace Proofs;

static class Busy
{
    internal static int Run(string[] args)
    {
        double seconds = args.Length > 0 ? double.Parse(args[0]) : 5;
        long sum = 0;
        DateTime end = DateTime.UtcNow.AddSeconds(seconds);
        while (DateTime.UtcNow < end) sum += Work(12);
        Console.WriteLine("done " + (sum != 0));
        return 0;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Work(int n) => n < 2 ? n : Work(n - 1) + Work(n - 2);
}
