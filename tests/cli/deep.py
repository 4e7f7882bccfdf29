# SPDX-License-Identifier: MIT
"""deep.py FILE NODES SAMPLES [MODE LETTERS]: writes a recording with one chain of NODES nodes, each of which has a sample,
and a second chain of the same thread. SAMPLES further samples lie in turn at the ends of the two chains. Such small files
describe stacks that are very large when they are written out. MODE is 1 (cpu) by default; in another mode (3 is alloc) the
further samples all lie at the end of the first chain. The methods' names are LETTERS letters longer."""
import struct
import sys
import zlib

META, FUNCTION, NODES, SAMPLES = 1, 5, 9, 10


def record(kind, payload):
    payload += bytes(-len(payload) % 8)
    tail = struct.pack("<HHI", kind, 0, 0) + payload
    return struct.pack("<II", 8 + len(tail), zlib.crc32(tail)) + tail


def text(value):
    return struct.pack("<H", len(value)) + value


def batches(kind, items, head):
    for first in range(0, len(items), 4000):
        part = items[first:first + 4000]
        yield record(kind, head(first, len(part)) + b"".join(part))


def write(name, mode, functions, tree, taken):
    """functions: their methods' names, numbered from 1. A node refers to function n by n << 32."""
    with open(name, "wb") as out:
        out.write(b"CLRSNAPF" + struct.pack("<II", 10, 16))
        out.write(record(META, struct.pack("<IIII", 0, 999, 0, 1 << mode) + text(b"deep") + text(b"0") + text(b"") + bytes(8)))
        for number, method in enumerate(functions, 1):
            names = b"".join(map(text, (b"a.dll", b"N", b"T", method, b"")))
            out.write(record(FUNCTION, struct.pack("<III", number, 0, 0) + names))
        for part in batches(NODES, tree, lambda first, count: struct.pack("<II", first + 1, count)):
            out.write(part)
        for part in batches(SAMPLES, taken, lambda first, count: struct.pack("<II", count, 0)):
            out.write(part)


def main():
    name, nodes, samples = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    mode, letters = (int(sys.argv[4]), int(sys.argv[5])) if len(sys.argv) > 4 else (1, 0)
    tree = [struct.pack("<IIQ", 0, 0, mode << 32 | 1)]
    tree += [struct.pack("<IIQ", i, 0, 1 << 32) for i in range(1, nodes)]
    other = len(tree) + 1
    tree += [struct.pack("<IIQ", 1, 0, 2 << 32)]
    tree += [struct.pack("<IIQ", other + i, 0, 1 << 32) for i in range(nodes - 1)]
    leaves = list(range(1, nodes + 1)) + [nodes if i % 2 or mode != 1 else len(tree) for i in range(samples)]
    taken = [struct.pack("<QQIIII", 1000 * i, 1000, leaf, 1, 0, 0) for i, leaf in enumerate(leaves)]
    write(name, mode, [b"Method%d" % number + b"x" * letters for number in (1, 2)], tree, taken)


if __name__ == "__main__":
    main()
