#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""against.py BUILD TREE ROUNDS: runs the benchmarks of this tree's BUILD and of another revision's work TREE by turns, ROUNDS times,
and once more with BUILD alone; each tree runs its own. Prints, for each number that both have, the ratio of this tree's median
to the other's (below 1: this tree is faster). By chance: by how much two runs of the same build differ, the largest of all such pairs;
a ratio within that is noise."""
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

MEASURED = re.compile(r"(ns|us|_per_walk|p50|p99|p999)$")
NAMES = ("program", "mode", "name", "walker", "peer", "scene", "depth", "methods", "how", "what")


def numbers(value, path=""):
    """Yields (where, number) for each time and each ratio of times."""
    if isinstance(value, dict):
        label = " ".join(str(value[name]) for name in NAMES if name in value)
        path = f"{path} {label}".strip()
        for key, inner in value.items():
            if key not in NAMES:
                yield from numbers(inner, f"{path} {key}".strip())
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from numbers(inner, path if isinstance(inner, dict) else f"{path} {i}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 and MEASURED.search(path):
        yield path, float(value)


def run(tree, build, work):
    path = os.path.join(work, "numbers.json")
    subprocess.run([os.path.join(tree, "bench", "run"), build, path], check=True, stdout=subprocess.DEVNULL)
    with open(path) as file:
        return dict(numbers(json.load(file)))


def chance(runs):
    """The largest factor between two runs of one build."""
    return max((max(a, b) / min(a, b) for a, b in itertools.combinations(runs, 2)), default=float("inf"))


def compare(ours, theirs):
    """Rows (where, ratio, chance) of what both have, the clearest differences first."""
    rows = []
    for where in ours[0]:
        mine, other = [r[where] for r in ours if where in r], [r[where] for r in theirs if where in r]
        if mine and other:
            rows.append((where, statistics.median(mine) / statistics.median(other), max(chance(mine), chance(other) if other[1:] else 1)))
    return sorted(rows, key=lambda row: min(row[1], 1 / row[1]) * row[2])


def main():
    build, tree, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as work:
        for i in range(rounds):
            ours.append(run(here, build, work))
            theirs.append(run(tree, os.path.join(tree, "build"), work))
            print(f"round {i + 1} of {rounds}", file=sys.stderr, flush=True)
        ours.append(run(here, build, work))
    print(f"{'ratio':>7} {'by chance':>10}")
    for where, ratio, by_chance in compare(ours, theirs):
        noise = max(ratio, 1 / ratio) <= by_chance
        print(f"{ratio:7.2f} {by_chance:10.2f}  {where}{', noise' if noise else ''}")


if __name__ == "__main__":
    sys.exit(main())
