#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""modes.py FORMAT PREFIX [WITHOUT...]: compares files of a recording of tests/apps/Modes with its truth ("truth MODE NAME AMOUNT"
lines on standard input). Shares of a mode must be right to within 2 points, and amounts that are not estimated to
within 2 % plus the "slack MODE NANOSECONDS" that a busy machine has put between two clocks. FORMAT collapsed reads
PREFIX.MODE.folded; the other formats have all modes in one file. pprof: PREFIX.pb.gz, through `go tool pprof`;
speedscope: PREFIX.speedscope.json; chromium: PREFIX.trace.json; otlp: PREFIX.otlp, through tests/tools/otlp.py."""
import json
import os
import subprocess
import sys

VALUES = {"alloc": "alloc_space", "lock": "delay", "holders": "held", "wait": "wait", "exception": "exceptions", "gc": "gc"}


def stacks_collapsed(prefix, mode):
    for line in open(f"{prefix}.{mode}.folded"):
        stack, _, value = line.rpartition(" ")
        yield stack.split(";"), float(value)


def stacks_pprof(prefix, mode):
    unit = {"alloc": "B", "exception": "count"}.get(mode, "ns")
    command = ["go", "tool", "pprof", "-traces", f"-sample_index={VALUES[mode]}", f"-unit={unit}"]
    out = subprocess.run(command + [f"{prefix}.pb.gz"], capture_output=True, text=True, check=True).stdout
    for trace in out.split("-----------+-----")[1:]:
        lines = [line for line in trace.splitlines()[1:] if line.strip() and ":  " not in line[:14]]
        if not lines:
            continue
        value, leaf = lines[0].split(None, 1)
        number = float(value.rstrip("Bns"))
        yield [line.strip() for line in lines[:0:-1]] + [leaf.strip()], number


def stacks_speedscope(prefix, mode):
    data = json.load(open(f"{prefix}.speedscope.json"))
    names = [frame["name"] for frame in data["shared"]["frames"]]
    unit = {"alloc": "bytes", "exception": "none"}.get(mode, "nanoseconds")
    for profile in data["profiles"]:
        if not profile["name"].endswith(f"): {mode}"):
            continue
        assert profile["unit"] == unit and profile["endValue"] == sum(profile["weights"]), profile["name"]
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            yield [names[frame] for frame in stack], weight


def stacks_chromium(prefix, mode):
    ends = {}
    events = [e for e in json.load(open(f"{prefix}.trace.json"))["traceEvents"] if e.get("cat") == mode]
    for event in events:
        if event["ph"] == "e":
            ends[event["id"]] = event["ts"]
    for event in events:
        if event["ph"] == "e":
            continue
        assert event["ph"] == ("i" if mode in ("alloc", "exception") else "b"), event
        lasted = 1000 * (ends[event["id"]] - event["ts"]) if event["ph"] == "b" else 1
        yield event["args"]["stack"][::-1] + [event["name"]], event["args"].get("bytes", lasted)


def stacks_otlp(prefix, mode):
    reader = os.path.join(os.path.dirname(__file__), "..", "tools", "otlp.py")
    said = subprocess.run([sys.executable, reader, f"{prefix}.otlp"], capture_output=True, text=True, check=True).stdout
    current = None
    for line in said.splitlines():
        if line.startswith("profile "):
            current = line.split()[1]
        elif current == VALUES[mode] and "|" in line:
            _, stack, value = line.split("|")
            yield [frame.partition("@")[0] for frame in stack.split(";")], float(value)


def main():
    form, prefix, *without = sys.argv[1:]
    truth, ran, leaves, slack = {}, {}, {}, {"alloc": 0.0, "exception": 0.0}
    for line in sys.stdin:
        word, mode, *name, amount = line.split()
        if word == "truth":
            truth.setdefault(mode, {})[name[0]] = float(amount)
        elif word == "ran":
            ran[name[0]] = float(amount)
        elif word == "slack":
            slack[mode] = float(amount)
        elif word == "leaf":
            leaves[name[0]] = " ".join([*name[1:], amount])
    failed = len(truth) != 5 or len(leaves) != len(truth["wait"])

    def check(mode, name, is_, should, tolerance, unit):
        nonlocal failed
        good = abs(is_ - should) <= tolerance
        failed |= not good
        print(f"{form:9} {mode:9} {name:32} {is_:14.2f} (truly {should:.2f}) {unit}{'' if good else ' WRONG'}")

    def stacks_of(mode):
        return globals()["stacks_" + form](prefix, mode)

    for mode in ("alloc", "lock", "exception"):
        if mode in without:
            continue
        stacks = list(stacks_of(mode))
        if mode == "lock":  # where processors are short, threads of the framework wait for each other's locks, too
            stacks = [(stack, v) for stack, v in stacks if any(frame in truth[mode] for frame in stack)]
            owners = {stack[-1] for stack, v in stacks if v > 0}
            if owners != {"[System.Object held by Main]"}:
                failed = True
                print(f"{form:9} lock      the owners are {owners}")
        whole = sum(v for _, v in stacks)
        true_whole = sum(truth[mode].values())
        # An allocation whose walk was put off, as on a machine that is busy elsewhere, is in no method.
        walked = sum(v for stack, v in stacks if not any("cut: put-off" in frame for frame in stack)) if mode == "alloc" else whole
        if walked < 0.8 * whole:
            failed = True
            print(f"{form:9} {mode:9} {100 * walked / whole:.1f} % were walked")
        for name, amount in truth[mode].items():
            has = sum(v for stack, v in stacks if name in stack)
            points = 2 + 100 * slack[mode] / true_whole
            check(mode, name, 100 * has / walked, 100 * amount / true_whole, points, "%")
            if mode != "alloc":
                check(mode, name, has, amount, 0.02 * amount + slack[mode], "")
        off = (0.02 if mode != "alloc" else 0.04) * true_whole + slack[mode]
        check(mode, "all", whole, true_whole, off, "")
    # Of the program's own threads, only the one that holds these locks is in holders mode, at the place where it does.
    if form == "collapsed" and "holders" not in without:
        stacks = [(stack, v) for stack, v in stacks_of("holders") if any(frame.startswith("Modes.Program.") for frame in stack)]
        whole = sum(v for stack, v in stacks if stack[-1] == "[holds System.Object]")
        held = sum(v for stack, v in stacks if stack[-1] == "[holds System.Object]" and "Modes.Program.Contend" in stack)
        check("holders", "Modes.Program.Contend", 100 * held / (whole or 1), 100, 10, "%")
    # Amounts, not shares, because the program waits elsewhere, too. A wait spins before it blocks. The spinning is only
    # in the program's own time, and takes long when other programs need the processors. Where it took a fifth of the time,
    # two of the six waits may have found their thread at once, and been held up elsewhere.
    stacks = list(stacks_of("wait"))
    for name, amount in truth["wait"].items():
        mine = [(stack, v) for stack, v in stacks if name in stack and v > 0]
        has = sum(v for _, v in mine)
        outside = ran[name] + (amount / 3 if ran[name] > amount / 5 else 0)
        check("wait", name, has, amount, 0.02 * amount + (0 if has > amount else outside), "ns")
        wrong = {stack[-1] for stack, _ in mine} - {leaves[name]}
        if wrong:
            failed = True
            print(f"{form:9} wait      {name} waits for {leaves[name]}, not {wrong}")
    if not any(stack[-1] == "ManualResetEventSlim" and v > 1e9 for stack, v in stacks if "Modes.Waits.Forever" in stack):
        failed = True
        print(f"{form:9} the wait that does not end is not there")
    # The program reads the runtime's total of the pauses after they are over.
    stacks = list(globals()["stacks_" + form](prefix, "gc"))
    # The recorded pauses begin a little earlier and end a little later than those that the runtime counts.
    pauses = truth["gc"]["pauses"]
    allowed = 0.02 * pauses + 500_000 * truth["gc"]["collections"] + slack["gc"]
    check("gc", "pauses", sum(v for _, v in stacks), pauses, allowed, "ns")
    sys.exit(failed)


main()
