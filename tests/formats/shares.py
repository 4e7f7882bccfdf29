#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""shares.py FORMAT FILE METHOD...: prints each METHOD's share, in percent, of the time of all of them, according to
FILE. Every format has a reader of its own here, written from the format's description and not from clrsnap's writer.
With --check, the truth ("truth METHOD NANOSECONDS" lines) is on standard input, and a share that is off by more than 2
points (--within POINTS: by more than that) is a failure. In formats with time, the samples must lie where they can have
been taken."""
import gzip
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import jsontree
import pagedata
import protobuf


def stacks_collapsed(text):
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        yield stack.split(";"), float(count)


def stacks_json(data):
    for path, _, ns in jsontree.stacks(data["modes"][0]):
        if ns:
            yield path, ns / 1000


def stacks_html(text):
    _, entries, samples = next(pagedata.modes(text))
    # Microseconds are rounded down, both in an entry and in each of its samples.
    weight, each = sum(own[1] for *_, own in entries), sum(sample[2] for sample in samples)
    assert sum(own[0] for *_, own in entries) == len(samples) and 0 <= weight - each <= len(samples)
    for _, path, own in entries:
        yield [name for name, _ in path], float(own[1])


def stacks_text(text):
    line_form = re.compile(r"^ *([0-9.]+) %  +([0-9.]+) % +\d+  ( *)(\S.*)$")
    path = []
    for line in text.splitlines():
        m = line_form.match(line)
        if not m:
            continue
        depth = len(m.group(3))
        path = path[:depth] + [m.group(4)]
        if float(m.group(2)):
            yield path[1:], float(m.group(2))  # without the thread's name


def fields(data):
    return ((number, value) for number, _, value in protobuf.fields(data))


def packed(value):
    return [value] if isinstance(value, int) else protobuf.packed(value)


def stacks_pprof(data):
    samples, locations, functions, strings = [], {}, {}, []
    for number, value in fields(gzip.decompress(data)):
        if number == 2:
            sample = {"ids": [], "values": []}
            for n, v in fields(value):
                if n == 1:
                    sample["ids"] += packed(v)
                if n == 2:
                    sample["values"] += packed(v)
            samples.append(sample)
        elif number == 4:
            location = dict(fields(value))
            locations[location[1]] = dict(fields(location[4]))[1]
        elif number == 5:
            function = dict(fields(value))
            functions[function[1]] = function[2]
        elif number == 6:
            strings.append(value.decode())
    assert strings[0] == ""
    for sample in samples:
        names = [strings[functions[locations[i]]] for i in sample["ids"]]
        yield names[::-1], float(sample["values"][1])


def stacks_otlp(data):
    """An OTLP request of profiles: the first profile of the first scope of the first resource."""
    def one(message, number):
        return next(v for n, v in fields(message) if n == number)

    def all_of(message, number):
        return [v for n, v in fields(message) if n == number]

    dictionary = one(data, 2)
    strings = [s.decode() for s in all_of(dictionary, 5)]
    functions = [dict(fields(f)) for f in all_of(dictionary, 3)]
    locations = [dict(fields(l)) for l in all_of(dictionary, 2)]
    stacks = [packed(one(s, 1)) if s else [] for s in all_of(dictionary, 7)]
    profile = one(one(one(data, 1), 2), 2)
    for sample in all_of(profile, 2):
        stack = stacks[dict(fields(sample)).get(1, 0)]
        names = [strings[functions[dict(fields(locations[i][3]))[1]][1]] for i in stack]
        yield names[::-1], float(sum(packed(one(sample, 4))))


def stacks_speedscope(data, ends=None):
    names = [frame["name"] for frame in data["shared"]["frames"]]
    for profile in data["profiles"]:
        assert profile["type"] == "sampled" and profile["unit"] == "nanoseconds"
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["startValue"] + sum(profile["weights"]) == profile["endValue"]
        if ends is not None:
            ends.append(profile["endValue"] / 1e9)
        for stack, weight in zip(profile["samples"], profile["weights"]):
            yield [names[i] for i in stack], float(weight)


def stacks_firefox(data, ends=None):
    assert data["meta"]["preprocessedProfileVersion"] == 47
    for thread in data["threads"]:
        strings, samples, stacks = thread["stringArray"], thread["samples"], thread["stackTable"]
        for table in (samples, stacks, thread["frameTable"], thread["funcTable"], thread["resourceTable"]):
            assert all(len(c) == table["length"] for c in table.values() if isinstance(c, list))
        paths = []
        for prefix, frame, category in zip(stacks["prefix"], stacks["frame"], stacks["category"]):
            assert prefix is None or prefix < len(paths)
            assert 0 <= category < len(data["meta"]["categories"])
            func = thread["frameTable"]["func"][frame]
            resource = thread["funcTable"]["resource"][func]
            assert strings[thread["resourceTable"]["name"][resource]] is not None
            name = strings[thread["funcTable"]["name"][func]]
            paths.append((paths[prefix] if prefix is not None else []) + [name])
        assert samples["time"] == sorted(samples["time"])
        if ends is not None:
            ends.append((samples["time"][-1] + samples["weight"][-1]) / 1e3)
        for stack, weight in zip(samples["stack"], samples["weight"]):
            yield paths[stack] if stack is not None else [], float(weight)


def stacks_chromium(data, ends=None):
    """Complete events nest by time; the time that an event's callees do not cover is its own."""
    tracks = {}
    for event in data["traceEvents"]:
        if event["ph"] == "X":
            tracks.setdefault((event["pid"], event["tid"]), []).append(event)
    for events in tracks.values():
        stack = []  # [name, end, own]

        def close(until):
            while stack and stack[-1][1] <= until:
                yield [e[0] for e in stack], stack[-1][2]
                stack.pop()

        for event in events:
            begin, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            yield from close(begin)
            if stack:
                assert end <= stack[-1][1], "an event ends after its caller"
                stack[-1][2] -= end - begin
            stack.append([event["name"], end, end - begin])
        if ends is not None:
            ends.append(max(e["ts"] + e["dur"] for e in events) / 1e6)
        yield from close(float("inf"))


