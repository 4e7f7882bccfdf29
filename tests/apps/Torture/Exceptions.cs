// SPDX-License-Identifier: MIT
// Exceptions through deep stacks and large frames, with filters that throw themselves, rethrown, and from finally blocks.
using System.Runtime.CompilerServices;

namespace Torture;

sealed class Exceptions : Hazard
{
    sealed class Mine(int value) : Exception { internal int Value => value; }

    internal override ulong Round(Random random)
    {
        int seed = random.Next();
        return Program.Team(3, number =>
        {
            var own = new Random(seed + number);
            ulong sum = 0;
            for (int i = 0; i < 20; i++) sum = Program.Mix(sum, Catch(own));
            return sum;
        });
    }

    static ulong Catch(Random random)
    {
        ulong trail = 0;
        try { Down(random.Next(1, 40), random, ref trail); }
        catch (Mine e) { trail = Program.Mix(trail, (ulong)e.Value); }
        return trail;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Down(int depth, Random random, ref ulong trail)
    {
        int kind = random.Next(5), value = random.Next();
        if (depth == 0) throw new Mine(value);
        try
        {
            if (kind == 0) Large(depth, random, ref trail);
            else Down(depth - 1, random, ref trail);
        }
        catch (Mine e) when (kind == 1 && Filter(e.Value)) { throw new Mine(e.Value ^ value); }
        catch (Mine) when (kind == 2) { throw; }
        finally
        {
            trail = Program.Mix(trail, (ulong)depth);
            if (kind == 3) try { throw new Mine(depth); } catch (Mine e) { trail = Program.Mix(trail, (ulong)e.Value); }
        }
    }

    // A frame of more than a page.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static unsafe void Large(int depth, Random random, ref ulong trail)
    {
        byte* room = stackalloc byte[12000];
        room[depth] = (byte)depth;
        try { Down(depth - 1, random, ref trail); }
        finally { trail = Program.Mix(trail, room[depth]); }
    }

    static bool Filter(int value)
    {
        try { throw new Mine(value); }
        catch (Mine e) { return (e.Value & 1) == 0; }
    }
}
