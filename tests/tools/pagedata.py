#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pagedata.py PAGE JSON: holds what a page carries against the JSON output of the same recording or
comparison: every thread's numbers of every stack of every mode, and every sample in time. The reader of the
page (modes()) is written from the description in src/command/page/page_data.c; shares.py uses it, too."""
import base64
import collections
import json
import re
import sys
import zlib


def leb128(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def frame_names(mode):
    strings, frames = mode["strings"], mode["frames"]
    return [(strings[name], strings[module]) for name, module in zip(frames[::3], frames[1::3])]


def modes(page):
    """Each mode: (its head, its entries, its samples); an entry is (thread, path of (name, module), numbers)
    and a sample (entry, ms, weight, asleep)."""
    packed = re.search(r'<script id="data"[^>]*>([^<]*)<', page).group(1)
    raw = zlib.decompress(base64.b64decode(packed))
    end = int(raw[-10:])
    for mode in json.loads(raw[end:-10])["modes"]:
        numbers = leb128(raw[mode["at"]:end])

        def columns(count, rows):
            return [[next(numbers) for _ in range(rows)] for _ in range(count)]

        names, paths = frame_names(mode), [()]
        for i, (back, frame) in enumerate(zip(*columns(2, mode["nodes"])), 1):
            paths.append(paths[i - back] + (names[frame],))
        entries, node = [], 0
        routed = 1 if mode.get("routes") else 0
        for step, thread, *own in zip(*columns(routed + (6 if "diff" in mode else 4), mode["entries"])):
            node += step
            own = own[routed:]
            entries.append((tuple(mode["threads"][thread]), paths[node], own))
        samples, entry, time = [], 0, 0
        rows = 3 + mode["asleep"] + bool(mode.get("traces"))
        for step, ms, weight, *asleep in zip(*columns(rows, mode["samples"])):
            time = ms if step > 0 else time + ms
            entry += step
            samples.append((entry, time, weight, asleep[0] if mode["asleep"] else 0))
        yield mode, entries, samples


def of_page(page):
    for mode, entries, samples in modes(page):
        own, times = collections.Counter(), collections.Counter()
        for thread, path, numbers in entries:
            for i, number in enumerate(numbers):
                own[thread, path, i] += number
        for entry, *rest in samples:
            times[entries[entry][:2] + tuple(rest)] += 1
        yield mode["facts"], mode.get("only"), +own, times


def of_json(data):
    for mode in data["modes"]:
        names, paths, threads = frame_names(mode), [()], [None]
        own, times, at = collections.Counter(), collections.Counter(), 0
        columns = [mode["self"], mode.get("selfUs") or mode["selfWeight"]]
        if "diff" in mode:
            columns += [mode["diff"]["self"], mode["diff"].get("selfUs") or mode["diff"]["selfWeight"]]
        for i, (back, frame) in enumerate(zip(mode["parent"], mode["frame"]), 1):
            threads.append(tuple(mode["threads"][frame]) if back == i else threads[i - back])
            paths.append(() if back == i else paths[i - back] + (names[frame],))
            for c, column in enumerate(columns):
                own[threads[i], paths[i], c] += column[i - 1]
            time, asleep = 0, mode.get("asleep")
            for _ in range(mode["self"][i - 1] if "time" in mode else 0):
                time += mode["time"][at]
                times[threads[i], paths[i], time, mode["timeWeight"][at], asleep[at] if asleep else 0] += 1
                at += 1
        yield mode["facts"], mode.get("only"), +own, times


def main():
    with open(sys.argv[1]) as page, open(sys.argv[2]) as data:
        one, other = list(of_page(page.read())), list(of_json(json.load(data)))
    assert len(one) == len(other), (len(one), len(other))
    for is_, should in zip(one, other):
        for a, b, what in zip(is_, should, ("facts", "only", "numbers", "times")):
            assert a == b, f"{is_[0]['mode']}: {what}: {a} and not {b}"
    print(f"{sys.argv[1]} and {sys.argv[2]} agree in {len(one)} modes, {sum(len(mode[2]) for mode in one)} numbers")


if __name__ == "__main__":
    main()
