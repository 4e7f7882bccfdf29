#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""modes.py BUILD APP [--json FILE] [--turns N] [--seconds N] [--only ENDPOINT:MODE,...]: what each mode of recording costs a
Kestrel server (tests/oracle/Web), per endpoint. One server per case, left alone and recorded by turns while wrk asks it; each turn
that is recorded is compared with the two around it. Requests a second are wrk's, CPU time per request is that of the server's
process; the median over the turns, and how much turns without a recording differ among each other: chance."""
import argparse
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import cost

CASES = [("plain", "cpu"), ("cpu", "cpu"), ("alloc", "alloc"), ("alloc", "gc"), ("throw", "exception"), ("lock", "lock"),
         ("wait", "wait"), ("plain", "cpu,alloc,lock,wait,exception,gc"), ("alloc", "cpu,alloc,lock,wait,exception,gc")]


def load(server, endpoint, seconds):
    before = cost.cpu_seconds(server.process.pid)
    out = subprocess.run(["wrk", "-t1", "-c8", f"-d{seconds}s", f"{server.url}/{endpoint}"], check=True, text=True,
                         capture_output=True).stdout
    if "Non-2xx" in out:
        raise SystemExit(f"failed requests:\n{out}")
    requests = float(re.search(r"Requests/sec: +([\d.]+)", out)[1])
    return requests, (cost.cpu_seconds(server.process.pid) - before) / (requests * seconds) * 1e6


def measure(build, app, endpoint, mode, seconds, turns):
    server = cost.Server(app)
    load(server, endpoint, 2 * seconds)
    results, said = [], ""
    with tempfile.TemporaryDirectory() as work:
        for turn in range(2 * turns + 1):
            recorder = None
            if turn % 2 == 1:
                recorder = subprocess.Popen([f"{build}/bin/clrsnap", "record", "--mode", mode, "-o", f"{work}/out.clrsnap",
                                             str(server.process.pid)], stderr=subprocess.PIPE, text=True)
                time.sleep(1)  # the attach itself is not meant
            results.append(load(server, endpoint, seconds))
            if recorder is not None:
                recorder.send_signal(signal.SIGINT)
                said = recorder.communicate(timeout=60)[1]
                if recorder.returncode != 0:
                    raise SystemExit(f"no recording: {said}")
    server.stop()

    def differs(what, distance):
        return [100 * (results[i][what] / ((results[i - distance][what] + results[i + distance][what]) / 2) - 1)
                for i in range(distance, len(results) - distance, 2)]

    held = re.search(r"threads held p50 ([\d.]+) us", said)
    return {"endpoint": endpoint, "mode": mode, "requests_per_s": statistics.median(r for r, _ in results[::2]),
            "us_per_request": statistics.median(us for _, us in results[::2]),
            "requests": statistics.median(differs(0, 1)), "cpu": statistics.median(differs(1, 1)),
            "chance": max(map(abs, differs(0, 2)), default=0.0), "held_p50_us": float(held[1]) if held else None}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("build")
    parser.add_argument("app")
    parser.add_argument("--json")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--only", help="ENDPOINT:MODE, several with blanks between them")
    options = parser.parse_args()
    cases = CASES if options.only is None else [tuple(one.split(":")) for one in options.only.split()]
    print(f"{'endpoint':9}{'mode':36}{'requests/s':>11}{'us/request':>11}  recorded: requests     CPU  chance  held p50 us")
    table = []
    for endpoint, mode in cases:
        row = measure(options.build, options.app, endpoint, mode, options.seconds, options.turns)
        table.append(row)
        print(f"{endpoint:9}{mode:36}{row['requests_per_s']:11.0f}{row['us_per_request']:11.1f}{row['requests']:+19.1f} %"
              f"{row['cpu']:+7.1f} %{row['chance']:6.1f} %{row['held_p50_us'] or 0:11.1f}", flush=True)
    if options.json:
        with open(options.json, "w") as out:
            json.dump(table, out)


if __name__ == "__main__":
    sys.exit(main())
