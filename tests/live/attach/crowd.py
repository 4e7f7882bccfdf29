#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""crowd.py FILE COUNT: checks a recording of tests/apps/Proofs/Crowd.cs in CPU and wall mode, as JSON: COUNT threads
that wait in Waiting all the time, and one that burns CPU time in Burning, in both modes."""
import json
import sys


WANTED = {"Proofs.Crowd.Waiting", "Proofs.Crowd.Burning"}


def times_by_thread(mode):
    """Microseconds by thread, and by which of the methods is on the stack; "": neither."""
    names = [mode["strings"][i] for i in mode["frames"][::3]]
    thread, inside, sums = [], [], {}
    for i, back in enumerate(mode["parent"]):
        frame = mode["frame"][i]
        root = back > i
        thread.append(frame if root else thread[i - back])
        inside.append(frozenset() if root else inside[i - back] | {names[frame]} & WANTED)
        own = sums.setdefault(thread[i], {})
        for name in inside[i] or {""}:
            own[name] = own.get(name, 0) + mode["selfUs"][i]
    return sums


data = json.load(open(sys.argv[1]))
count = int(sys.argv[2])
modes = {mode["facts"]["mode"]: mode for mode in data["modes"]}
failures = []


def check(what, ok):
    print(("ok: " if ok else "FAIL: ") + what)
    if not ok:
        failures.append(what)


wall = times_by_thread(modes["wall"])
length = modes["wall"]["facts"]["durationMs"] * 1000
waiting = [own for own in wall.values() if "Proofs.Crowd.Waiting" in own]
check(f"{len(waiting)} threads wait", len(waiting) == count)
longest = max(sum(own.values()) for own in wall.values())
check(f"no thread has more time than there was: {longest / length:.3f}", longest <= length * 1.05)
mean = sum(own["Proofs.Crowd.Waiting"] for own in waiting) / len(waiting)
check(f"they wait all the time: {mean / length:.3f}", mean >= length * 0.7)
for name, mode in modes.items():
    burning = [own for own in times_by_thread(mode).values() if "Proofs.Crowd.Burning" in own]
    check(f"{name}: one burns", len(burning) == 1)
    if burning:
        share = burning[0]["Proofs.Crowd.Burning"] / sum(burning[0].values())
        check(f"{name}: in its loop {share:.3f}", share >= 0.95)
sys.exit(1 if failures else 0)
