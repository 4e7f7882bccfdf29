#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""callers.py FILE.clrsnap LEAST: is each sample of tests/apps/Callers on the thread that it was taken on? A thread
"native-3" runs Kinds.Kind3. LEAST: so many samples of each mode must be there to say so."""
import struct
import sys

from recfile import Tree, records, samples, text

MODES = ["", "cpu", "wall", "alloc", "lock", "exception", "gc", "wait", "async", "holders"]

tree, methods, nodes = Tree(), {}, []
for kind, payload in records(open(sys.argv[1], "rb").read()):
    tree.take(kind, payload)
    if kind == 5:
        number = struct.unpack_from("<I", payload)[0]
        at, strings = 12, []
        for _ in range(5):
            string, at = text(payload, at)
            strings.append(string)
        if strings[1] == "Callers" and strings[2] == "Kinds" and strings[3].startswith("Kind"):
            methods[number] = strings[3][4:]
    elif kind == 10:
        nodes += [node for _, _, node, _ in samples(payload)]

right, wrong, nameless, shown = {}, {}, 0, 0
for node in nodes:
    path, mode, thread = tree.path(node)
    kinds = {methods[frame >> 32] for frame in path if frame >> 62 == 0 and frame >> 32 in methods}
    if not kinds:
        continue
    mode = MODES[mode]
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
