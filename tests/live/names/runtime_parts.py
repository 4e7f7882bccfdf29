# SPDX-License-Identifier: MIT
"""runtime_parts.py CLASSES_H FOLDED SUMMARY: the classes of the runtime's frames below each method of RuntimeParts."""
import collections
import re
import sys

CLASSES = set(re.findall(r'X\(\w+, "(\[[^"]+\])"\)', open(sys.argv[1]).read()))
COMMON = {"[allocation]", "[GC]", "[suspension]"}
PARTS = {  # method: the class that it is for, and the others that it may have
    "Collects": ("[GC]", {"[suspension]"}),
    "Allocates": ("[allocation]", COMMON),
    "Throws": ("[exception handling]", COMMON | {"[method preparation]", "[type loading]"}),
    "Compiles": ("[JIT]", COMMON | {"[method preparation]", "[type loading]", "[reflection]"}),
    "Loads": ("[reflection]", COMMON | {"[method preparation]", "[type loading]"}),
}
# Shares of a part's time in the runtime, which may be of 60 samples where the kernel's tick sets the rate. The program's own methods are compiled at their first call, which is WRONG.
OWN, FITS, WRONG = 0.2, 0.4, 0.15

times = collections.defaultdict(collections.Counter)
everything = unclassed = 0
for line in open(sys.argv[2]):
    stack, weight = line.rstrip("\n").rsplit(" ", 1)
    frames, weight = stack.split(";"), int(weight)
    everything += weight
    unclassed += weight * (frames[-1] == "[libcoreclr.so]")
    assert "[libclrjit.so]" not in frames, f"code of the JIT has no class: {stack}"
    for above, below in zip(frames, frames[1:]):
        assert above != below or above not in CLASSES, f"a class stands twice: {stack}"
    parts = [at for at, name in enumerate(frames) if name.removeprefix("RuntimeParts.Program.") in PARTS]
    of_runtime = [f for f in frames[parts[-1]:] if f in CLASSES or f == "[libcoreclr.so]"] if parts else []
    if of_runtime:
        times[frames[parts[-1]].rsplit(".", 1)[1]][of_runtime[-1]] += weight

wrong = []
for part, (own, others) in PARTS.items():
    all_of_it = sum(times[part].values()) or 1
    shares = {name: weight / all_of_it for name, weight in times[part].most_common()}
    print(part + ":", ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items()))
    fits = sum(shares.get(name, 0) for name in others | {own})
    misfits = 1 - fits - shares.get("[libcoreclr.so]", 0)
    if shares.get(own, 0) < OWN or fits < FITS or misfits > WRONG:
        wrong.append(f"{part}: {own} {shares.get(own, 0):.2f}, classes that fit {fits:.2f}, others {misfits:.2f}")
told = re.search(r"cpu: ([\d.]+) % in functions of the runtime without names, ([\d.]+) % in those without a class",
                 open(sys.argv[3]).read())
if told is None:
    wrong.append("the summary does not have the runtime's share")
elif abs(float(told[2]) - 100 * unclassed / everything) > 0.1:
    wrong.append(f"the summary says that {told[2]} % have no class, and {100 * unclassed / everything:.2f} % have none")
sys.exit("FAIL: " + "; ".join(wrong) if wrong else 0)
