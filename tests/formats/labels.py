#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""labels.py TRUTH SAMPLES MODE: checks that the labels of the program Labels are on the samples on which they belong.
TRUTH is what the program has printed (a span * stands for any), SAMPLES what tests/tools/otlp.py has read. Of the
amount of a method that runs under Activities, at least 98 % must have one of the right labels, and nothing may have a
wrong one; what is under no Activity must have none. MODE is cpu; wall, which also checks the sleepers; exception, which
checks only First; or early, which is cpu, but an Activity that existed before may be missed.
labels.py --self-test: checks that each kind of fault makes it fail."""
import collections
import os
import re
import subprocess
import sys
import tempfile

# A worker that waits for work; .NET 9 has that method inlined.
IDLE = re.compile(r"LowLevelLifoSemaphore\.Wait|WorkerThreadStart@[^;]*(;[^;@]*@lib[^;@]*)*$")


def main():
    truth_file, samples_file, mode = sys.argv[1:]
    truth = {}
    for line in open(truth_file):
        if line.startswith("label "):
            _, method, trace, spans, _ = line.split()
            truth[method] = (trace, set(spans.split(",")))
    assert len(truth) >= 6, truth
    seen = collections.defaultdict(lambda: collections.Counter())
    pool_asleep = 0
    for line in open(samples_file):
        attributes, bar, rest = line.rstrip("\n").partition("|")
        if not bar:
            continue
        stack, _, value = rest.rpartition("|")
        label = re.search(r"trace_id=([0-9a-f]{32})(?:,span_id=([0-9a-f]{16}))?", attributes)
        assert ("trace_id" in attributes) == bool(label), line
        if mode == "wall" and IDLE.search(stack):
            pool_asleep += 1
            assert not label, f"a worker that waits for work has a label: {line}"
        methods = [m for m in re.findall(r"Program\.(\w+)@", stack) if m in truth]
        if not methods:
            continue
        trace, spans = truth[methods[-1]]
        if not label:
            kind = "none"
        elif label.group(1) == trace and (label.group(2) in spans or "*" in spans):
            kind = "right"
        else:
            kind = "wrong"
            print("wrong:", line, end="")
        seen[methods[-1]][kind] += int(value)

    def check(what, good):
        print(("ok   " if good else "WRONG"), what)
        return good

    good = True
    wanted = {"exception": ["First"], "wall": [m for m in truth]}.get(mode, [m for m in truth if m != "Asleep"])
    for method in wanted:
        counts = seen[method]
        total = sum(counts.values())
        right = counts["none"] if truth[method][0] == "-" else counts["right"]
        share = 100 * right / total if total else 0
        least = 100 if truth[method][0] == "-" else 0 if mode == "early" and method == "Early" else 98
        good &= check(f"{method}: {share:.2f} % have the right label, {counts['wrong']} another",
                      total > 0 and share >= least and counts["wrong"] == 0)
    if mode == "wall":
        good &= check(f"{pool_asleep} stacks of workers that wait for work", pool_asleep > 0)
    sys.exit(0 if good else 1)


def self_test():
    methods = ["First", "Second", "Third", "Fourth", "Fifth"]
    trace = {method: f"{i + 1:032x}" for i, method in enumerate(methods)}
    truth = [f"label {m} {trace[m]} {i + 1:016x} x" for i, m in enumerate(methods)] + ["label None - - x"]
    fine = [f"trace_id={trace[m]},span_id={i + 1:016x}|Program.Main@1;Program.{m}@1|100" for i, m in enumerate(methods)]
    fine.append("|Program.Main@1;Program.None@1|100")
    cases = {  # (samples, whether they agree with the truth)
        "nothing": (fine, True),
        "one without a label": ([*fine, "|Program.First@1|1"], True),
        "many without a label": ([*fine, "|Program.First@1|10"], False),
        "another's trace": ([*fine, f"trace_id={trace['Second']},span_id={1:016x}|Program.First@1|1"], False),
        "another's span": ([*fine, f"trace_id={trace['First']},span_id={2:016x}|Program.First@1|1"], False),
        "a label where there is none": ([*fine, f"trace_id={trace['First']},span_id={1:016x}|Program.None@1|1"], False),
        "a method without samples": (fine[1:], False),
    }
    good = True
    with tempfile.TemporaryDirectory() as work:
        for name, (samples, wanted) in cases.items():
            for file, lines in (("truth", truth), ("samples", samples)):
                with open(os.path.join(work, file), "w", encoding="utf-8") as out:
                    out.write("\n".join(lines) + "\n")
            words = [sys.executable, __file__, os.path.join(work, "truth"), os.path.join(work, "samples"), "cpu"]
            done = subprocess.run(words, stdout=subprocess.DEVNULL, check=False)
            if (done.returncode == 0) != wanted:
                print(f"FAIL: judged wrongly: {name}")
                good = False
    sys.exit(0 if good else 1)


if sys.argv[1] == "--self-test":
    self_test()
main()
