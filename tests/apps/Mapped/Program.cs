// Loads a native library by its path and stays in it; what becomes of the library's file meanwhile is the test's affair.
//   Mapped LIBRARY SECONDS     says "ready" when it is loaded, and then spins in it
using System.Diagnostics;
using System.Runtime.InteropServices;

unsafe
{
    nint library = NativeLibrary.Load(args[0]);
    var spin = (delegate* unmanaged<long, long>)NativeLibrary.GetExport(library, "spin");
    Console.WriteLine("ready");
    Console.Out.Flush();
    var clock = Stopwatch.StartNew();
    long sum = 0;
    while (clock.Elapsed.TotalSeconds < double.Parse(args[1])) sum += spin(1_000_000);
    Console.WriteLine($"ended {sum != 0}");
}
