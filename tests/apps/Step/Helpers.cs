// SPDX-License-Identifier: MIT
// What compiled code calls the runtime for: allocation, casts, write barriers, statics, locks. And code of
// the framework, which is ReadyToRun.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Text;
using System.Threading;

namespace Step;

static class Helpers
{
    internal static IEnumerable<Program.Scene> Scenes()
    {
        yield return new("helpers: allocation", Allocate);
        yield return new("helpers: large arrays", () => kept = new byte[100_000]);
        yield return new("helpers: many small objects", () => { for (int i = 0; i < 400; i++) kept = new object(); });
        yield return new("helpers: casts", Cast);
        yield return new("helpers: write barriers", Barriers);
        yield return new("helpers: boxing", Box);
        yield return new("helpers: statics", () => { Fast.Count++; local++; Generic<string>.Count++; });
        yield return new("helpers: locks", Lock);
        yield return new("helpers: finalizable objects", () => kept = new Finalizable());
        yield return new("helpers: reflection", () => kept = typeof(Helpers).GetMethod("Box", flags).Name);
        yield return new("framework: strings", Strings);
        yield return new("framework: dictionary", Dictionary);
        yield return new("framework: linq", Linq);
        yield return new("framework: sort", () => { int[] n = (int[])numbers.Clone(); Array.Sort(n); kept = n; });
        yield return new("framework: format", () => kept = $"{numbers.Length:x8} {1.5} {DateTime.UnixEpoch:o}");
        yield return new("framework: tasks", () => System.Threading.Tasks.Task.Run(() => 5).Wait());
    }

    const System.Reflection.BindingFlags flags =
        System.Reflection.BindingFlags.NonPublic | System.Reflection.BindingFlags.Static;
    static object kept;
    static readonly int[] numbers = Enumerable.Range(0, 60).Select(i => i * 7919 % 61).ToArray();
    [ThreadStatic] static int local;

    class Fast { internal static int Count; }
    class Generic<T> { internal static int Count; }
    class Finalizable { ~Finalizable() { Fast.Count++; } }
    class Node { internal Node Next; internal object Value; }
    struct Pair { internal object A, B; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate()
    {
        kept = new Node { Next = new Node(), Value = new int[10] };
        kept = new string('x', 20);
        kept = new object[5];
        kept = new int[3, 3];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Cast()
    {
        object text = "text", array = new string[1], list = new List<int>(), node = new Node();
        int found = 0;
        if (text is IComparable<string>) found++;
        if (array is object[]) found++;
        if (list is IEnumerable<int>) found++;
        if (list is IList<string>) found++;
        if (node is Node { Next: null }) found++;
        found += ((ICollection<int>)list).Count + ((object[])array).Length;
        kept = found;
    }

    static Pair pair;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Barriers()
    {
        Node head = new();
        for (int i = 0; i < 5; i++) head = new Node { Next = head, Value = head };
        object[] objects = new string[4];
        objects[1] = "x";
        pair = new Pair { A = head, B = objects };
        Pair[] pairs = new Pair[3];
        pairs[1] = pair;
        Array.Copy(pairs, 0, pairs, 1, 2);
        kept = pairs;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Box()
    {
        object boxed = 5;
        kept = (int)boxed + 1;
        kept = new KeyValuePair<int, string>(1, "x");
        kept = ((KeyValuePair<int, string>)kept).Key;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Lock()
    {
        object gate = numbers;
        lock (gate) { lock (gate) kept = gate; }
        Monitor.Enter(gate);
        Monitor.Exit(gate);
        kept = Interlocked.CompareExchange(ref kept, gate, null);
    }

    static void Strings()
    {
        StringBuilder builder = new();
        for (int i = 0; i < 4; i++) builder.Append(i).Append(", ").Append("text");
        kept = string.Join("-", builder.ToString().Split(',')).Replace("text", "TEXT").IndexOf("3", StringComparison.Ordinal);
    }

    static void Dictionary()
    {
        Dictionary<string, int> map = new();
        for (int i = 0; i < 6; i++) map["key" + i] = i;
        kept = map.TryGetValue("key3", out int value) ? value : 0;
    }

    static void Linq() => kept = numbers.Where(n => n % 3 == 0).Select(n => n * 2).OrderBy(n => -n).Take(5).Sum();
}
