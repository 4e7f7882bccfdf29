// SPDX-License-Identifier: MIT
// Collections all the time, of every generation, while threads build trees and verify them. The harness
// gives the runtime a budget of some 100 KiB between two collections.
namespace Torture;

sealed class Collections : Hazard
{
    sealed class Node { internal Node? Left, Right; internal int Value; internal byte[] Ballast = []; }

    internal override ulong Round(Random random)
    {
        int seed = random.Next();
        return Program.Team(4, number =>
        {
            var own = new Random(seed + number);
            if (number == 0)
            {
                for (int i = 0; i < 6; i++) GC.Collect(own.Next(3), (GCCollectionMode)own.Next(1, 3), own.Next(2) == 0, own.Next(2) == 0);
                return 0;
            }
            ulong sum = 0;
            for (int i = 0; i < 4; i++) sum = Program.Mix(sum, Sum(Build(own, 9)));
            return sum;
        });
    }

    static Node Build(Random random, int depth)
    {
        var node = new Node { Value = random.Next(), Ballast = new byte[random.Next(10) == 0 ? 2000 : 8] };
        if (depth == 0) return node;
        if (random.Next(8) > 0) node.Left = Build(random, depth - 1);
        if (random.Next(8) > 0) node.Right = Build(random, depth - 1);
        return node;
    }

    static ulong Sum(Node? node) => node == null ? 1
        : Program.Mix(Program.Mix(Sum(node.Left), Sum(node.Right)), (ulong)node.Value + (ulong)node.Ballast.Length);
}
