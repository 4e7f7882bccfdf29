// SPDX-License-Identifier: MIT
// The way from a program under test to the profiler that watches it: P/Invokes into the profiler's
// own shared object.
using System;
using System.Reflection;
using System.Runtime.InteropServices;

namespace Proofs;

static unsafe class Oracle
{
    const string Lib = "oracle";

    internal static void Resolve()
    {
        NativeLibrary.SetDllImportResolver(Assembly.GetExecutingAssembly(), (name, assembly, path) =>
        {
            if (name != Lib) return IntPtr.Zero;
            string file = Environment.GetEnvironmentVariable("CORECLR_PROFILER_PATH");
            if (string.IsNullOrEmpty(file))
                throw new DllNotFoundException("this mode needs a profiler: CORECLR_PROFILER_PATH is not set");
            return NativeLibrary.Load(file);
        });
    }

    internal static bool Present => !string.IsNullOrEmpty(Environment.GetEnvironmentVariable("CORECLR_PROFILER_PATH"));

    // Prints the profiler's report; returns the exit code of the test.
    [DllImport(Lib)] internal static extern int oracle_finish();

    // Known stacks: the calling thread is at `scene` now, and its frames match `pattern` (Known.cs)
    // until oracle_scene_end; oracle_scene_prepare is called before. oracle_scene_done: 0 while snapshots are taken (or the scene has not
    // begun), 1 when there are enough, 2 after oracle_scene_end.
    [DllImport(Lib, CharSet = CharSet.Ansi)] internal static extern void oracle_scene_begin(string scene, string pattern);
    [DllImport(Lib)] internal static extern void oracle_scene_prepare();
    [DllImport(Lib)] internal static extern void oracle_scene_end();
    [DllImport(Lib)] internal static extern int oracle_scene_done();

    // Bad input: where the target counts, and the checks of a managed caller.
    [DllImport(Lib)] internal static extern long* oracle_counter();
    [DllImport(Lib)] internal static extern void oracle_bad_managed();

    // Deadlock rules.
    [DllImport(Lib)] internal static extern void oracle_allocate();
    [DllImport(Lib)] internal static extern void oracle_load_slowly();
    [DllImport(Lib)] internal static extern void oracle_stop();
    [DllImport(Lib)] internal static extern int oracle_walk_other(ulong thread);
    [DllImport(Lib)] internal static extern ulong oracle_current_thread();

    // Registers: saves its caller's, walks, and compares.
    [DllImport(Lib)] internal static extern int oracle_registers(int value);
    [DllImport(Lib)] internal static extern int oracle_registers_ready();

    // Whether callbacks are compared by now.
    [DllImport(Lib)] internal static extern int oracle_sync_ready();

    // Sleepers: the calling thread waits in Proofs.Asleep.NAME from now on; and what became of it.
    [DllImport(Lib, CharSet = CharSet.Ansi)] internal static extern void oracle_sleeper_begin(string name);
    [DllImport(Lib)] internal static extern void oracle_sleeper_end(int calls, int interrupted, int early);

    // Torn sleepers: the calling thread's list of methods; and a call back through native code.
    [DllImport(Lib)] internal static extern Torn.Shadow* oracle_torn_begin();
    [DllImport(Lib)] internal static extern void oracle_torn_end(Torn.Shadow* shadow);
    [DllImport(Lib)] internal static extern void oracle_torn_call(delegate* unmanaged[Cdecl]<void*, void> back, void* argument);

    // Seeds: code that no walk may start in, whether dynamic methods have been collected, and the thread to try on.
    [DllImport(Lib)] internal static extern void oracle_seed_stub(void* code);
    [DllImport(Lib)] internal static extern int oracle_seed_collected();
    [DllImport(Lib)] internal static extern void oracle_seed_spinning();
    [DllImport(Lib)] internal static extern int oracle_seed_done();

    // bench/bench.c: measures walks of the calling thread.
    [DllImport(Lib)] internal static extern void bench_synchronous(int depth);
    // bench/managed.c: a cell of its table, and the walk that is measured for it.
    [DllImport(Lib)] internal static extern int bench_peers();
    [DllImport(Lib)] internal static extern void bench_cell(int peer, int mode, int depth);
    [DllImport(Lib)] internal static extern void bench_leaf();
    // bench/held.c
    [DllImport(Lib)] internal static extern void bench_spin();
    [DllImport(Lib)] internal static extern void bench_cold();
}
