// SPDX-License-Identifier: MIT
using System.Runtime.CompilerServices;

namespace InlinedOther;

public static class Far
{
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public static int Mix(int x, int rounds)
    {
        int i = 0;
        while (i++ < rounds) x = x * 31 + i; // hot: InlinedOther.Far.Mix
        return x;
    }
}
