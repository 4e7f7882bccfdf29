#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_layers.py SOURCE: the layout of src/ is the one that the table of docs/design.md describes. Every room is in
the table, uses exactly the rooms that it names, none of a building above its own, and no room uses itself through
others. Each file has at most 500 lines, a room at most 40 files; a header guard and a struct have a name of their own.
check_layers.py --self-test: is each kind of violation found?"""
import collections
import os
import re
import sys
import tempfile

# What a building may use. Headers of `clrsnap` are the public ones (include/clrsnap).
BUILDINGS = {
    "core": {"core"},
    "wire": {"core"},
    "library": {"core", "library"},
    "agent": {"core", "library", "agent", "wire"},
    "command": {"core", "wire", "command"},
}
MOST_LINES, MOST_FILES = 500, 40
ROW = re.compile(r"^\| `([a-z_/]+)`[ *]*\|.*\|([^|]*)\|$", re.M)
INCLUDE = re.compile(r'^ *# *include +"([a-z_]+)/([a-z_0-9]+\.h)"', re.M)
CODE = (".c", ".h", ".S")
TEXT = (*CODE, ".cs", ".js", ".css", ".html", ".proto")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def folders(source):
    """Each room as (building, room, its folder). The wire is a building of one room."""
    for building in sorted(os.listdir(os.path.join(source, "src"))):
        folder = os.path.join(source, "src", building)
        if not os.path.isdir(folder):
            continue
        rooms = [room for room in sorted(os.listdir(folder)) if os.path.isdir(os.path.join(folder, room))]
        for room in rooms:
            yield building, room, os.path.join(folder, room)
        if any(name.endswith(CODE) for name in os.listdir(folder)):
            yield building, building, folder


def table(source):
    """room: the rooms that the table gives it."""
    text = read(os.path.join(source, "docs", "design.md"))
    return {name.split("/")[-1]: set(re.findall(r"[a-z_]+", used)) - {"nothing"} for name, used in ROW.findall(text)}


def arrows(folder, room):
    used = set()
    for name in os.listdir(folder):
        if name.endswith(CODE):
            used |= {header for header, _ in INCLUDE.findall(read(os.path.join(folder, name)))}
    return used - {room}


def check_arrows(rooms, allowed):
    building_of = {room: building for building, room, _ in rooms}
    for building, room, folder in rooms:
        if building not in BUILDINGS:
            yield f"src/{building} is no building"
            continue
        if room not in allowed:
            yield f"{building}/{room} is not in the table of docs/design.md"
            continue
        used = arrows(folder, room)
        for other in sorted(used - allowed[room]):
            yield f"{building}/{room} uses {other}, which the table does not give it"
        for other in sorted(allowed[room] - used):
            yield f"{building}/{room} does not use {other}, though the table says so"
        for other in sorted(used):
            if other != "clrsnap" and building_of.get(other) not in BUILDINGS[building]:
                yield f"{building}/{room} uses {other}, which is of the building {building_of.get(other)}"
    for room in sorted(set(allowed) - set(building_of)):
        yield f"the table of docs/design.md has {room}, which is no folder"


def check_circles(allowed):
    done = set()

    def visit(room, above):
        if room in above:
            yield "a circle of rooms: " + " -> ".join([*above[above.index(room):], room])
        elif room not in done:
            for other in sorted(allowed.get(room, ())):
                yield from visit(other, [*above, room])
            done.add(room)

    for room in sorted(allowed):
        yield from visit(room, [])


def check_names(rooms):
    places = collections.defaultdict(set)
    for building, room, folder in rooms:
        for name in sorted(os.listdir(folder)):
            if name.endswith(CODE):
                text, where = read(os.path.join(folder, name)), f"{building}/{room}/{name}"
                for guard in re.findall(r"^#ifndef (CS_\w+_H)$", text, re.M):
                    places[guard].add(where)
                for kind in re.findall(r"^(?:struct|enum|union) cs_\w+(?= \{)", text, re.M):
                    places[kind].add(where)
    for name, where in sorted(places.items()):
        if len(where) > 1:
            yield f"{name} stands in {', '.join(sorted(where))}"


def check_sizes(rooms):
    for building, room, folder in rooms:
        names = [name for name in os.listdir(folder) if name.endswith(TEXT)]
        if len(names) > MOST_FILES:
            yield f"{building}/{room} has {len(names)} files; {MOST_FILES} are allowed"
        for name in sorted(names):
            lines = read(os.path.join(folder, name)).count("\n")
            if lines > MOST_LINES:
                yield f"{building}/{room}/{name} has {lines} lines; {MOST_LINES} are allowed"


def check(source):
    rooms, allowed = list(folders(source)), table(source)
    found = [*check_arrows(rooms, allowed), *check_circles(allowed), *check_names(rooms), *check_sizes(rooms)]
    return found if rooms else ["there are no rooms"]


def self_test():
    good = {
        "docs/design.md": "| room | does | uses |\n| `core/base` | x | nothing |\n| `core/walk` * | x | base |\n"
        "| `command/cli` | x | walk |\n",
        "src/core/base/base.h": "#ifndef CS_BASE_BASE_H\nstruct cs_base {\n",
        "src/core/walk/walk.c": '#include "base/base.h"\n#include "walk/walk.h"\n',
        "src/command/cli/main.c": '#include "walk/walk.h"\n',
    }
    faults = {
        "not in the table": {"src/core/new/new.c": "\n"},
        "which the table does not give it": {"src/command/cli/main.c": '#include "walk/a.h"\n#include "base/base.h"\n'},
        "though the table says so": {"src/command/cli/main.c": "\n"},
        "which is of the building command": {"src/core/walk/walk.c": '#include "base/a.h"\n#include "cli/a.h"\n'},
        "which is no folder": {"docs/design.md": good["docs/design.md"] + "| `core/gone` | x | nothing |\n"},
        "a circle of rooms: base -> walk -> base": {
            "docs/design.md": good["docs/design.md"].replace("nothing", "walk"),
            "src/core/base/base.h": '#include "walk/walk.h"\n',
        },
        "CS_BASE_BASE_H stands in": {"src/core/base/other.h": "#ifndef CS_BASE_BASE_H\n"},
        "struct cs_base stands in": {"src/core/walk/walk.h": "struct cs_base {\n"},
        "501 lines": {"src/core/walk/long.c": "\n" * 501},
        "41 files": {f"src/core/base/f{i}.c": "\n" for i in range(40)},
    }
    for expected, changed in [(None, {}), *faults.items()]:
        with tempfile.TemporaryDirectory() as work:
            for path, text in {**good, **changed}.items():
                os.makedirs(os.path.dirname(os.path.join(work, path)), exist_ok=True)
                with open(os.path.join(work, path), "w", encoding="utf-8") as file:
                    file.write(text)
            found = check(work)
        if not any(expected in line for line in found) if expected else found:
            sys.exit(f"FAIL: {expected or 'what is allowed'}: {found}")
    print(f"pass: {len(faults)} kinds of violations were found")


if sys.argv[1] == "--self-test":
    self_test()
else:
    problems = check(sys.argv[1])
    print("\n".join(f"FAIL: {line}" for line in problems) or "pass: src/ is as docs/design.md says")
    sys.exit(bool(problems))
