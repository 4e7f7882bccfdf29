#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""masked.py perf|clock|wall start|attach FOLDER: is the time of the threads of tests/apps/Masked in x.clrsnap what they say (said), or what the
kernel says (before, after), as ratios? And does x.json name them?"""
import json
import re
import sys

from recfile import Tree, records, samples

CUT = 3  # a frame of this kind is in place of what is missing of a stack
what, start, folder = sys.argv[1], sys.argv[2] == "start", sys.argv[3]
column = 1 if what == "wall" else 0
least, most = (0.6, 1.5) if what == "clock" else (0.75, 1.2)  # on a loaded machine the clock engine has few scans


def clocks(name):
    return {m[1]: (int(m[2]), int(m[3])) for m in re.finditer(r"^(\S+) cpu (\d+) wall (\d+)$", open(f"{folder}/{name}").read(), re.M)}


def sums():
    """For each thread's name: its time with and without a stack, in ns, the latter of samples without any frames."""
    tree, found = Tree(), {}
    for kind, payload in records(open(f"{folder}/x.clrsnap", "rb").read()):
        tree.take(kind, payload)
        if kind == 10:
            for _, weight, node, _ in samples(payload):
                path, _, name = tree.path(node)
                one = found.setdefault(name, [0, 0, 0])
                one[len(path) == 1 and path[0] >> 62 == CUT] += weight
                one[2] = max(one[2], weight if len(path) > 1 else 0)
    return found


def expect(name, value, least, most):
    global wrong
    right = least <= value <= most
    wrong += not right
    print(f"{name}: {value:.3f}, expected {least} to {most}{'' if right else ': WRONG'}")


wrong, found = 0, sums()
for name in ["m-masked", "m-pulses", "m-free"] + (["n-masked"] if what != "wall" else []):
    found.setdefault(name, [0, 0, 0])
    print(name, "with stacks %.3f s, without %.3f s, one stack for at most %.3f s" % tuple(ns / 1e9 for ns in found[name]))
masked = ["m-masked"] + (["n-masked"] if what != "wall" else [])
if start:
    truth = clocks("said")
    for name in masked:
        expect(f"{name}, without stacks, of its time", found[name][1] / truth[name][column], least, most)
    expect("m-free, with stacks, of its time", found["m-free"][0] / truth["m-free"][column], least, most)
    if what != "wall":
        expect("m-pulses, without stacks, of its time", found["m-pulses"][1] / truth["blocked"][0], 0.6, most)
elif what == "wall":
    expect("m-masked, compared with m-free", found["m-masked"][1] / max(sum(found["m-free"][:2]), 1), 0.75, 1.1)
else:
    before, after = clocks("before"), clocks("after")
    for name in masked:  # the kernel's time is from before the attach until after it
        expect(f"{name}, without stacks, of what the kernel says", found[name][1] / (after[name][0] - before[name][0]), 0.35, most)
for name in masked:
    expect(f"{name}, with stacks, of its time", found[name][0] / max(sum(found[name][:2]), 1), 0, 0.15)
expect("m-pulses, one stack, of its time", found["m-pulses"][2] / max(sum(found["m-pulses"][:2]), 1), 0, 0.15)

facts = json.load(open(f"{folder}/x.json"))["modes"][0]["facts"]
named = dict(facts.get("blocked", {}).get("named", []))
for name in masked:
    expect(f"{name}, in the JSON", named.get(name, 0) / max(found[name][1], 1), 0.99, 1.01)
# No other reason is given for that time.
if what == "wall":
    expect("time that is said not to be covered, of that", facts["uncoveredNs"] / facts["blocked"]["weight"], 0, 0.25)
else:
    expect("what samples stand for, of the CPU time", facts["weight"] / facts["engine"]["cpuNs"], least, most)
sys.exit(wrong != 0)
