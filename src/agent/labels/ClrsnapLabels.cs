// SPDX-License-Identifier: MIT
// Runs inside the recorded program, as a startup hook: tells libclrsnap.so, which is loaded there as
// a profiler, which Activity is current on a thread.
//
// Which one is current is in the thread's ExecutionContext, and changes in two ways: the program
// starts or stops an Activity (Activity.CurrentChanged), or another context comes onto the thread
// (an await, the thread pool). An AsyncLocal of our own, set whenever the first happens, is in the
// same contexts, and its change notification tells of both. So what a thread's slot says is always
// a function of the context that the thread has.
//
// Invariants: nothing in here throws into the program, listens to Activities (that would have
// libraries make some that nobody wants) or loads an assembly; where no recording wants labels it
// does nothing. Another recording gets another AsyncLocal: contexts may have kept a value of this
// one from before changes that nobody has seen.
//
// Compiled against the runtime's own assemblies and System.Private.CoreLib (scripts/build-labels.sh),
// which any version of .NET loads: a hook that fails to load would end the program.
#nullable enable
using System;
using System.Diagnostics;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Runtime.Loader;
using System.Text;
using System.Threading;

internal static class StartupHook
{
    // At the program's start, and again for each recording that is attached later.
    public static void Initialize()
    {
        try
        {
            Begin();
        }
        catch (Exception)
        {
            // Then samples have no labels, which the recording says.
        }
    }

    // Apart, so that what an old runtime cannot compile of it is caught, too.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Begin()
    {
        Clrsnap.Agent? agent = Clrsnap.Agent.Find();
        if (agent != null && agent.Wanted != 0)
            Clrsnap.Arrival.Await(agent);
    }
}

namespace Clrsnap
{
    // What libclrsnap.so has for us.
    internal sealed unsafe class Agent
    {
        private const int RtldNow = 2, RtldNoLoad = 4;
        private readonly uint* _wanted;
        private readonly delegate* unmanaged<Slot*> _slot;

        private Agent(uint* wanted, delegate* unmanaged<Slot*> slot)
        {
            _wanted = wanted;
            _slot = slot;
        }

        // The number of the recording that wants labels; 0: none does.
        public uint Wanted => Volatile.Read(ref *_wanted);

        public Slot* NewSlot() => _slot();

        [DllImport("libdl.so.2", EntryPoint = "dlopen")]
        private static extern IntPtr DlOpen(byte[] path, int flags);

        [DllImport("libdl.so.2", EntryPoint = "dlsym")]
        private static extern IntPtr DlSym(IntPtr library, byte[] name);

        // Only if it is loaded: a child of a recorded program may have the hook and no agent.
        public static Agent? Find()
        {
            string own = typeof(Agent).Assembly.Location;
            string path = own.Substring(0, own.LastIndexOf('/') + 1) + "libclrsnap.so";
            IntPtr library = DlOpen(Bytes(path), RtldNow | RtldNoLoad);
            if (library == IntPtr.Zero)
                return null;
            IntPtr wanted = DlSym(library, Bytes("clrsnap_labels_wanted"));
            IntPtr slot = DlSym(library, Bytes("clrsnap_label_slot"));
            if (wanted == IntPtr.Zero || slot == IntPtr.Zero)
                return null;
            return new Agent(((delegate* unmanaged<uint*>)wanted)(), (delegate* unmanaged<Slot*>)slot);
        }

        private static byte[] Bytes(string text) => Encoding.UTF8.GetBytes(text + "\0");
    }

    // struct cs_label_slot of src/signal/label.h.
    [StructLayout(LayoutKind.Explicit, Size = 64)]
    internal unsafe struct Slot
    {
        [FieldOffset(0)] private uint _sequence;
        [FieldOffset(4)] private uint _recording;
        [FieldOffset(8)] private ulong _trace0;
        [FieldOffset(16)] private ulong _trace1;
        [FieldOffset(24)] private ulong _span;

