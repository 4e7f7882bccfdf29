// SPDX-License-Identifier: MIT
// What the every-instruction oracle steps through (tests/step): scenes, each between two marks. Arguments:
// rounds, and a part of the names of the scenes to run (all without it). A scene's body runs a few times
// before it is stepped, so that what is done only once (binding, type loading, jitting) is in the scenes
// that are about it and not in all of them.
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Step;

static unsafe class Mark
{
    const string Lib = "stepmark";

    internal static void Resolve()
    {
        string file = Environment.GetEnvironmentVariable("STEP_MARK_LIB")
            ?? throw new InvalidOperationException("STEP_MARK_LIB does not say where libstepmark.so is");
        NativeLibrary.SetDllImportResolver(Assembly.GetExecutingAssembly(),
            (name, assembly, path) => name == Lib ? NativeLibrary.Load(file) : IntPtr.Zero);
    }

    [DllImport(Lib)] internal static extern int step_attach();
    [DllImport(Lib)] internal static extern void step_begin(byte* name);
    [DllImport(Lib)] internal static extern void step_end();
    [DllImport(Lib)] internal static extern int step_callback(delegate* unmanaged[Cdecl]<int, int> callback, int depth);
    [DllImport(Lib)] internal static extern void step_sort(int* numbers, nuint count,
        delegate* unmanaged[Cdecl]<int*, int*, int> compare);
    [DllImport(Lib)] internal static extern nuint step_libc(uint rounds);
}

static unsafe class Program
{
    // Body: what is stepped. Cold: it is not run before.
    internal record struct Scene(string Name, Action Body, bool Cold = false);

    static int Main(string[] args)
    {
        Mark.Resolve();
        int rounds = args.Length > 0 ? int.Parse(args[0]) : 1;
        string part = args.Length > 1 ? args[1] : "";
        Thread thread = new(() => RunAll(rounds, part), 16 << 20);
        thread.Start();
        thread.Join();
        return 0;
    }

    static IEnumerable<Scene> Scenes()
    {
        foreach (Scene scene in Plain.Scenes()) yield return scene;
        foreach (Scene scene in Calls.Scenes()) yield return scene;
        foreach (Scene scene in Helpers.Scenes()) yield return scene;
        foreach (Scene scene in Native.Scenes()) yield return scene;
        foreach (Scene scene in Exceptions.Scenes()) yield return scene;
        foreach (Scene scene in Collections.Scenes()) yield return scene;
    }

    static void RunAll(int rounds, string part)
    {
        List<(byte[] name, Scene scene)> all = new();
        foreach (Scene scene in Scenes())
            if (scene.Name.Contains(part))
                all.Add((System.Text.Encoding.UTF8.GetBytes(scene.Name + "\0"), scene));
        foreach ((byte[] _, Scene scene) in all)
            for (int i = 0; i < 3 && !scene.Cold; i++) scene.Body();
        Stepped("start\0"u8, static () => { });
        Mark.step_attach();
        for (int round = 0; round < rounds; round++)
            foreach ((byte[] name, Scene scene) in all) Stepped(name, scene.Body);
    }

    // The frames above this method's caller change; that one's and all below stay (tests/step/compare.c).
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Stepped(ReadOnlySpan<byte> name, Action body)
    {
        fixed (byte* text = name)
        {
            Mark.step_begin(text);
            body();
            Mark.step_end();
        }
    }
}