def load(form, path):
    ends = []
    data = open(path, "rb").read()
    if form == "pprof":
        return list(stacks_pprof(data)), None
    if form == "otlp":
        return list(stacks_otlp(data)), None
    text = data.decode()
    if form in ("collapsed", "text", "html"):
        return list(globals()["stacks_" + form](text)), None
    data = json.loads(text)
    if form == "json":
        return list(stacks_json(data)), None
    return list(globals()["stacks_" + form](data, ends)), ends


def main():
    check = "--check" in sys.argv
    within = 2.0
    if "--within" in sys.argv:
        at = sys.argv.index("--within")
        within = float(sys.argv.pop(at + 1))
    form, path, *methods = [a for a in sys.argv[1:] if not a.startswith("--")]
    stacks, ends = load(form, path)
    taken = {m: sum(w for s, w in stacks if m in s) for m in methods}
    truth = {m: 0.0 for m in methods}
    if check:
        for line in sys.stdin:
            word, method, ns = line.split()
            if word == "truth":
                truth[method] = float(ns)
    failed = False
    for m in methods:
        share = 100 * taken[m] / sum(taken.values())
        if check:
            real = 100 * truth[m] / sum(truth.values())
            print(f"{form:11} {m:24} {share:6.2f} % (truly {real:.2f} %)")
            failed |= abs(share - real) > within
        else:
            print(f"{form:11} {m:24} {share:6.2f} %")
    if check and ends is not None:
        # The thread was busy for that long, so its track cannot end earlier.
        least = sum(truth.values()) / 1e9
        print(f"{form:11} the longest track ends at {max(ends):.2f} s")
        failed |= max(ends) < 0.98 * least
    sys.exit(failed)


if __name__ == "__main__":
    main()
