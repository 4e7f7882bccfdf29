#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""modes.py BUILD APP [--json FILE] [--pairs N] [--seconds N] [--no-perf] [--only CASE]...: what each mode of recording costs a
Kestrel server (tests/apps/Web), per endpoint. Two servers share one processor, each under the load of its own wrk on the other
processors, and are recorded by turns: in each slice of time one of them is recorded and the other one is left alone. A machine's
pace may change by 10 % from second to second, but for both alike, so the ratio of their CPU times per request (which include what
the agent uses) does not. A pair of slices gives sqrt(ratio while the one is recorded / ratio while the other one is), in which the
servers' own difference cancels. Both are short of CPU time, so a server loses as many requests as its requests cost more. The
attach is not measured.

Printed are the median of the pairs (of all means of two pairs: Hodges and Lehmann's) and its interval of 95 % confidence
(Wilcoxon's), so a row says itself how much is chance; a case of mode "none" records nothing, and shows that the interval is as wide
as it should be. A pair is left out where other programs have used more of the processors than a tenth, and that is counted.

What no other program disturbs: of the samples that perf takes of a server while it is recorded, the shares of the agent's
threads, of the agent's code in the program's threads, and of the kernel's work for signals. Neither the runtime's work for its
events is in them nor what the kernel does with interrupts disabled, such as to switch the clocks of the perf engine."""
import collections
import math
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
    "plain none", "plain cpu --engine perf", "plain cpu --engine clock", "cpu cpu --engine perf", "cpu cpu --engine clock",
    "plain wall -F 100", "plain cpu --labels",
    "alloc alloc", "alloc gc", "throw exception", "lock lock", "wait wait",
    *(f"{endpoint} {ALL}" for endpoint in ("plain", "cpu", "alloc", "throw", "lock", "wait")),
]
SETTLE = {True: 0.8, False: 0.1}  # seconds after an attach, and after a detach
OTHERS = 0.1  # the most that other programs may use of the processors
FEWEST = 6  # pairs that say anything
MOST = 3  # so many times the pairs that are wanted are tried


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)  # the clock of the process's CPU time, by its number


def machine():
    """Seconds of all processors: idle, and in interrupts, which belong to no program (with this load, those of the network)."""
    with open("/proc/stat") as stat:
        _, _, _, _, idle, iowait, irq, softirq, *_ = stat.readline().split()
    return {"idle_s": (int(idle) + int(iowait)) / cost.TICK, "interrupts_s": (int(irq) + int(softirq)) / cost.TICK,
            "now_s": time.monotonic()}


def processors():
    """For the servers, and for all else."""
    *others, own = sorted(os.sched_getaffinity(0))
    return [own], others or [own]


class Bench:
    """A server under load, recorded or not."""

    def __init__(self, build, app, case, work):
        self.build, self.work = build, work
        self.endpoint, self.mode, *self.options = case.split()
        own, self.others = processors()
        self.server = cost.Server(app, own)
        self.recorder, self.recorded, self.said = None, False, ""
        self.wrk = subprocess.Popen(["wrk", "-t1", "-c64", "-d1h", f"{self.server.url}/{self.endpoint}"], text=True,
                                    stdout=subprocess.PIPE, preexec_fn=cost.on(self.others))

    def record(self, recorded):
        """Begins or ends a recording, and waits until the server has settled, in the same way in mode "none"."""
        if recorded == self.recorded:
            return
        self.recorded = recorded
        if self.mode != "none" and recorded:
            command = [f"{self.build}/bin/clrsnap", "record", "--mode", self.mode, *self.options, "-o", f"{self.work}/out.clrsnap"]
            self.recorder = subprocess.Popen([*command, str(self.server.process.pid)], stderr=subprocess.PIPE, text=True,
                                             preexec_fn=cost.on(self.others))
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
                "known_s": cpu_ns / 1e9 + command + cpu_seconds(self.wrk.pid)}

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


def slice_of_time(servers, recorded, seconds):
    """What the servers do while the one of that index is recorded."""
    servers[not recorded].record(False)
    servers[recorded].record(True)
    before = [one.counters() for one in servers] + [machine()]
    time.sleep(seconds)
    after = [one.counters() for one in servers] + [machine()]
    *d, m = ({key: b[key] - a[key] for key in a} for a, b in zip(before, after))
    whole = os.cpu_count() * m["now_s"]
    others = whole - m["idle_s"] - m["interrupts_s"] - sum(one["known_s"] for one in d)
    return {"requests_per_s": sum(one["requests"] for one in d) / m["now_s"],
            "us_per_request": [one["cpu_s"] / one["requests"] * 1e6 for one in d],
            "command": d[recorded]["command_s"] / d[recorded]["cpu_s"], "others": max(0.0, others) / whole, "idle": m["idle_s"] / whole}


def by_turns(servers, pairs, seconds):
    """The pairs of slices, in which the first and the second server is recorded, and how many had to be left out."""
    found, left_out, first = [], 0, 0
    while len(found) < pairs and len(found) + left_out < MOST * pairs:
        pair = {recorded: slice_of_time(servers, recorded, seconds) for recorded in (first, 1 - first)}
        first = 1 - first  # so the next one begins as this one has ended
        if max(one["others"] for one in pair.values()) > OTHERS:
            left_out += 1
        else:
            found.append((pair[0], pair[1]))
    return found, left_out


def cost_of(pair):
    """By how many per cent a request's CPU time is more where it is recorded."""
    ratios = [one["us_per_request"][0] / one["us_per_request"][1] for one in pair]
    return 100 * (math.sqrt(ratios[0] / ratios[1]) - 1)


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
    with tempfile.TemporaryDirectory() as work, Bench(build, app, case, work) as one, Bench(build, app, case, work) as other:
        servers = [one, other]
        time.sleep(3)
        for recorded in (0, 1):  # warms the servers up, including the effects of the first attach
            slice_of_time(servers, recorded, 1)
        found, left_out = by_turns(servers, pairs, seconds)
        other.end()
        own = shares(one, 6) if with_perf and one.mode != "none" else None
        one.end()
    held = re.search(r"threads held p50 ([\d.]+) us", other.said)
    if len(found) < FEWEST:
        return None
    slices = [one for pair in found for one in pair]
    middle = {key: statistics.median(one[key] for one in slices) for key in ("requests_per_s", "idle", "others")}
    cpu = median_difference([cost_of(pair) for pair in found])
    return {"case": case, **middle, "pairs": len(found), "left_out": left_out, "cpu": cpu,
            "us_per_request": statistics.median(a["us_per_request"][1] for a, _ in found),
            "requests": [100 * (100 / (100 + percent) - 1) for percent in reversed(cpu)],
            "command": 100 * statistics.median(one["command"] for one in slices),
            "held_p50_us": float(held[1]) if held else None, "own": own, "slices": found}


def show(interval):
    return f"{interval[1]:+.1f} ({interval[0]:+.1f} to {interval[2]:+.1f})"


def main():
    parser = cost.arguments(__doc__, "build", "app")
    parser.add_argument("--pairs", type=int, default=16, help=f"at least {FEWEST}")
    parser.add_argument("--seconds", type=float, default=2)
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
