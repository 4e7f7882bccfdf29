#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torture.py BUILD MATERIAL [--minutes N] [--seed S] [--seconds T] [HAZARD...]: programs that are hard to record, at
10 kHz, by all engines, from their start and by attach. Each is then run alone: its result and its exit code must be
the same. Runs each hazard once, or again and again for N minutes. A failure prints the command that repeats it, and its logs
stay in BUILD/torture."""
import argparse
import random
import shutil
import sys
import time

import beside
import hazards
import kills
from trial import Failure, Trial

KINDS = {**{name: Trial for name in hazards.HAZARDS}, **beside.KINDS, **kills.KINDS}


def parse():
    parser = argparse.ArgumentParser(usage="./dev torture [--minutes N] [--seed S] [HAZARD...]",
                                     epilog="hazards: " + " ".join(KINDS))
    parser.add_argument("build")
    parser.add_argument("material")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seconds", type=float, help="of each program's rounds (drawn)")
    parser.add_argument("hazards", nargs="*", metavar="HAZARD")
    args = parser.parse_intermixed_args()
    for name in args.hazards:
        if name not in KINDS:
            parser.error(f"there is no hazard '{name}'")
    return args


def one(args, name, seed):
    """True: it went well."""
    work = f"{args.build}/torture/{name}-{seed}"
    shutil.rmtree(work, ignore_errors=True)
    trial = KINDS[name](args.build, args.material, name, seed, args.seconds, work)
    try:
        print(f"{name}, seed {seed}: {trial.run()}", flush=True)
        shutil.rmtree(work, ignore_errors=True)
        return True
    except Failure as failure:
        seconds = f" --seconds {args.seconds:g}" if args.seconds else ""
        text = (f"FAIL: {name}: {failure}\n  {trial.how}: " + "\n  ".join(trial.commands[-3:]) +
                f"\n  again: ./dev torture --seed {seed}{seconds} {name}\n  logs: {work}\n")
        with open(f"{work}/failure", "w", encoding="utf-8") as file:
            file.write(text)
        print(text, end="", flush=True)
        return False


def main():
    args = parse()
    if not shutil.which("dotnet"):
        print("skipped: there is no dotnet command")
        return 77
    seed = args.seed if args.seed is not None else random.randrange(1, 1 << 30)
    names, failed, count, begun = args.hazards or list(KINDS), 0, 0, time.monotonic()
    while True:
        for name in names:
            if args.minutes and time.monotonic() - begun > args.minutes * 60:
                break
            failed += not one(args, name, seed)
            count += 1
        seed += 1
        if not args.minutes or time.monotonic() - begun > args.minutes * 60:
            break
    print(f"{count} programs in {(time.monotonic() - begun) / 60:.1f} minutes, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
