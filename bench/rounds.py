#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""rounds.py BUILD APP [SECONDS [MIX...]]: how long a round of a profiler of the usual pattern (SuspendRuntime, EnumThreads,
DoStackSnapshot for each, ResumeRuntime; every 10 ms) takes, and how many threads the program can start meanwhile:
plainly, through the drop-in, and with CLRSNAP_ELIDE_SUSPEND=1, by turns, each a process of its own. A MIX is
SLEEPING,RUNNING,NAPPING,BREEDING: the number of threads of each kind (tests/apps/Guest/Mix.cs)."""
import os
import re
import statistics
import subprocess
import sys
import tempfile

CLSID = "{6D2B1C44-9A57-4F0E-B318-5C7E20D941AF}"
MIXES = ["10,0,0,0", "100,0,0,0", "1000,0,0,0", "0,10,0,0", "0,100,0,0", "50,0,50,0", "40,20,40,0", "0,0,0,4", "100,0,0,4"]
TURNS = 3


def run(build, app, seconds, mix, variables):
    guest = os.path.join(build, "lib/libguest.so")
    library = os.path.join(build, "lib/libclrsnap.so") if "ours" in variables else guest
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "notes")
        environment = dict(os.environ, CORECLR_ENABLE_PROFILING="1", CORECLR_PROFILER=CLSID, GUEST_LIBRARY=guest,
                           CORECLR_PROFILER_PATH=library, CLRSNAP_PROFILER_PATH=guest, GUEST_MODE="rounds",
                           GUEST_SECONDS=str(seconds), GUEST_OUT=out, **{k: v for k, v in variables.items() if k != "ours"})
        done = subprocess.run(["dotnet", app, "mix", *mix.split(",")], env=environment, check=True, timeout=200,
                              capture_output=True, text=True)
        text = open(out).read() + done.stdout
    number = lambda name: float(re.search(rf"\b{name} (\d+(\.\d+)?)", text)[1])
    answers = dict(re.findall(r"answer (0x\w+) (\d+)", text))
    return {"rounds": number("rounds"), "p50": number("p50") / 1000, "p90": number("p90") / 1000, "max": number("max") / 1000,
            "threads": number("threads/s"), "naps": number("naps/s"), "answers": answers,
            "frames": number("frames") / max(1, number("walks")), "walks": number("walks")}


WAYS = {"no rounds": {"GUEST_WALK": "0"}, "plainly": {}, "drop-in": {"ours": "1"},
        "drop-in, held": {"ours": "1", "CLRSNAP_HOLD": "1"},
        "elided": {"ours": "1", "CLRSNAP_ELIDE_SUSPEND": "1"}}


def main():
    build, app = sys.argv[1:3]
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    ways = os.environ.get("WAYS", "plainly;drop-in;elided").split(";")
    for mix in sys.argv[4:] or MIXES:
        results = {way: [] for way in ways}
        for _ in range(int(os.environ.get("TURNS", TURNS))):
            for way in ways:
                results[way].append(run(build, app, seconds, mix, WAYS[way]))
        print(f"{mix:16}{'round p50 us':>14}{'p90':>10}{'max':>12}{'rounds':>8}{'threads/s':>11}{'naps/s':>9}{'frames':>8}  answers")
        for way, runs in results.items():
            middle = lambda key: statistics.median(one[key] for one in runs)
            print(f"  {way:14}{middle('p50'):14.1f}{middle('p90'):10.1f}{middle('max'):12.1f}{middle('rounds'):8.0f}"
                  f"{middle('threads'):11.0f}{middle('naps'):9.0f}{middle('frames'):8.1f}  {runs[0]['answers']}", flush=True)


main()
