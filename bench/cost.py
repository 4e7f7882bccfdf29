#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cost.py BUILD APP TRACE [--json FILE] [--seconds N] [--rounds N] [--turns N]: what recording costs a server. APP is tests/apps/Web, a
Kestrel server; wrk asks it for the same page as fast as it answers. Each round and case has a new server, which is warmed up, then
recorded from outside while wrk runs. TRACE is dotnet-trace, or "-". Requests a second and latencies are wrk's; CPU seconds are
those of the server's process and of the recorder, from /proc and from wait. Prints the median over the rounds.

Two servers differ by more than a recording costs. So one server is then recorded and left alone by turns, N times. Each recorded
turn is compared with the two around it, and each other turn with its neighbours in the same way, which shows how
much is chance."""
import argparse
import ctypes
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
PRCTL = ctypes.CDLL(None).prctl
UNITS = {"us": 1e-3, "ms": 1, "s": 1e3}


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def on(processors):
    """For preexec_fn: the program runs on these processors only, does not outlive this one, and SIGINT is not ignored."""
    def begin():
        PRCTL(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.sched_setaffinity(0, processors)
    return begin


class Server:
    def __init__(self, app, processors=range(os.cpu_count())):
        self.process = subprocess.Popen(["dotnet", app, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=on(processors))
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("http://"):
            raise SystemExit(f"the server did not start: {self.url!r}")

    def ask(self):
        """What the server has done so far: requests, the time in ns, its CPU time in ns."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def stop(self):
        self.process.stdin.close()
        if self.process.wait(timeout=60) != 0:
            raise SystemExit(f"the server ended with {self.process.returncode}")


def load(url, seconds):
    """One run of wrk: requests a second, latencies in ms; every answer must be a 200."""
    before = children_seconds()
    out = subprocess.run(["wrk", "-t1", "-c16", f"-d{seconds}s", "--latency", f"{url}/items/50"], check=True, text=True,
                         capture_output=True).stdout
    if "Non-2xx" in out or "Socket errors" in out:
        raise SystemExit(f"failed requests:\n{out}")
    latency = {int(share): float(number) * UNITS[unit]
               for share, number, unit in re.findall(r"^ +(\d+)% +([\d.]+)(us|ms|s) *$", out, re.M)}
    return {"requests_per_s": float(re.search(r"Requests/sec: +([\d.]+)", out)[1]), "p50_ms": latency[50], "p99_ms": latency[99],
            "load_cpu_s": children_seconds() - before}


def record(build, *options):
    return lambda pid, work: [f"{build}/bin/clrsnap", "record", *options, "-o", f"{work}/out.clrsnap", str(pid)]


def cases(build, trace):
    yield "without a profiler", None
    yield "clrsnap, wall, 100 Hz", record(build, "--mode", "wall", "-F", "100")
    yield "clrsnap, cpu, 1 kHz", record(build, "--mode", "cpu", "-F", "1000")
    if trace != "-":
        yield "dotnet-trace, its sampler", lambda pid, work: [
            trace, "collect", "-p", str(pid), "--profile", "dotnet-sampled-thread-time", "-o", f"{work}/out.nettrace"]


def measure(app, command, seconds):
    server = Server(app)
    recorder = None
    load(server.url, 5)
    with tempfile.TemporaryDirectory() as work, open(os.path.join(work, "log"), "w+") as log:
        if command is not None:
            # What is left of its standard input is what dotnet-trace takes for "stop".
            recorder = subprocess.Popen(command(server.process.pid, work), stdin=subprocess.PIPE, stdout=log, stderr=log)
        time.sleep(3)  # in every case: a server that has just rested is another one
        if recorder is not None and recorder.poll() is not None:
            log.seek(0)
            raise SystemExit(f"nothing is recorded: {log.read()}")
        before = cpu_seconds(server.process.pid)
        result = load(server.url, seconds)
        result["server_cpu_s"] = cpu_seconds(server.process.pid) - before
        result["recorder_cpu_s"] = 0.0
        if recorder is not None:
            used = children_seconds()
            recorder.send_signal(signal.SIGINT)
            recorder.wait(timeout=120)
            result["recorder_cpu_s"] = children_seconds() - used
            if not any(os.path.getsize(os.path.join(work, name)) > 1000 for name in os.listdir(work) if name != "log"):
                log.seek(0)
                raise SystemExit(f"no recording: {log.read()}")
    server.stop()
    return result


