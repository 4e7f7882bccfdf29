#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""starts.py RECORDING.json MODE...: compares a recording of tests/apps/Starts with what the program says itself
("truth MODE NUMBER" on standard input): nothing of a program that is recorded from its start may be missing."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tools"))
import jsontree

METHODS = {"exception": "Throw", "alloc": "Allocate", "wait": "Wait", "cpu": "Spin", "lock": "Lock"}


def main():
    truth = {line.split()[1]: int(line.split()[2]) for line in sys.stdin if line.startswith("truth ")}
    modes = {mode["facts"]["mode"]: mode for mode in json.load(open(sys.argv[1]))["modes"]}
    wrong = False
    for name in sys.argv[2:]:
        mode, facts, slack = modes[name], modes[name]["facts"], 0
        method = METHODS.get(name)
        mine = [
            (n, weight) for path, n, weight in jsontree.stacks(mode)
            if any(frame.split(".lambda")[0] == f"Starts.Program.{method}" for frame in path)
        ]
        if name == "gc":
            found = facts.get("events", facts["samples"])
        elif name in ("wait", "lock"):
            found = sum(n for n, _ in mine)
        else:
            found = sum(weight for _, weight in mine)
        if name == "alloc":
            slack = truth[name] // 500  # the headers of the arrays, and what samples stand for
        if name == "cpu":
            slack = truth[name] // 5  # few samples
        good = abs(found - truth[name]) <= slack
        wrong |= not good
        print(f"{name:10} {found} (truly {truth[name]}){'' if good else ' WRONG'}")
    sys.exit(wrong)


main()
