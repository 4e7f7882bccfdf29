#!/bin/bash
# SPDX-License-Identifier: MIT
# generics.sh BUILD SOURCE MATERIAL: `clrsnap stack` names methods with the generic arguments that they have in the source
# and in a recording. tests/apps/Names waits in each such method, after it has printed the name.
BUILD=$1 SOURCE=$2 MATERIAL=$3
. "$SOURCE/tests/live/lib.sh"
build_app Names
python3 - "$BUILD/bin/clrsnap" "$APP" << 'PYTHON' || fail "above"
import json, os, subprocess, sys
clrsnap, app = sys.argv[1:]
program = subprocess.Popen(["dotnet", app], env=os.environ | {"NAMES_WAIT": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           text=True, bufsize=1)
names, wrong = [], []
try:
    while (name := program.stdout.readline().rstrip("\n")) and "<" in name:
        said = subprocess.run([clrsnap, "stack", "--json", str(program.pid)], check=True, timeout=300, stdout=subprocess.PIPE)
        stacks = [[frame["name"] for frame in thread["frames"] if frame["kind"] in ("jit", "r2r")]
                  for thread in json.loads(said.stdout)["threads"]]
        callers = [stack[stack.index("Mark.At") + 1] for stack in stacks if "Mark.At" in stack]
        names.append(name)
        if callers != [name]:
            wrong.append((name, callers))
        program.stdin.write("\n")
finally:
    program.kill()
    program.wait()
assert not wrong, wrong
assert len(names) >= 10 and {"Shop.Box<int>.Put", "Shop.Box<T>.Put", "Shop.Cart.MapAsync<int>"} <= set(names), names
PYTHON
pass "generic arguments as in the source"
