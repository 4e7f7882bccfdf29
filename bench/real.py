#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""real.py BUILD [--json FILE] [--only PROGRAM]: for how long a sample holds a thread up in real programs, and for how long a signal
with an empty handler does at the same instants: in one recording every other signal, at random, has an empty handler. CPU mode, by
the perf engine: from the kernel's own time-stamp of the interruption of user mode to the end of the handler, including the delivery
of the signal. Wall mode sends signals, of whose arrival nothing says when it was: to the handler's time the median delivery in CPU
mode of the same program is added. The way back from the handler (sigreturn, some 0.3 us) is in none of the numbers."""
import os
import signal
import subprocess
import sys
import tempfile
import time

import cost

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RATE = {"cpu": ["--engine", "perf", "-F", "999"], "wall": ["-F", "499"]}
ENVIRONMENT = "CLRSNAP_BENCH_HANDLER_TIMES"


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] / 1e3 if values else float("nan")


def read(path):
    """(kind, by) -> the columns of the file that the agent has written: ns from the interruption, or None; ns in the handler."""
    notes = {}
    with open(path) as lines:
        for line in lines:
            kind, by, whole, handler = line.split()
            notes.setdefault((kind, by), []).append((None if whole == "-" else float(whole), float(handler)))
    return notes


def recorder(build, mode, work, rest):
    return [f"{build}/bin/clrsnap", "record", "--mode", mode, *RATE[mode], "-o", f"{work}/out.clrsnap", *rest]


def from_start(build, mode, work, program):
    subprocess.run(recorder(build, mode, work, ["--", *program]), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def demo(build, mode, work):
    from_start(build, mode, work, ["dotnet", f"{build}/apps/Demo/Demo.dll"])


def csc(build, mode, work):
    """The C# compiler over 600 classes, after a first time that has brought its files into memory."""
    shell = f'. "{SOURCE}/tests/oracle/recorded/classes.sh" && find_compiler && {{ [ -f "{work}/rsp" ] || make_classes "{work}"; }} && echo "$CSC"'
    compiler = subprocess.run(["bash", "-c", shell], check=True, text=True, capture_output=True).stdout.split()[-1]
    from_start(build, mode, work, ["dotnet", compiler, "-noconfig", f"@{work}/rsp", f"-out:{work}/made.dll"])


def kestrel(build, mode, work):
    """A server under wrk, recorded by attach after it has been warmed up."""
    server = cost.Server(f"{build}/apps/Web/Web.dll")
    try:
        cost.load(server.url, 5)
        running = subprocess.Popen(recorder(build, mode, work, [str(server.process.pid)]), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(1)
        cost.load(server.url, 8)
        running.send_signal(signal.SIGINT)
        if running.wait(timeout=60) != 0:
            raise SystemExit("no recording of the server")
    finally:
        server.stop()


PROGRAMS = {"demo": demo, "csc": csc, "kestrel": kestrel}


def summarize(notes, mode, delivery):
    """delivery: an empty handler's p50 and p99 in cpu mode, which are added where the time of the interruption is not known."""
    row = {"mode": mode}
    for kind in ("empty", "full"):
        column = {}
        if mode == "cpu":
            known = [(whole, handler) for whole, handler in notes.get((kind, "clock"), []) if whole is not None]
            handler = [h for _, h in known]
        else:
            handler = [h for _, h in notes.get((kind, "asked"), [])]
        for name, share in (("p50_us", 0.5), ("p99_us", 0.99)):
            column[f"handler_{name}"] = percentile(handler, share)
            column[name] = percentile([w for w, _ in known], share) if mode == "cpu" else column[f"handler_{name}"] + delivery[name]
        row[kind] = {"count": len(handler), **column}
    row["ratio_p50"] = row["full"]["p50_us"] / row["empty"]["p50_us"]
    row["ratio_p99"] = row["full"]["p99_us"] / row["empty"]["p99_us"]
    return row


def main():
    parser = cost.arguments(__doc__, "build")
    parser.add_argument("--only", choices=PROGRAMS)
    options = parser.parse_args()
    table = []
    print("In real programs: how long a thread stands still for a sample, and for an empty handler (us)")
    print(f"  {'':16}{'signals':>8} {'empty: p50':>11}{'p99':>8} {'sample: p50':>12}{'p99':>8} {'in the handler: p50':>20}{'p99':>8}"
          f" {'ratio: p50':>11}{'p99':>6}")
    with tempfile.TemporaryDirectory() as work:
        os.environ[ENVIRONMENT] = f"{work}/notes"
        for name, run in PROGRAMS.items():
            if options.only not in (None, name):
                continue
            delivery = None
            for mode in ("cpu", "wall"):
                run(options.build, mode, work)
                row = {"program": name, **summarize(read(f"{work}/notes"), mode, delivery)}
                os.remove(f"{work}/notes")
                delivery = row["empty"]
                table.append(row)
                empty, full = row["empty"], row["full"]
                print(f"  {name + ', ' + mode:16}{full['count']:8} {empty['p50_us']:11.1f}{empty['p99_us']:8.1f} {full['p50_us']:12.1f}"
                      f"{full['p99_us']:8.1f} {full['handler_p50_us']:20.1f}{full['handler_p99_us']:8.1f} {row['ratio_p50']:11.1f}"
                      f"{row['ratio_p99']:6.1f}", flush=True)
    cost.keep(options, table)


if __name__ == "__main__":
    sys.exit(main())
