// SPDX-License-Identifier: MIT
// What the hook uses of System.Diagnostics.DiagnosticSource, as a reference for the compiler
// (scripts/build-labels.sh). None of it is executed: the program has its own. A reference to the
// SDK's own version would be refused by an older runtime, and one to this version is accepted by
// every later one.
#nullable enable
using System.Collections.Generic;
using System.Reflection;

[assembly: AssemblyVersion("8.0.0.0")]

namespace System.Diagnostics
{
    public class Activity
    {
        public static event EventHandler<ActivityChangedEventArgs>? CurrentChanged { add { } remove { } }
        public static Activity? Current { get => null; set { } }
        public string OperationName => "";
        public Activity? Parent => null;
        public ActivityIdFormat IdFormat => default;
        public ActivityTraceId TraceId => default;
        public ActivitySpanId SpanId => default;
    }

    public readonly struct ActivityChangedEventArgs
    {
        public Activity? Current => null;
    }

    public enum ActivityIdFormat
    {
        W3C = 2,
    }

    public readonly struct ActivityTraceId
    {
        public void CopyTo(Span<byte> destination) { }
    }

    public readonly struct ActivitySpanId
    {
        public void CopyTo(Span<byte> destination) { }
    }

    public class DiagnosticListener
    {
        public static IObservable<DiagnosticListener> AllListeners => null!;
        public string Name => "";
        public virtual IDisposable Subscribe(IObserver<KeyValuePair<string, object?>> observer, Predicate<string>? isEnabled) => null!;
    }
}
