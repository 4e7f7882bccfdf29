// SPDX-License-Identifier: MIT
// Threads that stand, or run, at places whose stack is known: the profiler takes snapshots of them
// from a thread of its own and compares. A scene's pattern, leaf first, joined by ';':
//   Name      one frame of this program: "Proofs." + Name is the beginning of its name
//   Name{50}  that many     Name?  one or none     Name*  any number
//   ~         any frames that are not this program's, native runs included
//   [native]  a run of native frames
// Frames outside of the pattern are an error.
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Proofs;

static partial class Known
{
    static volatile bool stop;
    static string scene, pattern;

    internal static void Run(string[] args)
    {
        string only = args.Length > 0 ? args[0] : null;
        foreach ((string name, string frames, Action action) in Scenes())
        {
            if (only != null && only != name) continue;
            Prepare(name, frames);
            // A scene on one of the runtime's own threads ends by itself; the others get a thread.
            bool own = name is "pool" or "finalizer";
            Thread thread = own ? null : new Thread(new ThreadStart(action));
            if (own) action(); else thread.Start();
            while (Oracle.oracle_scene_done() == 0) Thread.Sleep(1);
            stop = true;
            Release();
            if (own) while (Oracle.oracle_scene_done() != 2) Thread.Sleep(1);
            else { thread.Join(); Oracle.oracle_scene_end(); }
        }
        if (only == null || only == "main") OnMain();
    }

    static void Prepare(string name, string frames) { scene = name; pattern = frames; stop = false; Oracle.oracle_scene_prepare(); }

    // The main thread as the target: another thread has to stop it.
    static void OnMain()
    {
        Prepare("main", "Known.Spin;Known.MainCall;Known.OnMain;Known.Run;Program.Main;~");
        var stopper = new Thread(() => { while (Oracle.oracle_scene_done() == 0) Thread.Sleep(1); stop = true; });
        stopper.Start();
        MainCall();
        Oracle.oracle_scene_end();
        stopper.Join();
    }
    [MethodImpl(MethodImplOptions.NoInlining)] static void MainCall() { Spin(); zero = 0; }

    // From here on the calling thread's frames match `pattern`, until `stop`.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Spin() { Oracle.oracle_scene_begin(scene, pattern); long n = 0; while (!stop) n++; }

#if !TRIMMED
    [MethodImpl(MethodImplOptions.NoInlining)]
    static async Task Async() { Spin(); await Task.Yield(); }
#endif
}
