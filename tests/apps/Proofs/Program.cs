// SPDX-License-Identifier: MIT
// One program for all proofs on the live runtime: the first argument names the part to run.
using System;

namespace Proofs;

static class Program
{
    static int Main(string[] args)
    {
        Oracle.Resolve();
        string[] rest = args.Length > 1 ? args[1..] : Array.Empty<string>();
        switch (args.Length > 0 ? args[0] : "")
        {
            case "variety": Variety.Run(rest); break;
            case "known": Known.Run(rest); break;
            case "shadow": Shadowed.Run(rest); break;
            case "bad": Bad.Run(); break;
            case "rules": Rules.Run(rest); break;
            case "deep": Deep.Run(); break;
            case "registers": Registers.Run(); break;
            case "torn": Torn.Run(); break;
            case "asleep": Asleep.Run(rest); break;
            case "seeds": Seeds.Run(); break;
            case "bench": Bench.Run(); break;
            case "torture": return Torture.Run(rest);
            case "busy": return Busy.Run(rest);
            case "crowd": return Crowd.Run(rest);
            default:
                Console.Error.WriteLine("usage: Proofs variety|known|shadow|bad|rules|deep|registers|asleep|seeds|torn|bench|torture|busy [arguments]");
                return 2;
        }
        bool alone = rest.Length > 0 && rest[0] == "alone";
        return Oracle.Present && !alone ? Oracle.oracle_finish() : 0;
    }
}
