# SPDX-License-Identifier: MIT
"""The records of a recording's file (docs/recording-format.md)."""
import struct


def text(data, at):
    (size,) = struct.unpack_from("<H", data, at)
    return data[at + 2 : at + 2 + size].decode(), at + 2 + size


class Tree:
    """Of a recording: the threads' names by number, and the call tree, by node. A child of node 0 is a mode's and a thread's."""

    def __init__(self):
        self.threads, self.parents, self.frames = {}, [0], [0]

    def take(self, kind, payload):
        """Adds what a record says, if it is one of a thread or of nodes."""
        if kind == 4:
            number, _ = struct.unpack_from("<II", payload)
            self.threads[number] = text(payload, 8)[0] or self.threads.get(number, "")
        elif kind == 9:
            first, count = struct.unpack_from("<II", payload)
            assert first == len(self.parents)
            for parent, _, frame in struct.iter_unpack("<IIQ", payload[8 : 8 + 16 * count]):
                self.parents.append(parent)
                self.frames.append(frame)

    def path(self, node):
        """The frames of the stack, the innermost first; the mode; the thread's name."""
        path = []
        while self.parents[node] != 0:
            path.append(self.frames[node])
            node = self.parents[node]
        return path, self.frames[node] >> 32, self.threads.get(self.frames[node] & 0xFFFFFFFF, "")


def samples(payload):
    """Of a record of samples: time, weight, node and for how long the thread was held, in ns."""
    for time, weight, node, held, _, _ in struct.iter_unpack("<QQIIII", payload[8 : 8 + 32 * struct.unpack_from("<I", payload)[0]]):
        yield time, weight, node, held


def records(data):
    (at,) = struct.unpack_from("<I", data, 12)
    while at + 16 <= len(data):
        size, _, kind = struct.unpack_from("<IIH", data, at)
        yield kind, data[at + 16 : at + size]
        at += size
