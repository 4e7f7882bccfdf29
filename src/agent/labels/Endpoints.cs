// SPDX-License-Identifier: MIT
// The endpoints of a recording's labels: of an ASP.NET Core request its method and route,
// "GET /cart/{id}"; of another Activity without a parent in this process its name.
//
// The name of a request's Activity says nothing, and its tags have the route only if a library wants
// them, and only at its end. Routing sends an event to DiagnosticListeners when it has found the endpoint,
// and hosting when a request has ended, whose HTTP status is known by then. The subscription is for these
// events only: no listener of ours makes ASP.NET Core create an Activity.
// ASP.NET Core is reached by reflection, since most programs do not have it.
#nullable enable
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Clrsnap
{
    // An endpoint's name, and its number in the recording; 0: there was no room for it. Also read
    // from outside (src/command/async/contexts.c).
    internal sealed class Route
    {
        public readonly uint Number;
        public readonly string Name;

        public Route(uint number, string name)
        {
            Number = number;
            Name = name;
        }
    }

    internal sealed class Endpoints : IObserver<DiagnosticListener>, IObserver<KeyValuePair<string, object?>>
    {
        private const string Listener = "Microsoft.AspNetCore", Matched = "Microsoft.AspNetCore.Routing.EndpointMatched";
        private const string Ended = "Microsoft.AspNetCore.Hosting.EndRequest", Failed = "Microsoft.AspNetCore.Hosting.UnhandledException";
        public const string Request = "Microsoft.AspNetCore.Hosting.HttpRequestIn";

        private readonly Agent _agent;
        private readonly uint _recording;
        private readonly Action<Route> _arrive;
        private readonly Action<uint> _leave;
        private const int MostNames = 1000; // of Activities: a program may invent names for as long as it runs
        private const string OtherNames = "[Activities beyond the first 1,000 names]";
        private readonly Dictionary<string, Route> _names = new Dictionary<string, Route>();
        private readonly ConditionalWeakTable<object, Route> _routes = new ConditionalWeakTable<object, Route>();
        private Func<object, object?>? _endpointOf;
        private Func<object, int>? _statusOfEnded, _statusOfFailed;
        private IDisposable? _listeners, _listener;

        public Endpoints(Agent agent, uint recording, Action<Route> arrive, Action<uint> leave)
        {
            _leave = leave;
            _agent = agent;
            _recording = recording;
            _arrive = arrive;
        }

        public void Begin() => _listeners = DiagnosticListener.AllListeners.Subscribe(this);

        public void End()
        {
            _listeners?.Dispose();
            _listener?.Dispose();
        }

        // Returns the endpoint of an Activity that begins a trace, or continues one of another
        // process.
        public Route? OfRoot(Activity activity)
        {
            string name = activity.OperationName;
            if (activity.Parent != null || name == Request || name.Length == 0)
                return null;
            lock (_names) // by its text: a program may build it anew for each Activity
            {
                if (!_names.TryGetValue(name, out Route? route) && _names.Count >= MostNames)
                    name = OtherNames;
                if (route == null && !_names.TryGetValue(name, out route))
                    _names.Add(name, route = NewRoute(name));
                return route;
            }
        }

        private Route NewRoute(string name) => new Route(_agent.NumberOf(_recording, name), name);

        private Route Register(object endpoint)
        {
            Route route = NewRoute(NameOf(endpoint));
            _routes.AddOrUpdate(endpoint, route);
            return route;
        }

        public void OnNext(DiagnosticListener listener)
        {
            if (listener.Name == Listener)
                _listener = listener.Subscribe(this, Wants);
        }

        private bool Wants(string name) => (name == Matched || name == Ended || name == Failed) && _agent.Wanted == _recording;

        public void OnNext(KeyValuePair<string, object?> happened)
        {
            try
            {
                if (_agent.Wanted != _recording || !(happened.Value is { } data))
                    return;
                if (happened.Key == Matched)
                    Arrive(data);
                else if (happened.Key == Ended)
                    _leave((uint)(_statusOfEnded ??= StatusGetter(data.GetType()))(data));
                else if (happened.Key == Failed) // Kestrel has set it by then
                    _leave((uint)(_statusOfFailed ??= StatusGetter(data.GetType()))(data));
            }
            catch (Exception)
            {
                _listener?.Dispose(); // it would fail again: requests then have no endpoints
            }
        }

        private void Arrive(object context)
        {
            _endpointOf ??= EndpointGetter(context);
            object? endpoint = _endpointOf(context);
            if (endpoint == null)
                return;
            _arrive(_routes.TryGetValue(endpoint, out Route? route) ? route : Register(endpoint));
        }

        // EndpointHttpContextExtensions.GetEndpoint(context) as a delegate.
        private static Func<object, object?> EndpointGetter(object context)
        {
            Type type = context.GetType();
            while (type.FullName != "Microsoft.AspNetCore.Http.HttpContext" && type.BaseType != null)
                type = type.BaseType;
            MethodInfo get = type.Assembly.GetType("Microsoft.AspNetCore.Http.EndpointHttpContextExtensions", true)!
                .GetMethod("GetEndpoint", new[] { type })!;
            return (Func<object, object?>)typeof(Endpoints).GetMethod(nameof(Getter), BindingFlags.NonPublic | BindingFlags.Static)!
                .MakeGenericMethod(type).Invoke(null, new object[] { get })!;
        }

        private static Func<object, object?> Getter<T>(MethodInfo get) where T : class
        {
            var typed = (Func<T, object?>)get.CreateDelegate(typeof(Func<T, object?>));
            return context => typed((T)context);
        }

        // data.httpContext.Response.StatusCode as a delegate.
        private static Func<object, int> StatusGetter(Type data)
        {
            PropertyInfo context = data.GetProperty("httpContext")!;
            PropertyInfo response = context.PropertyType.GetProperty("Response")!;
            PropertyInfo status = response.PropertyType.GetProperty("StatusCode")!;
            return (Func<object, int>)typeof(Endpoints).GetMethod(nameof(StatusOf), BindingFlags.NonPublic | BindingFlags.Static)!
                .MakeGenericMethod(data, context.PropertyType, response.PropertyType)
                .Invoke(null, new object[] { context.GetMethod!, response.GetMethod!, status.GetMethod! })!;
        }

        private static Func<object, int> StatusOf<TData, TContext, TResponse>(MethodInfo context, MethodInfo response, MethodInfo status)
            where TData : class where TContext : class where TResponse : class
        {
            var contextOf = (Func<TData, TContext>)context.CreateDelegate(typeof(Func<TData, TContext>));
            var responseOf = (Func<TContext, TResponse>)response.CreateDelegate(typeof(Func<TContext, TResponse>));
            var statusOf = (Func<TResponse, int>)status.CreateDelegate(typeof(Func<TResponse, int>));
            return data => statusOf(responseOf(contextOf((TData)data)));
        }

        private static object? Property(object of, string name) => of.GetType().GetProperty(name)?.GetValue(of);

        private static string NameOf(object endpoint)
        {
            object? pattern = Property(endpoint, "RoutePattern");
            if (pattern == null || !(Property(pattern, "RawText") is string route))
                return endpoint.ToString() ?? "";
            return Methods(endpoint) + (route.StartsWith('/') ? route : "/" + route);
        }

        // "GET " or "GET|HEAD "; empty if all methods lead there.
        private static string Methods(object endpoint)
        {
            if (Property(endpoint, "Metadata") is IEnumerable<object> all)
                foreach (object one in all)
                    if (Property(one, "HttpMethods") is IEnumerable<string> methods && string.Join("|", methods) is { Length: > 0 } list)
                        return list + " ";
            return "";
        }

        public void OnCompleted()
        {
        }

        public void OnError(Exception error)
        {
        }
    }
}
