# SPDX-License-Identifier: MIT
"""tower.py FILE ROWS WIDE SAMPLES: writes a recording of SAMPLES samples in two frames, WIDE more of which are at the top of
a tower of ROWS frames."""
import struct
import sys

import deep

name, rows, wide, samples = sys.argv[1], *map(int, sys.argv[2:])
# A thread, Main, Work below it, and the tower below Main.
parents = [0, 1, 2] + [2 if i == 0 else 3 + i for i in range(rows)]
tree = [struct.pack("<IIQ", parent, 0, (i or 1) << 32 | (i == 0)) for i, parent in enumerate(parents)]
leaves = [3] * samples + [len(tree)] * wide
taken = [struct.pack("<QQIIII", 1000000 * i, 1000000, leaf, 1, 0, 0) for i, leaf in enumerate(leaves)]
deep.write(name, 1, [b"Main", b"Work"] + [b"Level%d" % i for i in range(rows)], tree, taken)
