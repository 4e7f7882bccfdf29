#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""modes.py BUILD APP [--json FILE] [--turns N] [--seconds N] [--only CASE]...: what each mode of recording costs a Kestrel server
(tests/apps/Web), per endpoint. One server per case is left alone and recorded by turns under wrk. A recorded turn is
compared with the two around it, and another one with its two neighbours of that kind, which shows how much is chance. Requests a
second are wrk's, CPU time per request is that of the server's process, including the agent. Medians over the turns, with quartiles.

Other programs on the machine disturb that by more than a recording costs. What they do not disturb: of the samples that perf takes
of the server in one more recorded turn, the shares of the agent's threads, of the agent's code in the program's threads, and
of the kernel's work for signals. Neither the runtime's work for its events is in them nor what the kernel does with interrupts
disabled, such as to switch the clocks of the engine perf."""
import collections
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import cost

ALL = "cpu,alloc,lock,exception,gc,wait"
# Endpoint, mode and further options.
CASES = [
    "plain cpu --engine perf", "plain cpu --engine clock", "cpu cpu --engine perf", "cpu cpu --engine clock", "plain wall -F 100",
    "plain cpu --labels",
    "alloc alloc", "alloc gc", "throw exception", "lock lock", "wait wait",
    *(f"{endpoint} {ALL}" for endpoint in ("plain", "cpu", "alloc", "throw", "lock", "wait")),
]


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)  # the clock of the process's CPU time, by its number


def load(server, endpoint, seconds):
    before = cpu_seconds(server.process.pid)
    out = subprocess.run(["wrk", "-t1", "-c8", f"-d{seconds}s", f"{server.url}/{endpoint}"], check=True, text=True,
                         capture_output=True).stdout
    if "Non-2xx" in out:
        raise SystemExit(f"failed requests:\n{out}")
    requests = float(re.search(r"Requests/sec: +([\d.]+)", out)[1])
    return requests, (cpu_seconds(server.process.pid) - before) / (requests * seconds) * 1e6


def record(build, pid, mode, options, work):
    recorder = subprocess.Popen([f"{build}/bin/clrsnap", "record", "--mode", mode, *options, "-o", f"{work}/out.clrsnap", str(pid)],
                                stderr=subprocess.PIPE, text=True)
    time.sleep(1)  # the attach itself is not measured
    return recorder


def end(recorder):
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=60)[1]
    if recorder.returncode != 0:
        raise SystemExit(f"no recording: {said}")
    return said


def compare(results, what, distance):
    """By how many per cent every other turn, from that of `distance` on, differs from the two so far from it: quartiles."""
    shares = [100 * (results[i][what] / ((results[i - distance][what] + results[i + distance][what]) / 2) - 1)
              for i in range(distance, len(results) - distance, 2)]
    return statistics.quantiles(shares, n=4, method="inclusive") if len(shares) > 1 else [float("nan")] * 3


SIGNAL_WORK = re.compile(r"setup_rt_frame|rt_sigreturn")


def kind_of(stack):
    if stack.startswith(".clrsnap"):
        return "agent"
    if "libclrsnap.so" in stack:
        return "program"
    return "signals" if SIGNAL_WORK.search(stack) else "other"


def shares(server, endpoint, seconds, work):
    """Where the server's CPU time goes, in per cent. perf looks at all processors: events of threads would cost their switches."""
    wrk = subprocess.Popen(["wrk", "-t1", "-c8", f"-d{seconds + 1}s", f"{server.url}/{endpoint}"], stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    data = f"{work}/perf.data"
    subprocess.run(["perf", "record", "-q", "-F", "1999", "-a", "-g", "-o", data, "--", "sleep", str(seconds)], check=True,
                   stderr=subprocess.DEVNULL)
    wrk.wait()
    text = subprocess.run(["perf", "script", "-i", data, "--pid", str(server.process.pid), "-F", "comm,ip,sym,dso"], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    kinds = collections.Counter(kind_of(stack) for stack in text.split("\n\n") if stack)
    if kinds.total() < 100:
        raise SystemExit("perf has taken too few samples of the server")
    return {kind: 100 * kinds[kind] / kinds.total() for kind in ("agent", "program", "signals")} | {"samples": kinds.total()}


def measure(build, app, case, seconds, turns):
    endpoint, mode, *options = case.split()
    server = cost.Server(app)
    results, said = [], ""
    with tempfile.TemporaryDirectory() as work:
        # Warms the server up, including the effects of the first attach.
        end(record(build, server.process.pid, mode, options, work))
        load(server, endpoint, 2 * seconds)
        for turn in range(2 * turns + 1):
            if turn % 2 == 1:
                recorder = record(build, server.process.pid, mode, options, work)
                results.append(load(server, endpoint, seconds))
                said = end(recorder)
            else:
                time.sleep(1)  # in every turn: a server that has just rested is another one
                results.append(load(server, endpoint, seconds))
        recorder = record(build, server.process.pid, mode, options, work)
        time.sleep(1)  # until the rates have settled
        own = shares(server, endpoint, 4 * seconds, work)
        end(recorder)
    server.stop()
    held = re.search(r"threads held p50 ([\d.]+) us", said)
    return {"case": case, "requests_per_s": statistics.median(r for r, _ in results[::2]),
            "us_per_request": statistics.median(us for _, us in results[::2]),
            "requests": compare(results, 0, 1), "requests_by_chance": compare(results, 0, 2),
            "cpu": compare(results, 1, 1), "cpu_by_chance": compare(results, 1, 2), "held_p50_us": float(held[1]) if held else None,
            "own": own, "load": os.getloadavg()[0]}


def show(quartiles):
    return f"{quartiles[1]:+.1f} ({quartiles[0]:+.1f} to {quartiles[2]:+.1f})"


def main():
    parser = cost.arguments(__doc__, "build", "app")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--only", action="append", default=[], metavar="CASE",
                        help='cases that begin so: "plain", "alloc alloc", "cpu cpu --engine perf"; may be repeated')
    options = parser.parse_args()
    cases = [case for case in CASES if not options.only or any(f"{case} ".startswith(f"{one.strip()} ") for one in options.only)]
    if not cases:
        raise SystemExit("no such case; there are:\n  " + "\n  ".join(CASES))
    print(f"{'':45}{'requests/s':>10}{'us each':>8}{'held':>6}  recorded, in %: {'requests':24}{'CPU time':24}by chance: {'requests':24}{'CPU time':24}"
          "by perf, % of CPU: agent, in the program's threads, signals")
    table = []
    for case in cases:
        row = measure(options.build, options.app, case, options.seconds, options.turns)
        table.append(row)
        print(f"{case:45}{row['requests_per_s']:10.0f}{row['us_per_request']:8.1f}{row['held_p50_us'] or 0:6.1f}  {'':16}{show(row['requests']):24}"
              f"{show(row['cpu']):24}{'':11}{show(row['requests_by_chance']):24}{show(row['cpu_by_chance']):24}"
              f"{row['own']['agent']:.2f} {row['own']['program']:.2f} {row['own']['signals']:.2f}  load {row['load']:.0f}", flush=True)
    cost.keep(options, table)


if __name__ == "__main__":
    sys.exit(main())
