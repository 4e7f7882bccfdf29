#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""results.py RESULTS LIST: prints the last lines of each test that has failed (RESULTS: ctest --output-junit), which
tests CTest has skipped, and which cases of unit tests have skipped themselves, each with its reason. With CI=true, a
skipped test whose name is not in LIST ("NAME  reason" lines) is a failure: nothing may be skipped unless somebody has
decided that it can be. A run without any result is a failure, too."""
import os
import re
import sys
import xml.etree.ElementTree as xml

LAST_LINES = 12


def failed(cases):
    """The (name, last lines) of each test that has failed."""
    for case in cases:
        if case.find("failure") is not None:
            yield case.get("name"), (case.findtext("system-out") or "").strip().splitlines()[-LAST_LINES:]


def skipped(cases):
    """The (name, reason) of each skipped test or case."""
    for case in cases:
        name, said = case.get("name"), "".join(case.findtext("system-out") or "")
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        if case.find("skipped") is not None:
            told = [line for line in lines if line.startswith("skipped:")] or lines or ["it says no reason"]
            yield name, told[-1].removeprefix("skipped:").strip()
        for inner in re.findall(r"^\[ *SKIPPED *\] (\w+)$", said, re.M):
            yield f"{name}:{inner}", "the case has skipped itself"


def main():
    results, listed = sys.argv[1:]
    cases = list(xml.parse(results).getroot().iter("testcase"))
    with open(listed) as lines:
        allowed = dict(line.split(None, 1) for line in lines if line.strip() and not line.startswith("#"))
    for name, lines in failed(cases):
        print(f"failed: {name}:", *lines, sep="\n  ")
    strict, bad = os.environ.get("CI") == "true", []
    found = sorted(set(skipped(cases)))
    for name, reason in found:
        print(f"skipped: {name}: {reason}" + (f" (in the list: {allowed[name].strip()})" if name in allowed else ""))
        bad += [name] if name not in allowed else []
    if not cases:
        sys.exit("no test was run")
    if strict and bad:
        sys.exit(f"{len(bad)} skipped of which tests/skipped.txt knows nothing: with CI=true that is a failure")


main()