        // A signal handler may read it at any instruction of this: odd tells it not to. Every store is
        // behind all those before it.
        public void Write(Label label, uint recording)
        {
            uint sequence = _sequence;
            Volatile.Write(ref _sequence, sequence | 1);
            Volatile.Write(ref _recording, recording);
            Volatile.Write(ref _trace0, label.Trace0);
            Volatile.Write(ref _trace1, label.Trace1);
            Volatile.Write(ref _span, label.Span);
            Volatile.Write(ref _sequence, (sequence | 1) + 1);
        }
    }

    // The bytes of an Activity's ids, in the order in which they are written out.
    internal sealed class Label
    {
        public static readonly Label None = new Label(default);
        public readonly ulong Trace0, Trace1, Span;

        public Label(ReadOnlySpan<byte> ids)
        {
            if (ids.IsEmpty)
                return;
            Trace0 = MemoryMarshal.Read<ulong>(ids);
            Trace1 = MemoryMarshal.Read<ulong>(ids.Slice(8));
            Span = MemoryMarshal.Read<ulong>(ids.Slice(16));
        }
    }

    // Waits until the program itself has loaded the assembly that Activity is in.
    internal static class Arrival
    {
        private const string Name = "System.Diagnostics.DiagnosticSource";
        private static uint s_mirrored; // the recording that has its mirror

        public static void Await(Agent agent)
        {
            void Look(object? sender, AssemblyLoadEventArgs args)
            {
                try
                {
                    if (agent.Wanted == 0 || TryMirror(agent, args.LoadedAssembly))
                        AppDomain.CurrentDomain.AssemblyLoad -= Look;
                }
                catch (Exception)
                {
                }
            }

            AppDomain.CurrentDomain.AssemblyLoad += Look;
            foreach (Assembly assembly in AppDomain.CurrentDomain.GetAssemblies())
            {
                if (!TryMirror(agent, assembly))
                    continue;
                AppDomain.CurrentDomain.AssemblyLoad -= Look;
                break;
            }
        }

        private static bool TryMirror(Agent agent, Assembly assembly)
        {
            uint recording = agent.Wanted;
            if (recording == 0 || assembly.GetName().Name != Name ||
                AssemblyLoadContext.GetLoadContext(assembly) != AssemblyLoadContext.Default)
                return false;
            // Both who looks and who is told may find it.
            if (Interlocked.Exchange(ref s_mirrored, recording) != recording)
                Begin(agent, recording);
            return true;
        }

        // Apart, because to compile it loads the assembly.
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Begin(Agent agent, uint recording) => new Mirror(agent, recording).Begin();
    }

    internal sealed unsafe class Mirror
    {
        private static readonly Slot* s_none = (Slot*)1; // there is no slot for this thread
        [ThreadStatic] private static Slot* t_slot;

        private readonly Agent _agent;
        private readonly uint _recording;
        private readonly AsyncLocal<Label?> _current;

        public Mirror(Agent agent, uint recording)
        {
            _agent = agent;
            _recording = recording;
            _current = new AsyncLocal<Label?>(Show);
        }

        public void Begin() => Activity.CurrentChanged += Follow;

        // In the context that has the new one.
        private void Follow(object? sender, ActivityChangedEventArgs change)
        {
            try
            {
                if (_agent.Wanted == _recording)
                    _current.Value = LabelOf(change.Current);
                else
                    Activity.CurrentChanged -= Follow;
            }
            catch (Exception)
            {
            }
        }

        private static Label? LabelOf(Activity? activity)
        {
            if (activity == null || activity.IdFormat != ActivityIdFormat.W3C)
                return null;
            Span<byte> ids = stackalloc byte[24];
            try
            {
                activity.TraceId.CopyTo(ids.Slice(0, 16));
                activity.SpanId.CopyTo(ids.Slice(16));
            }
            catch (Exception)
            {
                return null; // better none than that of the one before
            }
            return new Label(ids);
        }

        // This thread has another value than before.
        private void Show(AsyncLocalValueChangedArgs<Label?> change)
        {
            try
            {
                if (_agent.Wanted != _recording)
                    return;
                Slot* slot = t_slot;
                if (slot == null)
                {
                    slot = _agent.NewSlot();
                    t_slot = slot = slot != null ? slot : s_none;
                }
                if (slot != s_none)
                    slot->Write(change.CurrentValue ?? Label.None, _recording);
            }
            catch (Exception)
            {
            }
        }
    }
}
