// SPDX-License-Identifier: MIT
// Where the native parts are.
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Torture;

static class Native
{
    internal const string Library = "torture";
    internal static string Folder => Environment.GetEnvironmentVariable("TORTURE_LIB")
        ?? throw new InvalidOperationException("TORTURE_LIB is not set");

    [ModuleInitializer]
    internal static void Register() => NativeLibrary.SetDllImportResolver(Assembly.GetExecutingAssembly(),
        (name, _, _) => name == Library ? NativeLibrary.Load(Path.Combine(Folder, "libtorture.so")) : 0);
}
