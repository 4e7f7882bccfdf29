// SPDX-License-Identifier: MIT
// A method whose lines are in several documents, as a source generator's are.
using System.Runtime.CompilerServices;

namespace Lines;

static class Elsewhere
{
    static volatile int sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Mapped()
    {
        int x = sink, i = 0;
#line 1000 "/generated/Template.razor"
        x++;
        while (i++ < 20_000_000) x = x * 31 + i; // hot: Template.razor:1001 Lines.Elsewhere.Mapped
        x--;
#line default
        sink = x;
    }
}
