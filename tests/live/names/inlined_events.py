#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""inlined_events.py TRACE RECORDING: compares the inlined methods of a recording with the runtime's own event
JittedMethodRichDebugInfo in an EventPipe trace of the same run: the trees and mappings must be equal."""
import struct
import sys

NODE, MAPPING = struct.Struct("<QIII"), struct.Struct("<IIIB")
LAST_CHUNK = b"\x00\x00\x00\x80"  # the first is the last, too: all that the tests' methods need


def pruned(parents, places):
    """Without the nodes that no code has come from."""
    used = {0}
    for _, node, _ in places:
        while node not in used:
            used.add(node)
            node = parents[node]
    number = {node: i for i, node in enumerate(sorted(used))}
    return (tuple(number[parents[node]] for node in sorted(used)),
            tuple((native, number[node], il) for native, node, il in places))


def payload(trace, at):
    """The tree and the mappings of the event whose size is at `at`; None: it is none."""
    if at + 12 > len(trace):
        return None
    size, nodes, mappings = struct.unpack_from("<III", trace, at)
    if size != 8 + nodes * NODE.size + mappings * MAPPING.size or nodes == 0 or at + 4 + size > len(trace):
        return None
    tree = [NODE.unpack_from(trace, at + 12 + i * NODE.size) for i in range(nodes)]
    parents = [0] * nodes
    for i, (_, _, child, _) in enumerate(tree):
        while child != 0:
            parents[child] = i
            child = tree[child][3]
    places = {}  # of several for one instruction the last one counts
    for i in range(mappings):
        il, node, native, _ = MAPPING.unpack_from(trace, at + 12 + nodes * NODE.size + i * MAPPING.size)
        places[native] = (native, node, il)
    return pruned(parents, list(places.values()))


def events(trace):
    found, at = set(), trace.find(LAST_CHUNK)
    while at >= 0:
        event = payload(trace, at + 4)
        if event is not None:
            found.add(event)
        at = trace.find(LAST_CHUNK, at + 1)
    return found


def records(data):
    at = struct.unpack_from("<8sII", data)[2]
    while at + 16 <= len(data):
        size, _, kind = struct.unpack_from("<IIH", data, at)
        if kind == 18:
            _, nodes, mappings, _ = struct.unpack_from("<IIII", data, at + 16)
            first = at + 32 + 12 * nodes
            yield (tuple(struct.unpack_from("<III", data, at + 32 + 12 * i)[1] for i in range(nodes)),
                   tuple(struct.unpack_from("<III", data, first + 12 * i) for i in range(mappings)))
        at += size


with open(sys.argv[1], "rb") as file:
    told = events(file.read())
with open(sys.argv[2], "rb") as file:
    read = list(records(file.read()))
wrong = [r for r in read if r not in told]
print(f"{len(read)} methods with something inlined, {len(wrong)} of them in none of {len(told)} events")
# The runtime compiles some methods before its session begins to listen.
sys.exit(1 if len(wrong) > len(read) / 10 or len(read) < 10 else 0)
