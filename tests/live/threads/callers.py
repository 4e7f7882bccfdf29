#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""callers.py FILE.clrsnap LEAST: is each sample of tests/apps/Callers on the thread that it was taken on? A thread
"native-3" runs Kinds.Kind3. LEAST: so many samples of each mode must be there to say so."""
import struct
import sys

from recfile import records, text

MODES = ["", "cpu", "wall", "alloc", "lock", "exception", "gc", "wait", "async", "holders"]

threads, methods, parents, frames, samples = {}, {}, [0], [0], []
for kind, payload in records(open(sys.argv[1], "rb").read()):
    if kind == 4:
        number, tid = struct.unpack_from("<II", payload)
        name = text(payload, 8)[0]
        if name:
            threads[number] = name
    elif kind == 5:
        number = struct.unpack_from("<I", payload)[0]
        at, strings = 12, []
        for _ in range(5):
            string, at = text(payload, at)
            strings.append(string)
        if strings[1] == "Callers" and strings[2] == "Kinds" and strings[3].startswith("Kind"):
            methods[number] = strings[3][4:]
    elif kind == 9:
        first, count = struct.unpack_from("<II", payload)
        assert first == len(parents)
        for i in range(count):
            parent, _, frame = struct.unpack_from("<IIQ", payload, 8 + 16 * i)
            parents.append(parent)
            frames.append(frame)
    elif kind == 10:
        (count,) = struct.unpack_from("<I", payload)
        for i in range(count):
            samples.append(struct.unpack_from("<QQIIII", payload, 8 + 32 * i)[2])

right, wrong, nameless, shown = {}, {}, 0, 0
for node in samples:
    kinds = set()
    while parents[node] != 0:
        if frames[node] >> 62 == 0 and frames[node] >> 32 in methods:
            kinds.add(methods[frames[node] >> 32])
        node = parents[node]
    if not kinds:
        continue
    mode, thread = MODES[frames[node] >> 32], threads.get(frames[node] & 0xFFFFFFFF, "")
    if not thread.startswith("native-"):
        nameless += 1
    elif {thread[7:]} == kinds:
        right[mode] = right.get(mode, 0) + 1
        continue
    wrong[mode] = wrong.get(mode, 0) + 1
    if shown < 5:
        print(f"{mode}: {sorted(kinds)} on {thread!r}")
        shown += 1

print(f"right {right}, wrong {wrong}, of them on threads without a name of the library's {nameless}")
few = [mode for mode in ("cpu", "wall", "alloc", "lock", "exception") if right.get(mode, 0) < int(sys.argv[2])]
if few:
    print(f"too few to say anything: {few}")
sys.exit(bool(wrong) or bool(few))
