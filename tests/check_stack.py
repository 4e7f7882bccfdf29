#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_stack.py BUILD SOURCE: how much stack the signal handler needs at most, by gcc's own figures
(-fcallgraph-info=su) for the island as it is built: each frame of the deepest chain of calls from
the handlers, return addresses and the red zone included. Refused: recursion, a frame whose size is not fixed, a call of
what is not in the island, and a call by pointer other than that of a source of memory (src/core/mem), which in a
handler has none, and the jump to the runtime's own handler (src/library/signal/handler.c). Fails above LIMIT, and where docs/signal-safety.md gives another figure.
check_stack.py --self-test COMPILER: is each of these noticed?"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

LIMIT = 4608
RED_ZONE = 128  # below its stack pointer, available to a leaf function
ROOTS = ("cs_signal_handler", "cs_urg_handler", "cs_activation_handler")
COMPONENTS = ("mem", "images", "codemap", "unwind", "walk", "signal")
POINTERS = re.compile(r"src/(core/mem/mem\.[ch]|library/signal/handler\.c):\d+:\d+$")
DOCS = re.compile(r"needs at most ([\d,]+) bytes of stack")


class Refused(Exception):
    pass


def compile_all(commands, work):
    """The commands are (directory, words) pairs. Returns the call graphs that gcc writes, in the folder work."""
    for number, (directory, words) in enumerate(commands):
        words = words[1:] if os.path.basename(words[0]) == "ccache" else list(words)
        words[words.index("-o") + 1] = os.path.join(work, f"{number}.o")
        subprocess.run([*words, "-fcallgraph-info=su"], cwd=directory, check=True)


def read_graph(work):
    """The bytes of each function's frame, and its calls as (callee, where)."""
    frames, calls = {}, {}
    for name in sorted(os.listdir(work)):
        if not name.endswith(".ci"):
            continue
        with open(os.path.join(work, name), encoding="utf-8") as file:
            text = file.read()
        for title, label in re.findall(r'^node: { title: "([^"]*)" label: "([^"]*)" }$', text, re.M):
            size = re.search(r"\\n(\d+) bytes \(([^)]*)\)$", label)
            if size is None or size[2] != "static":
                raise Refused(f"{title}: the size of its frame is not fixed ({label})")
            frames[title] = int(size[1])
        for edge in re.findall(r'^edge: { sourcename: "([^"]*)" targetname: "([^"]*)" label: "([^"]*)" }$', text, re.M):
            calls.setdefault(edge[0], set()).add(edge[1:])
    return frames, calls


def deepest(frames, calls, function, above=(), known=None):
    """(bytes, [functions]) of the deepest chain of calls that begins at this function."""
    known = {} if known is None else known
    if function in above:
        raise Refused("recursion: " + " -> ".join([*above, function]))
    if function not in frames:
        raise Refused(f"{above[-1] if above else 'nothing'} calls {function}, which is not in the island")
    if function in known:
        return known[function]
    most, chain = 0, []
    for callee, where in calls.get(function, ()):
        if callee == "__indirect_call":
            if not POINTERS.search(where):
                raise Refused(f"{function} makes a call by pointer at {where}")
            continue
        below = deepest(frames, calls, callee, (*above, function), known)
        if below[0] > most:
            most, chain = below
    known[function] = (frames[function] + most, [function, *chain])
    return known[function]


def measure(commands, roots):
    with tempfile.TemporaryDirectory() as work:
        compile_all(commands, work)
        frames, calls = read_graph(work)
    total, chain = max(deepest(frames, calls, root) for root in roots)
    return frames, total + RED_ZONE, chain


def island(build, source):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    island = re.compile(re.escape(source) + rf"/src/(core|library)/(arch/\w+/)?({'|'.join(COMPONENTS)})/")
    return [(e["directory"], shlex.split(e["command"])) for e in entries
            if island.match(e["file"]) and "cs_island.dir" in e["command"]]


def check(build, source):
    commands = island(build, source)
    if len(commands) < 10:
        print(f"FAIL: only {len(commands)} files of the island in {build}/compile_commands.json")
        return False
    frames, total, chain = measure(commands, ROOTS)
    print(f"{total} bytes of stack at most, of {LIMIT}, in {len(commands)} files with {len(frames)} functions:")
    for function in chain:
        print(f"  {frames[function]:6} {function.split(':')[-1]}")
    print(f"  {RED_ZONE:6} the red zone")
    if total > LIMIT:
        print(f"FAIL: the deepest chain of calls needs {total} bytes, more than {LIMIT}")
        return False
    with open(os.path.join(source, "docs", "signal-safety.md"), encoding="utf-8") as file:
        said = DOCS.search(file.read())
    if said is None or int(said[1].replace(",", "")) != LIMIT:
        print(f"FAIL: docs/signal-safety.md says {said[1] if said else 'nothing'}, the bound is {LIMIT}")
        return False
    return True


FINE = ("__attribute__((noipa)) int inner(int n) { volatile char b[300]; b[n] = 1; return b[n]; }"
        "int root(int n) { return inner(n) + 1; }")
FAULTS = {
    "recursion": "int root(int n) { volatile int k = n; return k > 0 ? root(k - 1) + root(k - 2) : 1; }",
    "the size of its frame is not fixed":
        "int root(int n) { volatile char b[n]; b[0] = 1; return b[0]; }",
    "not in the island": "int other(int); int root(int n) { return other(n) + 1; }",
    "a call by pointer": "int root(int (*f)(int)) { return f(1) + 1; }",
}


def self_test(compiler):
    failed = False
    with tempfile.TemporaryDirectory() as work:
        def run(text):
            path = os.path.join(work, "it.c")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return measure([(work, [compiler, "-O2", "-fno-inline", "-c", path, "-o", "it.o"])], ("root",))
        _, total, chain = run(FINE)
        if not 300 < total < 700 or chain != ["root", "inner"]:
            print(f"FAIL: {total} bytes by {chain}")
            failed = True
        for fault, text in FAULTS.items():
            try:
                run(text)
                print(f"FAIL: not noticed: {fault}")
                failed = True
            except Refused as refused:
                if fault not in str(refused):
                    print(f"FAIL: not as {fault}: {refused}")
                    failed = True
    return not failed


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    try:
        good = self_test(sys.argv[2]) if sys.argv[1] == "--self-test" else check(*sys.argv[1:])
    except Refused as refused:
        print(f"FAIL: {refused}")
        good = False
    return 0 if good else 1


sys.exit(main())
