#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""modes.py BUILD APP [--json FILE] [--pairs N] [--seconds N] [--no-perf] [--only CASE]...: what each mode of recording costs a Kestrel server
(tests/apps/Web), per endpoint. One server per case stays under the load of one wrk, and is recorded and left alone by turns,
in slices of a second: each pair of slices, one recorded and one not, is in random order, and the next pair in the other one.
The attach is not measured. The server itself counts its requests, its CPU time (with all that records in it) and the time.

Printed are the median of the pairs' differences (of all means of two differences: Hodges and Lehmann's) and its interval of
95 % confidence (Wilcoxon's), so a row says itself how much is chance; a case of mode "none" records nothing in its "recorded"
slices, and shows that the interval is as wide as it should be. A pair is left out where other programs have used more of
the processors than a tenth, and that is counted.

What no other program disturbs: of the samples that perf takes of the server while it is recorded, the shares of the agent's
threads, of the agent's code in the program's threads, and of the kernel's work for signals. Neither the runtime's work for its
events is in them nor what the kernel does with interrupts disabled, such as to switch the clocks of the engine perf."""
import collections
import math
import os
import random
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
    "plain none", "plain cpu --engine perf", "plain cpu --engine clock", "cpu cpu --engine perf", "cpu cpu --engine clock",
    "plain wall -F 100", "plain cpu --labels",
    "alloc alloc", "alloc gc", "throw exception", "lock lock", "wait wait",
    *(f"{endpoint} {ALL}" for endpoint in ("plain", "cpu", "alloc", "throw", "lock", "wait")),
]
SETTLE = {True: 1.0, False: 0.4}  # seconds after an attach, and after a detach
OTHERS = 0.1  # the most that other programs may use of the processors
FEWEST = 6  # pairs that say anything
MOST = 3  # so many times the pairs that are wanted are tried


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)  # the clock of the process's CPU time, by its number


def idle_seconds():
    with open("/proc/stat") as stat:
        fields = stat.readline().split()
    return (int(fields[4]) + int(fields[5])) / cost.TICK


class Bench:
    """A server under load, recorded or not."""

    def __init__(self, build, app, case, work):
        self.build, self.work = build, work
        self.endpoint, self.mode, *self.options = case.split()
        self.server = cost.Server(app)
        self.recorder, self.recorded, self.said = None, False, ""
        self.wrk = subprocess.Popen(["wrk", "-t1", "-c64", "-d1h", f"{self.server.url}/{self.endpoint}"], text=True,
                                    stdout=subprocess.PIPE)

    def record(self, recorded):
        """Begins or ends a recording, and waits until the server has settled, in the same way in mode "none"."""
        if recorded == self.recorded:
            return
        self.recorded = recorded
        if self.mode != "none" and recorded:
            command = [f"{self.build}/bin/clrsnap", "record", "--mode", self.mode, *self.options, "-o", f"{self.work}/out.clrsnap"]
            self.recorder = subprocess.Popen([*command, str(self.server.process.pid)], stderr=subprocess.PIPE, text=True)
        elif self.mode != "none":
            self.recorder.send_signal(signal.SIGINT)
            self.said = self.recorder.communicate(timeout=60)[1]
            if self.recorder.returncode != 0:
                raise SystemExit(f"no recording: {self.said}")
            self.recorder = None
        time.sleep(SETTLE[recorded])
        if self.recorder is not None and self.recorder.poll() is not None:
            raise SystemExit(f"nothing is recorded: {self.recorder.stderr.read()}")

    def counters(self):
        requests, ns, cpu_ns = (float(word) for word in self.server.ask().split())
        command = cpu_seconds(self.recorder.pid) if self.recorder else 0.0
        return {"requests": requests, "s": ns / 1e9, "cpu_s": cpu_ns / 1e9, "command_s": command,
                "known_s": cpu_ns / 1e9 + command + cpu_seconds(self.wrk.pid), "idle_s": idle_seconds(), "now_s": time.monotonic()}

    def slice(self, recorded, seconds):
        self.record(recorded)
        before = self.counters()
        time.sleep(seconds)
        after = self.counters()
        d = {key: after[key] - before[key] for key in after}
        whole = os.cpu_count() * d["now_s"]
        return {"requests_per_s": d["requests"] / d["s"], "us_per_request": d["cpu_s"] / d["requests"] * 1e6,
                "command": d["command_s"] / d["cpu_s"], "others": max(0.0, whole - d["idle_s"] - d["known_s"]) / whole,
                "idle": d["idle_s"] / whole}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.wrk, self.recorder, self.server.process):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()

    def end(self):
        self.record(False)
        self.wrk.send_signal(signal.SIGINT)
        out = self.wrk.communicate(timeout=60)[0]
        if "Non-2xx" in out or "Socket errors" in out or "Requests/sec" not in out:
            raise SystemExit(f"failed requests:\n{out}")
        self.server.stop()


def median_difference(differences):
    """The median, with the interval of 95 % confidence: of all means of two differences; Wilcoxon's ranks, by the normal one."""
    n = len(differences)
    means = sorted((differences[i] + differences[j]) / 2 for i in range(n) for j in range(i, n))
    rank = math.floor(n * (n + 1) / 4 - 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
    return [means[rank - 1], statistics.median(means), means[-rank]]


def by_turns(bench, pairs, seconds):
    """The pairs of slices (alone, recorded), and how many had to be left out."""
    found, left_out, first = [], 0, random.random() < 0.5
    while len(found) < pairs and len(found) + left_out < MOST * pairs:
        pair = {recorded: bench.slice(recorded, seconds) for recorded in (first, not first)}
        first = not first  # so the next one begins as this one has ended
        if max(pair[False]["others"], pair[True]["others"]) > OTHERS:
            left_out += 1
        else:
            found.append((pair[False], pair[True]))
    return found, left_out


def difference(pairs, what):
    return median_difference([100 * (recorded[what] / alone[what] - 1) for alone, recorded in pairs])


SIGNAL_WORK = re.compile(r"setup_rt_frame|rt_sigreturn")


def kind_of(stack):
    if stack.startswith(".clrsnap"):
        return "agent"
    if "libclrsnap.so" in stack:
        return "program"
    return "signals" if SIGNAL_WORK.search(stack) else "other"


def shares(bench, seconds):
    """Where the server's CPU time goes, in per cent. perf looks at all processors: events of threads would cost their switches."""
    bench.record(True)
    time.sleep(1)  # until the rates have settled
    data = f"{bench.work}/perf.data"
    subprocess.run(["perf", "record", "-q", "-F", "1999", "-a", "-g", "-o", data, "--", "sleep", str(seconds)], check=True,
                   stderr=subprocess.DEVNULL)
    text = subprocess.run(["perf", "script", "-i", data, "--pid", str(bench.server.process.pid), "-F", "comm,ip,sym,dso"], check=True,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    kinds = collections.Counter(kind_of(stack) for stack in text.split("\n\n") if stack)
    if kinds.total() < 100:
        raise SystemExit("perf has taken too few samples of the server")
    return {kind: 100 * kinds[kind] / kinds.total() for kind in ("agent", "program", "signals")} | {"samples": kinds.total()}


def measure(build, app, case, pairs, seconds, with_perf):
    with tempfile.TemporaryDirectory() as work, Bench(build, app, case, work) as bench:
        time.sleep(3)
        for recorded in (True, False):  # warms the server up, including the effects of the first attach
            bench.slice(recorded, 1)
        found, left_out = by_turns(bench, pairs, seconds)
        own = shares(bench, 6) if with_perf and bench.mode != "none" else None
        bench.end()
    held = re.search(r"threads held p50 ([\d.]+) us", bench.said)
    if len(found) < FEWEST:
        return None
    alone = {key: statistics.median(a[key] for a, _ in found) for key in ("requests_per_s", "us_per_request", "idle", "others")}
    return {"case": case, **alone, "pairs": len(found), "left_out": left_out,
            "requests": difference(found, "requests_per_s"), "cpu": difference(found, "us_per_request"),
            "command": 100 * statistics.median(r["command"] for _, r in found),
            "held_p50_us": float(held[1]) if held else None, "own": own, "slices": found}


def show(interval):
    return f"{interval[1]:+.1f} ({interval[0]:+.1f} to {interval[2]:+.1f})"


def main():
    parser = cost.arguments(__doc__, "build", "app")
    parser.add_argument("--pairs", type=int, default=20, help=f"at least {FEWEST}")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--no-perf", dest="perf", action="store_false", help="without the shares by perf's samples")
    parser.add_argument("--only", action="append", default=[], metavar="CASE",
                        help='cases that begin so: "plain", "alloc alloc", "cpu cpu --engine perf"; may be repeated')
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no load outlives this program
    cases = [case for case in CASES if not options.only or any(f"{case} ".startswith(f"{one.strip()} ") for one in options.only)]
    if options.pairs < FEWEST:
        raise SystemExit(f"--pairs: at least {FEWEST}")
    if not cases:
        raise SystemExit("no such case; there are:\n  " + "\n  ".join(CASES))
    print(f"{'':45}{'requests/s':>10}{'us each':>8}{'idle':>6}{'held':>6}  recorded, in %: {'requests':24}{'CPU time':24}"
          "of the server's CPU time, in %: the command, the agent's threads, in the program's, signals")
    table, missing = [], []
    for case in cases:
        row = measure(options.build, options.app, case, options.pairs, options.seconds, options.perf)
        if row is None:
            missing.append(case)
            print(f"{case:45} other programs use more than {OTHERS:.0%} of the processors in nearly all slices", flush=True)
            continue
        table.append(row)
        own = " ".join(f"{row['own'][kind]:.2f}" for kind in ("agent", "program", "signals")) if row["own"] else ""
        print(f"{case:45}{row['requests_per_s']:10.0f}{row['us_per_request']:8.1f}{row['idle']:6.1%}{row['held_p50_us'] or 0:6.1f}  {'':16}"
              f"{show(row['requests']):24}{show(row['cpu']):24}{row['command']:.2f} {own}  "
              f"{row['pairs']} pairs, {row['left_out']} left out, others {row['others']:.1%}", flush=True)
    cost.keep(options, table)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
