// SPDX-License-Identifier: MIT
// Runs inside the recorded program as a startup hook, and writes the current Activity of each thread
// into a slot of libclrsnap.so, which is loaded there as a profiler.
//
// The current Activity is part of the thread's ExecutionContext, and changes in two ways: the
// program starts or stops an Activity (Activity.CurrentChanged), or the thread switches to another
// context (an await, the thread pool). An AsyncLocal of our own, set whenever the first happens, is
// part of the same contexts, and its change notification covers both. So the contents of a thread's
// slot are always a function of the thread's context and, for the endpoint, of the context's
// request: routing finds the endpoint late (Endpoints.cs), in a context that the callers of async
// methods do not have. An Activity within the request has the same endpoint.
//
// Invariants: nothing here throws into the program, listens to Activities (which would make
// libraries create some that nothing else wants) or loads an assembly; unless a recording wants
// labels, it does nothing. Each recording has an AsyncLocal of its own, because contexts may have
// kept an old value of an earlier AsyncLocal, which missed the changes in between.
//
// Compiled against System.Private.CoreLib and an old version of DiagnosticSource (scripts/build-labels.sh), which any
// version of .NET loads: a hook that fails to load would end the program.
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
    // Called at the program's start, and again for each recording that is attached later.
    public static void Initialize()
    {
        try
        {
            Begin();
        }
        catch (Exception)
        {
            // Samples then have no labels, and the recording says so.
        }
    }

    // Not inlined, so that a failure to compile it on an old runtime is caught, too.
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
    // The functions of libclrsnap.so.
    internal sealed unsafe class Agent
    {
        private const int RtldNow = 2, RtldNoLoad = 4;
        private readonly uint* _wanted;
        private readonly delegate* unmanaged<Slot*> _slot;
        private readonly delegate* unmanaged<uint, byte*, uint> _name;
        private readonly delegate* unmanaged<uint, uint, uint, void> _status;

        private Agent(uint* wanted, delegate* unmanaged<Slot*> slot, delegate* unmanaged<uint, byte*, uint> name,
            delegate* unmanaged<uint, uint, uint, void> status)
        {
            _wanted = wanted;
            _slot = slot;
            _name = name;
            _status = status;
        }

        // The number of the recording that wants labels; 0: none does.
        public uint Wanted => Volatile.Read(ref *_wanted);

        public Slot* NewSlot() => _slot();

        // Returns the number of an endpoint's name in that recording; 0: it cannot have one.
        public uint NumberOf(uint recording, string name)
        {
            fixed (byte* text = Bytes(name))
                return _name(recording, text);
        }

        // Notes that a request has ended with that HTTP status.
        public void End(uint recording, uint request, uint status) => _status(recording, request, status);

        [DllImport("libdl.so.2", EntryPoint = "dlopen")]
        private static extern IntPtr DlOpen(byte[] path, int flags);

        [DllImport("libdl.so.2", EntryPoint = "dlsym")]
        private static extern IntPtr DlSym(IntPtr library, byte[] name);

        // Finds the library only if it is loaded: a child of a recorded program may have the hook,
        // but no agent.
        public static Agent? Find()
        {
            string own = typeof(Agent).Assembly.Location;
            string path = own.Substring(0, own.LastIndexOf('/') + 1) + "libclrsnap.so";
            IntPtr library = DlOpen(Bytes(path), RtldNow | RtldNoLoad);
            if (library == IntPtr.Zero)
                return null;
            IntPtr wanted = DlSym(library, Bytes("clrsnap_labels_wanted"));
            IntPtr slot = DlSym(library, Bytes("clrsnap_label_slot"));
            IntPtr name = DlSym(library, Bytes("clrsnap_label_name"));
            IntPtr status = DlSym(library, Bytes("clrsnap_label_status"));
            if (wanted == IntPtr.Zero || slot == IntPtr.Zero || name == IntPtr.Zero || status == IntPtr.Zero)
                return null;
            return new Agent(((delegate* unmanaged<uint*>)wanted)(), (delegate* unmanaged<Slot*>)slot,
                (delegate* unmanaged<uint, byte*, uint>)name, (delegate* unmanaged<uint, uint, uint, void>)status);
        }

        private static byte[] Bytes(string text) => Encoding.UTF8.GetBytes(text + "\0");
    }

    // struct cs_label_slot of src/library/signal/label.h.
    [StructLayout(LayoutKind.Explicit, Size = 64)]
    internal unsafe struct Slot
    {
        [FieldOffset(0)] private uint _sequence;
        [FieldOffset(4)] private uint _recording;
        [FieldOffset(8)] private ulong _trace0;
        [FieldOffset(16)] private ulong _trace1;
        [FieldOffset(24)] private ulong _span;
        [FieldOffset(32)] private ulong _endpoint;

        // A signal handler may read the slot at any instruction of this method; an odd sequence
        // makes it ignore the slot. The stores are in program order.
        public void Write(Label label, uint recording)
        {
            uint sequence = _sequence;
            Volatile.Write(ref _sequence, sequence | 1);
            Volatile.Write(ref _recording, recording);
            Volatile.Write(ref _trace0, label.Trace0);
            Volatile.Write(ref _trace1, label.Trace1);
            Volatile.Write(ref _span, label.Span);
            Volatile.Write(ref _endpoint, (ulong)label.Request.Number << 32 | label.Endpoint);
            Volatile.Write(ref _sequence, (sequence | 1) + 1);
        }
    }

    // The bytes of an Activity's ids, in the order of their text form, its endpoint, and the request that it belongs
    // to. What a suspended method works for is read from outside, in its ExecutionContext
    // (src/command/async/contexts.c, which knows fields of Label, Request, Route, Mirror and Agent by their names).
    internal sealed class Label
    {
        public static readonly Label None = new Label(default, 0, 0, null, Request.None, null);
        public readonly ulong Trace0, Trace1, Span;
        public readonly Request Request;
        private readonly Route? _route;
        private readonly Mirror? _mirror; // from which the recording is known

        private Label(ulong trace0, ulong trace1, ulong span, Route? route, Request request, Mirror? mirror)
        {
            Trace0 = trace0;
            Trace1 = trace1;
            Span = span;
            _route = route;
            Request = request;
            _mirror = mirror;
        }

        // null: unknown. A context that is older than the routing of its request has the request's.
        public Route? Route => _route ?? Request.Route;

        public uint Endpoint => Route is { } route ? route.Number : 0;

        public static Label Of(ReadOnlySpan<byte> ids, Route? route, Request request, Mirror mirror) => new Label(MemoryMarshal.Read<ulong>(ids),
            MemoryMarshal.Read<ulong>(ids.Slice(8)), MemoryMarshal.Read<ulong>(ids.Slice(16)), route, request, mirror);

        public Label At(Route route) => new Label(Trace0, Trace1, Span, route, Request, _mirror);

        public bool IsAt(Route route) => _route != null && _route.Number == route.Number;

        public bool IsOf(ReadOnlySpan<byte> ids) =>
            Trace0 == MemoryMarshal.Read<ulong>(ids) && Trace1 == MemoryMarshal.Read<ulong>(ids.Slice(8));
    }

    // A request, identified by its Activity's span, and by a number of our own, which no other
    // request ever gets. All labels of its contexts share it.
    internal sealed class Request
    {
        public static readonly Request None = new Request(0, 0);
        private static int s_numbers;
        public readonly uint Number; // 0: none
        private readonly ulong _span;
        private Route? _route;

        private Request(ulong span, uint number)
        {
            _span = span;
            Number = number;
        }

        // The endpoint that routing has found first: an error handler may run the request again, at
        // an endpoint of its own. null: none yet.
        public Route? Route
        {
            get => Volatile.Read(ref _route);
            set
            {
                if (Number != 0)
                    Interlocked.CompareExchange(ref _route, value, null);
            }
        }

        // Returns the request during which the Activity has begun. A request that is nested in the
        // context of another one differs from it by its span, and has no number if the context no
        // longer has it.
        public static Request Of(Activity activity, Label? around)
        {
            Activity? request = activity;
            while (request != null && request.OperationName != Endpoints.Request)
                request = request.Parent;
            if (request == null)
                return None;
            Span<byte> bytes = stackalloc byte[8];
            request.SpanId.CopyTo(bytes);
            ulong span = MemoryMarshal.Read<ulong>(bytes);
            if (around != null && around.Request.Number != 0 && around.Request._span == span)
                return around.Request;
            return request == activity ? new Request(span, (uint)Interlocked.Increment(ref s_numbers)) : None;
        }
    }

    // Waits until the program itself has loaded the assembly that contains Activity.
    internal static class Arrival
    {
        private const string Name = "System.Diagnostics.DiagnosticSource";
        private static uint s_mirrored; // the recording that has its mirror

        public static void Await(Agent agent)
        {
            void OnLoad(object? sender, AssemblyLoadEventArgs args)
            {
                try
                {
                    if (agent.Wanted == 0 || TryMirror(agent, args.LoadedAssembly))
                        AppDomain.CurrentDomain.AssemblyLoad -= OnLoad;
                }
                catch (Exception)
                {
                }
            }

            AppDomain.CurrentDomain.AssemblyLoad += OnLoad;
            foreach (Assembly assembly in AppDomain.CurrentDomain.GetAssemblies())
            {
                if (!TryMirror(agent, assembly))
                    continue;
                AppDomain.CurrentDomain.AssemblyLoad -= OnLoad;
                break;
            }
        }

        private static bool TryMirror(Agent agent, Assembly assembly)
        {
            uint recording = agent.Wanted;
            if (recording == 0 || assembly.GetName().Name != Name ||
                AssemblyLoadContext.GetLoadContext(assembly) != AssemblyLoadContext.Default)
                return false;
            // Both the loop in Await and the event may find the assembly.
            if (Interlocked.Exchange(ref s_mirrored, recording) != recording)
                Begin(agent, recording);
            return true;
        }

        // Not inlined, because compiling it loads the assembly.
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
        private readonly Endpoints _endpoints;

        public Mirror(Agent agent, uint recording)
        {
            _agent = agent;
            _recording = recording;
            _current = new AsyncLocal<Label?>(Show);
            _endpoints = new Endpoints(agent, recording, Arrive, Leave);
        }

        public void Begin()
        {
            Activity.CurrentChanged += Follow;
            _endpoints.Begin();
        }

        // The calling context's request has reached its endpoint.
        private void Arrive(Route route)
        {
            Label? label = _current.Value;
            if (label == null)
                return;
            label.Request.Route = route;
            if (!label.IsAt(route))
                _current.Value = label.At(route);
        }

        // The calling context's request has ended.
        private void Leave(uint status)
        {
            Label? label = _current.Value;
            Activity? activity = Activity.Current;
            if (label == null || label.Request.Number == 0 || activity == null)
                return;
            if (Request.Of(activity, label) == label.Request)
                _agent.End(_recording, label.Request.Number, status);
        }

        // Called in the context that has the new Activity.
        private void Follow(object? sender, ActivityChangedEventArgs change)
        {
            try
            {
                if (_agent.Wanted == _recording)
                    _current.Value = LabelOf(change.Current);
                else
                    End();
            }
            catch (Exception)
            {
            }
        }

        private void End()
        {
            Activity.CurrentChanged -= Follow;
            _endpoints.End();
        }

        private Label? LabelOf(Activity? activity)
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
                return null; // better no label than the previous Activity's
            }
            // Whatever is started within a request or a job has its endpoint.
            Label? around = _current.Value;
            Route? route = around != null && around.IsOf(ids) ? around.Route : null;
            return Label.Of(ids, route ?? _endpoints.OfRoot(activity), Request.Of(activity, around), this);
        }

        // The calling thread's value has changed.
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
