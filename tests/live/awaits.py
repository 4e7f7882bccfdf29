# SPDX-License-Identifier: MIT
"""awaits.py TRUTH COLLAPSED SHARE LEAST: holds who awaits against what the program has said. No sample of a leaf may
have an awaiter that does not await it; at least SHARE per cent must have all of them, and there must be LEAST samples.
Samples of the time before (Leaf.Warm) do not count. With LEAST 0 each leaf that has five samples needs one that is
right, and eight leaves must have them."""
import collections
import re
import sys

truth = dict(line.strip().split(": ") for line in open(sys.argv[1]) if ": " in line)
share, least = float(sys.argv[3]), int(sys.argv[4])
seen = {leaf: collections.Counter() for leaf in truth}
for line in open(sys.argv[2]):
    stack, count = line.rsplit(" ", 1)
    frames = re.sub(r"<[^;]*?>", "", stack).split(";")
    leaves = [f[len("Leaf."):] for f in frames if f.startswith("Leaf.") and f[len("Leaf."):] in truth]
    if not leaves or any(f.startswith("Leaf.Warm") for f in frames):
        continue
    # A Task.Delay may be over before it is awaited: then the awaiting method is on the stack itself.
    callers = truth[leaves[-1]].split(";")
    awaits = [f.removesuffix(" [awaits]") for f in frames if f.endswith(" [awaits]") or f in callers]
    seen[leaves[-1]][";".join(reversed(awaits)) or "-"] += max(1, round(int(count) * 999 / 1e9))  # nanoseconds, at 999 Hz

bad, total, right, enough = 0, 0, 0, 0
for leaf, awaits in truth.items():
    all_of_it = awaits.split(";") if awaits != "-" else []
    for found, count in seen[leaf].items():
        part = found.split(";") if found != "-" else []
        if part != all_of_it[: len(part)]:
            print(f"FAIL: {leaf}: {count} samples are said to be awaited by {found}, not {awaits}")
            bad += 1
    enough += sum(seen[leaf].values()) >= 5
    if least == 0 and sum(seen[leaf].values()) >= 5 and seen[leaf][awaits] == 0:
        print(f"FAIL: {leaf}: none of {sum(seen[leaf].values())} samples is awaited by {awaits}")
        bad += 1
    print(f"  {leaf}: {seen[leaf][awaits]} of {sum(seen[leaf].values())}")
    total += sum(seen[leaf].values())
    right += seen[leaf][awaits]
print(f"{right} of {total} samples have all their awaiters ({100 * right / max(total, 1):.1f} %)")
if total < least or right < share / 100 * total:
    print(f"FAIL: at least {least} samples are wanted, and {share} % of them with all awaiters")
    bad += 1
if least == 0 and enough < 8:
    print(f"FAIL: only {enough} leaves have five samples")
    bad += 1
sys.exit(1 if bad else 0)
