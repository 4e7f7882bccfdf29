// SPDX-License-Identifier: MIT
// The parts of tests/apps/Proofs that run on the arm64 runtime's trimmed framework.
namespace Proofs;

static class Program
{
    static int Main(string[] args)
    {
        string[] rest = args.Length > 1 ? args[1..] : [];
        switch (args.Length > 0 ? args[0] : "")
        {
            case "variety": Variety.Run(rest); break;
            case "known": Known.Run(rest); break;
            case "shadow": Shadowed.Run(rest); break;
            case "recorded": return Recorded.Run(rest);
            default: System.Console.Error.WriteLine("usage: proofs variety|known|shadow|recorded [arguments]"); return 2;
        }
        return Oracle.oracle_finish();
    }
}