def by_turns(build, app, seconds, turns):
    """The results of 2 * turns + 1 runs on one server; the second, the fourth, ... are recorded."""
    server = Server(app)
    load(server.url, 10)
    results = []
    with tempfile.TemporaryDirectory() as work:
        for turn in range(2 * turns + 1):
            recorder = None
            if turn % 2 == 1:
                recorder = subprocess.Popen(record(build, "--mode", "wall", "-F", "100")(server.process.pid, work),
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1)
            if recorder is not None and recorder.poll() is not None:
                raise SystemExit("nothing is recorded")
            results.append(load(server.url, seconds))
            if recorder is not None:
                recorder.send_signal(signal.SIGINT)
                if recorder.wait(timeout=60) != 0:
                    raise SystemExit("no recording")
    server.stop()
    return results


def compare(results, key, distance):
    """By how many percent every other run, from the one at `distance` on, differs from the two so far from it: quartiles."""
    shares = [results[i][key] / ((results[i - distance][key] + results[i + distance][key]) / 2) * 100 - 100
              for i in range(distance, len(results) - distance, 2)]
    return statistics.quantiles(shares, n=4)


def print_turns(results, seconds):
    print(f"One server, recorded (wall, 100 Hz) and left alone by turns of {seconds} s, {len(results) // 2} times: median and quartiles")
    told = {}
    keys = {"requests_per_s": "requests", "p50_ms": "p50", "p99_ms": "p99"}
    for name, distance in (("recorded", 1), ("left alone: chance", 2)):
        told[name] = {key: compare(results, key, distance) for key in keys}
        print(f"  {name:20}" + "   ".join(f"{keys[key]} {q[1]:+.1f} % ({q[0]:+.1f} to {q[2]:+.1f})" for key, q in told[name].items()))
    return told


def arguments(text, *names):
    """A parser of a benchmark's arguments; `text` is its documentation."""
    parser = argparse.ArgumentParser(description=text.split(":")[0])
    for name in names:
        parser.add_argument(name)
    parser.add_argument("--json")
    return parser


def keep(options, numbers):
    if options.json:
        with open(options.json, "w") as out:
            json.dump(numbers, out)


def main():
    parser = arguments(__doc__, "build", "app", "trace")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=20)
    options = parser.parse_args()
    kinds = list(cases(os.path.abspath(options.build), options.trace))
    results = {name: [] for name, _ in kinds}
    for turn in range(options.rounds):
        for name, command in kinds[turn % len(kinds):] + kinds[:turn % len(kinds)]:
            results[name].append(measure(options.app, command, options.seconds))
    table = []
    for name, rounds in results.items():
        row = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        row["cpu_us_per_request"] = statistics.median(
            one["server_cpu_s"] / (one["requests_per_s"] * options.seconds) * 1e6 for one in rounds)
        table.append(dict(how=name, **row))
    first = table[0]
    print(f"A Kestrel server under wrk, {options.seconds} s per case, median of {options.rounds}")
    print(f"  {'':27}{'requests/s':>11}{'p50 ms':>8}{'p99 ms':>8}{'server CPU':>11}{'us/request':>11}{'recorder CPU':>13}")
    for row in table:
        share = "" if row is first else f"   {row['requests_per_s'] / first['requests_per_s'] * 100 - 100:+.1f} % requests"
        print(f"  {row['how']:27}{row['requests_per_s']:11.0f}{row['p50_ms']:8.2f}{row['p99_ms']:8.2f}{row['server_cpu_s']:10.2f}s"
              f"{row['cpu_us_per_request']:11.1f}{row['recorder_cpu_s']:12.2f}s{share}")
    if options.trace == "-":
        print("  dotnet-trace: not measured, NuGet cannot be reached")
    turns = by_turns(options.build, options.app, 4, options.turns)
    told = print_turns(turns, 4)
    keep(options, {"seconds": options.seconds, "rounds": options.rounds, "cases": table, "by_turns": told})


if __name__ == "__main__":
    sys.exit(main())
