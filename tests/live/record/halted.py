#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""halted.py FILE.clrsnap LEAST MOST: do the samples of mode wall stand for the time between them, except for one stop of LEAST to
MOST nanoseconds (0 0: there was none) that the recording names?"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "threads"))
from recfile import records, text

WALL = 2
THREADS = ("Hot worker", "Sleeper")
least, most = int(sys.argv[2]), int(sys.argv[3])
names, parents, frames, samples, halted = {}, [0], [0], {}, 0
for kind, payload in records(open(sys.argv[1], "rb").read()):
    if kind == 4:
        number, _ = struct.unpack_from("<II", payload)
        names[number] = text(payload, 8)[0] or names.get(number, "")
    elif kind == 9:
        for parent, _, frame in struct.iter_unpack("<IIQ", payload[8 : 8 + 16 * struct.unpack_from("<II", payload)[1]]):
            parents.append(parent)
            frames.append(frame)
    elif kind == 10:
        for time, weight, node, _, _, _ in struct.iter_unpack("<QQIIII", payload[8 : 8 + 32 * struct.unpack_from("<I", payload)[0]]):
            while parents[node] != 0:
                node = parents[node]
            if frames[node] >> 32 == WALL:
                samples.setdefault(names.get(frames[node] & 0xFFFFFFFF, ""), []).append((time, weight))
    elif kind == 33:
        (halted,) = struct.unpack_from("<Q", payload)

errors = []
# What the program's threads, and the recorder's, have waited for a processor beside the stop is not part of it.
if not 0.7 * least <= halted <= 1.02 * most:
    errors.append(f"stopped for {least / 1e9:.2f} to {most / 1e9:.2f} s, recorded {halted / 1e9:.2f} s")
for name in THREADS:
    times = sorted(samples.get(name, []))
    if len(times) < 10:
        sys.exit(f"{name}: {len(times)} samples")
    passed = times[-1][0] - times[0][0] + times[0][1]
    stood = sum(weight for _, weight in times)
    print(f"{name}: {stood / 1e9:.3f} s of {passed / 1e9:.3f} s, without {halted / 1e9:.3f} s; at most {max(w for _, w in times) / 1e9:.3f} s")
    if abs(stood + halted - passed) > 0.01 * passed:
        errors.append(f"{name}: samples stand for {stood / 1e9:.2f} s of {(passed - halted) / 1e9:.2f} s")
sys.exit("\n".join(errors) or 0)
