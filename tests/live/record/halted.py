#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""halted.py FILE.clrsnap LEAST MOST: do the samples of wall mode stand for the time between them, except for one stop of LEAST to
MOST nanoseconds (0 0: there was none) that the recording names?"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "threads"))
from recfile import Tree, records, samples

WALL = 2
THREADS = ("Hot worker", "Sleeper")
least, most = int(sys.argv[2]), int(sys.argv[3])
tree, found, halted = Tree(), {}, 0
for kind, payload in records(open(sys.argv[1], "rb").read()):
    tree.take(kind, payload)
    if kind == 10:
        for time, weight, node, _ in samples(payload):
            _, mode, name = tree.path(node)
            if mode == WALL:
                found.setdefault(name, []).append((time, weight))
    elif kind == 33:
        (halted,) = struct.unpack_from("<Q", payload)

errors = []
# What the program's threads, and the recorder's, have waited for a processor beside the stop is not part of it.
if not 0.7 * least <= halted <= 1.02 * most:
    errors.append(f"stopped for {least / 1e9:.2f} to {most / 1e9:.2f} s, recorded {halted / 1e9:.2f} s")
for name in THREADS:
    times = sorted(found.get(name, []))
    if len(times) < 10:
        sys.exit(f"{name}: {len(times)} samples")
    passed = times[-1][0] - times[0][0] + times[0][1]
    stood = sum(weight for _, weight in times)
    print(f"{name}: {stood / 1e9:.3f} s of {passed / 1e9:.3f} s, without {halted / 1e9:.3f} s; at most {max(w for _, w in times) / 1e9:.3f} s")
    # The stop was measured by the agent's own thread; a busy machine stops and resumes others at other moments.
    if abs(stood + halted - passed) > 0.01 * passed + 0.05 * halted:
        errors.append(f"{name}: samples stand for {stood / 1e9:.2f} s of {(passed - halted) / 1e9:.2f} s")
sys.exit("\n".join(errors) or 0)
