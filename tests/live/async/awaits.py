# SPDX-License-Identifier: MIT
"""awaits.py TRUTH JSON SHARE LEAST [warm]: compares async callers with what the program has reported. No sample of a leaf may
have an awaiter that does not await it; at least SHARE per cent must have all of them, and there must be LEAST samples.
Excuses are counted: a chain that ends early (SHARE bounds it), an awaiter that is on the stack itself because its
Task.Delay was over before it was awaited. Samples of the warm-up (Leaf.Warm) do not count, except with warm. With LEAST 0 each leaf
that has five samples needs one that is right, and eight leaves must have them.
awaits.py --self-test: does each fault fail it?"""
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tools"))
import jsontree


def judge(truth, lines, share, least, say=print):
    """True: as the program has said. `truth`: the awaiters of each leaf; `lines`: collapsed stacks."""
    seen = {leaf: collections.Counter() for leaf in truth}
    warm = on_stack = 0
    for line in lines:
        stack, count = line.rsplit(" ", 1)
        frames = re.sub(r"<[^;]*?>", "", stack).split(";")
        leaves = [f[len("Leaf."):] for f in frames if f.startswith("Leaf.") and f[len("Leaf."):] in truth]
        if not leaves:
            continue
        if any(f.startswith("Leaf.Warm") for f in frames):
            warm += int(count)
            continue
        callers = truth[leaves[-1]].split(";")
        awaits = [f.removesuffix(" [awaits]") for f in frames if f.endswith(" [awaits]") or f in callers]
        on_stack += int(count) if any(f in callers for f in frames) else 0
        seen[leaves[-1]][";".join(reversed(awaits)) or "-"] += int(count)

    good, total, right, enough = True, 0, 0, 0
    for leaf, awaits in truth.items():
        all_of_it = awaits.split(";") if awaits != "-" else []
        for found, count in seen[leaf].items():
            part = found.split(";") if found != "-" else []
            if part != all_of_it[: len(part)]:
                say(f"FAIL: {leaf}: {count} samples are said to be awaited by {found}, not {awaits}")
                good = False
        enough += sum(seen[leaf].values()) >= 5
        if least == 0 and sum(seen[leaf].values()) >= 5 and seen[leaf][awaits] == 0:
            say(f"FAIL: {leaf}: none of {sum(seen[leaf].values())} samples is awaited by {awaits}")
            good = False
        say(f"  {leaf}: {seen[leaf][awaits]} of {sum(seen[leaf].values())}")
        total += sum(seen[leaf].values())
        right += seen[leaf][awaits]
    say(f"{right} of {total} samples have all their awaiters ({100 * right / max(total, 1):.1f} %); excused: "
        f"{total - right} whose chain ends early, {on_stack} with an awaiter on the stack itself, {warm} of the time before")
    if total < least or right < share / 100 * total:
        say(f"FAIL: at least {least} samples are wanted, and {share} % of them with all awaiters")
        good = False
    if least == 0 and enough < 8:
        say(f"FAIL: only {enough} leaves have five samples")
        good = False
    return good


def counted(path):
    """The stacks of a recording, as collapsed text, with how many samples each has: weights contain time that was taken from the machine."""
    with open(path, encoding="utf-8") as file:
        mode = json.load(file)["modes"][0]
    return [f"{';'.join(frames)} {samples}" for frames, samples, _ in jsontree.stacks(mode) if samples]


def self_test():
    truth = {"Red": "A.One;A.Two", "Blue": "B.One"}
    fine = ["Main;A.Two [awaits];A.One [awaits];Leaf.Red 50", "Main;B.One [awaits];Leaf.Blue 50"]
    cases = {  # what is changed: (lines, is that as the program has said?)
        "nothing": (fine, True),
        "a few chains that end early": ([*fine, "Main;A.One [awaits];Leaf.Red 5"], True),
        "samples of the time before": ([*fine, "Main;B.One [awaits];Leaf.Warm;Leaf.Red 50"], True),
        "another's awaiter": ([*fine, "Main;B.One [awaits];Leaf.Red 1"], False),
        "an awaiter left out": ([*fine, "Main;A.Two [awaits];Leaf.Red 1"], False),
        "the wrong order": ([*fine, "Main;A.One [awaits];A.Two [awaits];Leaf.Red 1"], False),
        "one too many": ([*fine, "Main;B.One [awaits];B.One [awaits];Leaf.Blue 1"], False),
        "many chains that end early": ([*fine, "Main;A.One [awaits];Leaf.Red 20"], False),
        "too few samples": ([fine[0].replace("50", "5"), fine[1].replace("50", "5")], False),
    }
    wrong = [name for name, (lines, good) in cases.items() if judge(truth, lines, 90, 50, lambda _: None) != good]
    for name in wrong:
        print(f"FAIL: judged wrongly: {name}")
    return not wrong


if sys.argv[1] == "--self-test":
    sys.exit(0 if self_test() else 1)
with open(sys.argv[1], encoding="utf-8") as told:
    said = dict(line.strip().split(": ") for line in told if ": " in line)
stacks = [line.replace(";Leaf.Warm", "") if sys.argv[5:] == ["warm"] else line for line in counted(sys.argv[2])]
sys.exit(0 if judge(said, stacks, float(sys.argv[3]), int(sys.argv[4])) else 1)
