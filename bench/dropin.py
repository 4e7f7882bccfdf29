#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dropin.py BUILD APP [--json FILE]: what a profiler of the usual pattern (SuspendRuntime, EnumThreads,
DoStackSnapshot for each, ResumeRuntime; every 10 ms) does to a program and what it sees: plainly, through the
drop-in, and with CLRSNAP_ELIDE_SUSPEND=1. The program is a loop on one thread that notes when it stood still;
a round's pause is how much of that lies between the round's beginning and 100 us after its end."""
import json
import os
import subprocess
import sys
import tempfile

CLSID = "{6D2B1C44-9A57-4F0E-B318-5C7E20D941AF}"
LATE_NS = 100_000  # the last thread is let go after ResumeRuntime has come back


def run(build, app, variables):
    with tempfile.TemporaryDirectory() as work:
        out, gaps = os.path.join(work, "notes"), os.path.join(work, "gaps")
        guest = os.path.join(build, "lib/libguest.so")
        environment = dict(os.environ, CORECLR_ENABLE_PROFILING="1", CORECLR_PROFILER=CLSID, GUEST_MODE="pause",
                           GUEST_OUT=out, GUEST_GAPS=gaps, GUEST_LIBRARY=guest, **variables(build, guest))
        subprocess.run(["dotnet", app, "busy"], env=environment, check=True, timeout=120)
        with open(out) as notes, open(gaps) as file:
            return [line.split("\t", 1)[1].split() for line in notes if line.startswith("say")], [
                tuple(map(int, line.split())) for line in file]


def pauses(rounds, gaps):
    """ns per round, of gaps that are in order, as the rounds are"""
    answer, first = [], 0
    for begin, end in rounds:
        while first < len(gaps) and gaps[first][1] < begin:
            first += 1
        at, total = first, 0
        while at < len(gaps) and gaps[at][0] < end + LATE_NS:
            total += min(gaps[at][1], end + LATE_NS) - max(gaps[at][0], begin)
            at += 1
        answer.append(total)
    return sorted(answer)


def percentile(values, share):
    return values[min(len(values) - 1, int(share * len(values)))]


def measure(build, app, name, variables):
    notes, gaps = run(build, app, variables)
    rounds = [(int(line[1]), int(line[2])) for line in notes if line[0] == "round"]
    leaves = {line[2]: int(line[1]) for line in notes if line[0] == "leaf"}
    walks = next(line for line in notes if line[0] == "walks")
    still = pauses(rounds, gaps)
    seen = sum(leaves.values())
    work = sum(count for leaf, count in leaves.items() if leaf.endswith("Busy.Work"))
    others = sorted(((n, leaf) for leaf, n in leaves.items() if not leaf.endswith("Busy.Work")), reverse=True)
    return {"how": name, "rounds": len(rounds), "walks": int(walks[1]), "failed": int(walks[3]),
            "work_share": work / seen if seen else 0, "other": others[0][1] if others else "",
            "still_p50_us": percentile(still, 0.5) / 1000, "still_p99_us": percentile(still, 0.99) / 1000}


def main():
    build, app = sys.argv[1:3]
    plainly = lambda build, guest: {"CORECLR_PROFILER_PATH": guest}
    ours = lambda build, guest: {"CORECLR_PROFILER_PATH": os.path.join(build, "lib/libclrsnap.so"),
                                 "CLRSNAP_PROFILER_PATH": guest}
    elided = lambda build, guest: dict(ours(build, guest), CLRSNAP_ELIDE_SUSPEND="1")
    print("A profiler that stops the runtime for each snapshot (every 10 ms), and a loop that spends its time in Work:")
    print(f"{'':28}{'leaf is Work':>13}{'stood still p50':>17}{'p99':>11}{'walks':>8}{'no frames':>11}  else, mostly")
    results = []
    for name, variables in (("plainly", plainly), ("through the drop-in", ours),
                            ("CLRSNAP_ELIDE_SUSPEND=1", elided)):
        r = measure(build, app, name, variables)
        results.append(r)
        print(f"  {name:26}{r['work_share']:12.1%}{r['still_p50_us']:14.1f} us{r['still_p99_us']:8.1f} us"
              f"{r['walks']:8}{r['failed']:11}  {r['other']}")
    if len(sys.argv) > 4:
        with open(sys.argv[4], "w") as file:
            json.dump(results, file)


main()
