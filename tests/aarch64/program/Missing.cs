// SPDX-License-Identifier: MIT
// What the trimmed framework of the arm64 runtime leaves out of what tests/apps/Proofs uses, by the names that are used
// there. In no namespace, so that they come before the framework's, and patterns of frames do not count them as the
// program's. (What cannot be had at all is left out there, under TRIMMED.)
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Threading;

static class GC
{
    internal static void Collect() => System.GC.Collect();
    internal static void Collect(int generation) => System.GC.Collect();
    internal static void WaitForPendingFinalizers() => System.GC.WaitForPendingFinalizers();
    internal static long GetAllocatedBytesForCurrentThread() => 1;
    internal static T[] AllocateArray<T>(int length) => new T[length];
}

// The profiler lies beside the program, under the name that is asked for.
static class NativeLibrary
{
    internal static void SetDllImportResolver(Assembly assembly, Func<string, Assembly, DllImportSearchPath?, IntPtr> resolver) { }
    internal static IntPtr Load(string file) => throw new DllNotFoundException(file);
}

static class ThreadPool
{
    internal static bool QueueUserWorkItem(WaitCallback call) => UnsafeQueueUserWorkItem(call, null);
    internal static bool UnsafeQueueUserWorkItem(WaitCallback call, object state) => System.Threading.ThreadPool.UnsafeQueueUserWorkItem(call, state);
}

static class Parallel
{
    internal static void For(int from, int to, Action<int> body)
    {
        var threads = new List<Thread>();
        for (int i = from; i < to; i++) { int n = i; var t = new Thread(() => body(n)); threads.Add(t); t.Start(); }
        foreach (Thread t in threads) t.Join();
    }
}

static class Delegate
{
    internal static System.Delegate CreateDelegate(Type type, object target, MethodInfo method) => method.CreateDelegate(type, target);
}

static class Missing
{
    internal static object DynamicInvoke(this System.Delegate d, params object[] arguments) => d.Method.Invoke(d.Target, arguments);
    internal static void Interrupt(this Thread thread) => throw new ThreadInterruptedException();
    internal static IEnumerable<object> GetCustomAttributes(this Assembly assembly) => assembly.GetCustomAttributes(false);
    internal static ConstructorInfo GetConstructor(this Type type, BindingFlags flags, Type[] types) => type.GetConstructors(flags)[0];
    internal static int Sum(this IEnumerable<int> numbers) { int sum = 0; foreach (int n in numbers) sum += n; return sum; }
}
