#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""shares.py BUILD APP [--long] [--engines A,B] [--json FILE]: is the share of a method what it is? APP is tests/apps/Shares, a Kestrel
server whose requests spend 70 % of their CPU time in First and 30 % in Second. For each call it notes the time that the
call has used by the CPU clock of its thread, which includes the kernel's time in interrupts and excludes
the time of other threads that had the processor. wrk generates the load; `clrsnap record PID` and `perf record`, one at
a time, record the server. The truth covers exactly the time that was recorded: a call that lies only partly in it
counts by the part that does.

Printed for each case: First's share, true and by CPU time in the recording; the samples of both methods; their number
in percent of CPU time times the requested rate; and the recorded CPU time in percent of the true one. The share must be
right to within 2 points, plus twice the standard deviation of so many samples, plus half of what the clock engine
reports that it has left out (its late scans: few, unless other programs need the processors). The same holds for all
cases of an engine together.

Kinds of requests: sync and async (an await between the methods); tick (it begins when the kernel's tick wakes its
thread); thread (each on a new thread). The short run has one rate, and the cases that are hard for a sampler that is in
step with something."""
import argparse
import array
import gzip
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools"))
import protobuf

FIRST, SECOND = "Work.First", "Work.Second"
POINTS, SIGMAS = 2.0, 2.0
FEW = 100  # with fewer samples a case proves nothing


# ---- The program ----
class Server:
    def __init__(self, app):
        # Idle threads of the pool end soon, so that threads come and go; the runtime's map gives perf the methods'
        # addresses.
        settings = {"DOTNET_ThreadPool_ThreadTimeoutMs": "30", "DOTNET_PerfMapEnabled": "3"}
        self.process = subprocess.Popen(["dotnet", app], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **settings))
        self.pid = self.process.pid
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("http://"):
            raise SystemExit(f"FAIL: the server did not start: {self.url!r}")

    def calls(self):
        with urllib.request.urlopen(f"{self.url}/calls", timeout=300) as answer:
            numbers = array.array("q", answer.read())
        return [tuple(numbers[i : i + 6]) for i in range(0, len(numbers), 6)]

    def addresses(self):
        """The addresses of the two methods, from the runtime's map."""
        found = {}
        with open(f"/tmp/perf-{self.pid}.map", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                begin, size, name = line.rstrip("\n").split(" ", 2)
                for method in ("First", "Second"):
                    if f"Work::{method}(" in name:
                        found[method] = range(int(begin, 16), int(begin, 16) + int(size, 16))
        return found["First"], found["Second"]

    def stop(self):
        self.process.stdin.close()
        try:
            code = self.process.wait(timeout=300)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise SystemExit("FAIL: the server did not end")
        for name in (f"/tmp/perf-{self.pid}.map", f"/tmp/perfinfo-{self.pid}.map"):
            if os.path.exists(name):
                os.unlink(name)
        if code != 0:
            raise SystemExit(f"FAIL: the server ended with {code}")


class Load:
    def __init__(self, url, connections):
        self.process = subprocess.Popen(["wrk", "-t1", f"-c{connections}", "-d600s", url], stdout=subprocess.PIPE, text=True)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        out = self.process.communicate(timeout=300)[0]
        if "Non-2xx" in out or not re.search(r"^ +[1-9]\d* requests in", out, re.M):
            raise SystemExit(f"FAIL: requests failed:\n{out}")


# ---- What was recorded: begin and end in ns of CLOCK_REALTIME, and samples and ns of each method (None: unknown) ----
def by_clrsnap(build, engine, server, hz, seconds, work):
    out = os.path.join(work, "out.pb.gz")
    command = [f"{build}/bin/clrsnap", "record", "-d", str(seconds), "-F", str(hz), "-o", out]
    command += [] if engine is None else ["--engine", engine]
    done = subprocess.run(command + [str(server.pid)], capture_output=True, text=True, timeout=seconds + 120)
    if done.returncode != 0:
        raise SystemExit(f"FAIL: {' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    with gzip.open(out) as file:
        profile = list(protobuf.fields(file.read()))
    one = lambda number: next(value for key, _, value in profile if key == number)
    strings = [value.decode() for key, _, value in profile if key == 6]
    name_of = {}
    for key, _, value in profile:
        if key == 5:
            function = {k: v for k, _, v in protobuf.fields(value)}
            name_of[function[1]] = strings[function[2]]
    method_of = {}  # by location
    for key, _, value in profile:
        if key != 4:
            continue
        location = list(protobuf.fields(value))
        for k, _, v in location:
            if k == 4:
                name = name_of[next(x for n, _, x in protobuf.fields(v) if n == 1)]
                if name in (FIRST, SECOND):
                    method_of[next(x for n, _, x in location if n == 1)] = name == SECOND
    samples, time_ns = [0, 0], [0, 0]
    for key, _, value in profile:
        if key != 2:
            continue
        sample = {k: protobuf.packed(v) for k, wire, v in protobuf.fields(value) if wire == 2 and k in (1, 2)}
        method = next((method_of[at] for at in sample[1] if at in method_of), None)
        if method is not None:
            samples[method] += sample[2][0]
            time_ns[method] += sample[2][1]
    return one(9), one(9) + one(10), samples, time_ns, done.stderr


def by_perf(server, hz, seconds, work):
    data = os.path.join(work, "perf.data")
    run = lambda *command: subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120)
    # Records the whole machine: for a single process, perf misses threads that begin meanwhile.
    done = run("perf", "record", "-e", "cpu-clock", "-k", "CLOCK_REALTIME", "-c", str(10**9 // hz), "-a", "-o", data, "--", "sleep", str(seconds))
    listed = run("perf", "script", "--ns", "-i", data, "-F", "pid,time,ip")
    if done.returncode != 0 or listed.returncode != 0:
        raise SystemExit(f"FAIL: perf does not record here: {done.stderr} {listed.stderr}")
    methods = server.addresses()
    samples, times = [0, 0], []
    for line in listed.stdout.splitlines():
        pid, moment, ip = line.split()[:3]
        times.append(int(moment.rstrip(":").replace(".", "")))
        for method in (0, 1):
            samples[method] += int(pid) == server.pid and int(ip, 16) in methods[method]
    os.unlink(data)
    return min(times), max(times), samples, [None, None], ""


def truth_of(calls, begin, end):
    """The CPU time of the two methods between two moments, in ns."""
    cpu = [0.0, 0.0]
    for method, _, at, to, cpu_at, cpu_to in calls:
        inside = min(to, end) - max(at, begin)
        if inside > 0:
            cpu[method] += (cpu_to - cpu_at) * min(1.0, inside / (to - at))
    return cpu


# ---- Cases ----
def share(pair):
    return 100.0 * pair[0] / sum(pair) if sum(pair) > 0 else 0.0


def chance(samples, true):
    return 100.0 * math.sqrt(true / 100 * (1 - true / 100) / max(samples, 1))


def measure(options, server, case, engine, hz, seconds, work):
    kind, us, connections = case
    load = Load(f"{server.url}/{kind}/{us}", connections)
    time.sleep(0.3)
    server.calls()
    if engine == "perf-tool":
        begin, end, samples, time_ns, told = by_perf(server, hz, seconds, work)
    else:
        begin, end, samples, time_ns, told = by_clrsnap(options.build, engine, server, hz, seconds, work)
    truth = truth_of(server.calls(), begin, end)
    load.stop()
    if sum(truth) == 0:
        raise SystemExit(f"FAIL: {kind} {us} us, {engine}: the server has done nothing\n{told}")
    timed = time_ns if time_ns[0] is not None else samples
    row = {"kind": kind, "us": us, "connections": connections, "engine": engine or "default", "hz": hz, "true": share(truth),
           "cpu_s": sum(truth) / 1e9, "by_time": share(timed), "by_samples": share(samples), "samples": sum(samples),
           "rate": sum(samples) / (sum(truth) / 1e9 * hz)}
    row["time"] = sum(time_ns) / sum(truth) if time_ns[0] is not None else None
    row["off"] = row["by_time"] - row["true"]
    late = re.search(r"([\d.]+) % of them were late", told)
    row["late"] = float(late[1]) if late else 0.0
    row["allowed"] = POINTS + SIGMAS * chance(row["samples"], row["true"]) + row["late"] / 2
    row["good"] = row["samples"] >= FEW and abs(row["off"]) <= row["allowed"]
    return row


def print_row(row):
    covered = f"{100 * row['time']:7.1f} %" if row["time"] is not None else f"{'':9}"
    print(f"  {row['kind']:7}{row['us'] / 1000:5.1f} ms{row['connections']:4}{row['engine']:>11}{row['hz']:6} Hz{row['true']:8.1f} %"
          f"{row['by_time']:8.1f} %{row['by_samples']:8.1f} %{row['off']:+7.1f}{row['samples']:8}{100 * row['rate']:8.1f} %{covered}"
          f"{'' if row['good'] else '   OFF'}", flush=True)


LENGTHS = (300, 1000, 4000, 5000, 8000, 20000)


def long_cases():
    for kind, many in (("sync", (1, 4, 16)), ("async", (1, 4, 16)), ("tick", (8,)), ("thread", (4,))):
        for us in LENGTHS:
            for connections in many:
                yield kind, us, connections


def short_cases():
    yield from (("sync", 300, 4), ("async", 5000, 1), ("sync", 8000, 16), ("tick", 5000, 8), ("tick", 1000, 8), ("thread", 4000, 4))


def summarize(rows, engine):
    """Judges all cases of an engine together; returns False if they are too far off."""
    mine = [row for row in rows if row["engine"] == engine]
    samples = max(1, sum(row["samples"] for row in mine))
    off = sum(row["off"] * row["samples"] for row in mine) / samples
    allowed = POINTS + SIGMAS * chance(samples, 70) + statistics.mean(row["late"] for row in mine) / 2
    worst = max(mine, key=lambda row: abs(row["off"]))
    rates = [row["rate"] for row in mine]
    print(f"  {engine}: {len(mine)} cases, {sum(not row['good'] for row in mine)} off by more than {POINTS:.0f} points and "
          f"{SIGMAS:.0f} sigma; off {off:+.2f} on the average, {statistics.mean(abs(row['off']) for row in mine):.2f} as a distance, "
          f"{worst['off']:+.1f} at worst ({worst['kind']}, {worst['us'] / 1000} ms); "
          f"samples {100 * min(rates):.0f} to {100 * max(rates):.0f} % of those asked for")
    return abs(off) <= allowed and all(row["good"] for row in mine)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("app")
    parser.add_argument("--long", action="store_true", help="all cases, two rates")
    parser.add_argument("--engines", default="", help="of clrsnap, with commas; unless told the default one; perf-tool: perf record")
    parser.add_argument("--kinds", default="", help="only these kinds of requests")
    parser.add_argument("--seconds", type=float, default=4, help="of each recording")
    parser.add_argument("--hz", type=int)
    parser.add_argument("--json")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    engines = options.engines.split(",") if options.engines else [None]
    cases = [case for case in (long_cases() if options.long else short_cases()) if not options.kinds or case[0] in options.kinds.split(",")]
    rates = [options.hz] if options.hz else [499, 1000] if options.long else [999]
    print("  request      conn.   engine    asked      truth   by time by count    off samples  of asked  CPU time")
    rows = []
    server = Server(options.app)
    try:
        with tempfile.TemporaryDirectory() as work:
            for case in cases:
                for hz in rates:
                    for engine in engines:
                        # Other load may leave a case too few samples to prove anything, and chance puts one of many cases
                        # just out of bounds; it is then repeated, for longer, with the narrower bounds of that.
                        for seconds in (options.seconds, options.seconds * 5, options.seconds * 20):
                            row = measure(options, server, case, engine, hz, seconds, work)
                            if row["good"]:
                                break
                        rows.append(row)
                        print_row(rows[-1])
    finally:
        if server.process.poll() is None:
            server.stop()
    good = [summarize(rows, engine or "default") for engine in engines]
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)
    judged = [ok for ok, engine in zip(good, engines) if engine != "perf-tool"]
    return 0 if all(judged) else 1


if __name__ == "__main__":
    sys.exit(main())
