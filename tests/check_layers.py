#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_layers.py SOURCE: the layout of src/ is the one that the table of docs/design.md describes. Every component is in
the table, uses exactly the components that it names, none of a layer above its own, and no component uses itself through
others. What a layer does differently on each architecture is in arch/ARCHITECTURE/component, and belongs to the component; a
header there that other code includes is there for each architecture, and no other file there names what only one has.
Files of a component that use each other's functions, directly or through third ones, are a cycle: each is in
docs/design.md's list of cycles with its reason, and the list has no others. Each file has at most 500 lines, those of
C at most 100 columns (a formatter leaves comments as they are), a component at most 40 files, and so has each folder of
tests/; a header begins with #pragma once; no two structs have one name.
check_layers.py --self-test: is each kind of violation found?"""
import collections
import os
import re
import sys
import tempfile

# The layers that each layer may use. Headers of `clrsnap` are the public ones (include/clrsnap).
LAYERS = {
    "core": {"core"},
    "wire": {"core"},
    "library": {"core", "library"},
    "agent": {"core", "library", "agent", "wire"},
    "command": {"core", "wire", "command"},
}
MOST_LINES, MOST_FILES, MOST_COLUMNS = 500, 40, 100
ROW = re.compile(r"^\| `([a-z_/]+)`[ *]*\|.*\|([^|]*)\|$", re.M)
CYCLE = re.compile(r"^\| `([a-z_/]+)`: ((?:`[a-z_0-9]+`(?:, )?)+) \| *\S", re.M)
DEFINED = re.compile(r"^([A-Za-z_][^;={}()#]*?)\b(\w+)\([^;{}]*\)[^;{}()]*\{", re.M)
DECLARED = re.compile(r"^[A-Za-z_][^;={}#]*\([^;={}]*\)[^;={}()]*;", re.M)
INCLUDE = re.compile(r'^ *# *include +"([a-z_]+)/([a-z_0-9]+\.h)"', re.M)
OF_ONE = re.compile(r"\b(CS_(R[A-D]X|R[SD]I|R[SB]P|RIP|[RX][0-9]+|LR)|AMD64_\w+|ARM64_CONTEXT|CONTEXT_A(MD|RM)64\w*|REG_R\w\w|__asm__|__x86_64__|"
                    r"__aarch64__|__builtin_ia32_\w+)\b")
# A file that the assembler embeds as data, and the names of its ends.
EMBEDDED = re.compile(r"__asm__\(\s*#symbol")
CODE = (".c", ".h", ".S")
TEXT = (*CODE, ".cs", ".js", ".css", ".html", ".proto")
TESTS = (*TEXT, ".cpp", ".hpp", ".py", ".sh")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def subfolders(folder):
    return [name for name in sorted(os.listdir(folder)) if os.path.isdir(os.path.join(folder, name))] \
        if os.path.isdir(folder) else []


def folders(source):
    """Each component of each architecture as (layer, component, its folders). The wire is a layer with a single component."""
    for layer in subfolders(os.path.join(source, "src")):
        folder = os.path.join(source, "src", layer)
        machines = subfolders(os.path.join(folder, "arch"))
        for component in subfolders(folder):
            own = [os.path.join(folder, "arch", machine, component) for machine in machines]
            if component != "arch":
                for arch in [path for path in own if os.path.isdir(path)] or [None]:
                    yield layer, component, [os.path.join(folder, component), *([arch] if arch else [])]
        for machine in machines:
            for component in subfolders(os.path.join(folder, "arch", machine)):
                if not os.path.isdir(os.path.join(folder, component)):
                    yield layer, component, [os.path.join(folder, "arch", machine, component)]
        if any(name.endswith(CODE) for name in os.listdir(folder)):
            yield layer, layer, [folder]


def files(paths, endings=CODE):
    """The paths of a component's files."""
    return [os.path.join(folder, name) for folder in paths for name in sorted(os.listdir(folder))
            if name.endswith(endings)]


def table(source):
    """For each component, the components that the table gives it."""
    text = read(os.path.join(source, "docs", "design.md"))
    return {name.split("/")[-1]: set(re.findall(r"[a-z_]+", used)) - {"nothing"} for name, used in ROW.findall(text)}


def arrows(paths, component):
    used = set()
    for path in files(paths):
        used |= {header for header, _ in INCLUDE.findall(read(path))}
    return used - {component}


def check_arrows(components, allowed):
    layer_of = {component: layer for layer, component, _ in components}
    places = collections.defaultdict(list)
    for layer, component, paths in components:
        places[layer, component] += paths
    for (layer, component), paths in places.items():
        if layer not in LAYERS:
            yield f"src/{layer} is not a layer"
            continue
        if component not in allowed:
            yield f"{layer}/{component} is not in the table of docs/design.md"
            continue
        used = arrows(paths, component)
        for other in sorted(used - allowed[component]):
            yield f"{layer}/{component} uses {other}, which the table does not give it"
        for other in sorted(allowed[component] - used):
            yield f"{layer}/{component} does not use {other}, though the table says so"
        for other in sorted(used):
            if other != "clrsnap" and layer_of.get(other) not in LAYERS[layer]:
                yield f"{layer}/{component} uses {other}, which is of the layer {layer_of.get(other)}"
    for component in sorted(set(allowed) - set(layer_of)):
        yield f"the table of docs/design.md has {component}, which is not a directory"


def check_cycles(allowed):
    done = set()

    def visit(component, above):
        if component in above:
            yield "a cycle of components: " + " -> ".join([*above[above.index(component):], component])
        elif component not in done:
            for other in sorted(allowed.get(component, ())):
                yield from visit(other, [*above, component])
            done.add(component)

    for component in sorted(allowed):
        yield from visit(component, [])


def code_of(text):
    """The text without comments and strings."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.S)


def uses_of_files(paths):
    """For each stem, the other stems of the component whose functions its files use. A stem is a.c and a.h together."""
    texts = collections.defaultdict(str)
    for path in files(paths):
        texts[os.path.basename(path).rsplit(".", 1)[0]] += read(path) + "\n"
    code = {stem: re.sub(r"__attribute__\(\(.*?\)\)", "", code_of(text)) for stem, text in texts.items()}
    home = {name: stem for stem, text in code.items() for head, name in DEFINED.findall(text) if "static" not in head}
    uses = {}
    for stem, text in code.items():
        uses[stem] = {home[word] for word in set(re.findall(r"\w+", DECLARED.sub(" ", text))) & set(home)} - {stem}
    return uses


def reach_of(uses, start):
    reached, todo = set(), [start]
    while todo:
        for other in uses[todo.pop()] - reached:
            reached.add(other)
            todo.append(other)
    return reached


def cycles_of(uses):
    reach = {stem: reach_of(uses, stem) for stem in uses}
    return {frozenset(b for b in reach[a] if a in reach[b]) for a in uses if a in reach[a]}


def check_file_cycles(components, source):
    listed = {(component, frozenset(re.findall(r"\w+", stems)))
              for component, stems in CYCLE.findall(read(os.path.join(source, "docs", "design.md")))}
    names = {name: f"{layer}/{name}".replace("wire/wire", "wire") for layer, name, _ in components}
    there = {(names[component], cycle) for _, component, paths in components for cycle in cycles_of(uses_of_files(paths))}
    for component, cycle in sorted(there - listed, key=str):
        yield f"a cycle of files in {component}, which docs/design.md gives no reason for: {', '.join(sorted(cycle))}"
    for component, cycle in sorted(listed - there, key=str):
        yield f"docs/design.md has a cycle of files in {component} that does not exist: {', '.join(sorted(cycle))}"


def check_names(components):
    places = collections.defaultdict(set)
    for layer, component, paths in components:
        for path in files(paths):
            text, where = read(path), f"{layer}/{component}/{os.path.basename(path)}"
            if path.endswith(".h") and "#pragma once\n" not in text:
                yield f"{where} lacks #pragma once"
            for kind in re.findall(r"^(?:struct|enum|union) cs_\w+(?= \{)", text, re.M):
                places[kind].add(where)
    for name, where in sorted(places.items()):
        if len(where) > 1:
            yield f"{name} stands in {', '.join(sorted(where))}"


def check_columns(path, name):
    lines = read(path).split("\n") if path.endswith(CODE) else []
    for number, line in enumerate(lines, 1):
        if len(line) > MOST_COLUMNS:
            yield f"{name}:{number} has {len(line)} columns; {MOST_COLUMNS} are allowed"


def check_sizes(components):
    for layer, component, paths in components:
        all_files = files(paths, TEXT)
        if len(all_files) > MOST_FILES:
            yield f"{layer}/{component} has {len(all_files)} files; {MOST_FILES} are allowed"
        for path in all_files:
            lines, name = read(path).split("\n"), f"{layer}/{component}/{os.path.basename(path)}"
            if len(lines) > MOST_LINES + 1:
                yield f"{name} has {len(lines) - 1} lines; {MOST_LINES} are allowed"
            yield from check_columns(path, name)


def check_tests(source):
    for at, _, names in os.walk(os.path.join(source, "tests")):
        count = sum(name.endswith(TESTS) for name in names)
        if count > MOST_FILES:
            yield f"{os.path.relpath(at, source)} has {count} files; {MOST_FILES} are allowed"
        for path in (os.path.join(at, name) for name in names):
            yield from check_columns(path, os.path.relpath(path, source))


def check_architectures(source):
    """Each header of an architecture that code outside of it includes is there for every one; and in a layer with
    architectures, no file outside of them has names or instructions of one."""
    for layer in subfolders(os.path.join(source, "src")):
        top = os.path.join(source, "src", layer, "arch")
        machines = subfolders(top)
        headers = {machine: {os.path.relpath(os.path.join(at, name), os.path.join(top, machine))
                             for at, _, names in os.walk(os.path.join(top, machine)) for name in names
                             if name.endswith(".h")} for machine in machines}
        used = {f"{component}/{header}" for at, _, names in os.walk(os.path.join(source, "src")) for name in names
                if name.endswith(CODE) and "/arch/" not in at + "/"
                for component, header in INCLUDE.findall(read(os.path.join(at, name)))}
        for header in sorted(used & set().union(*headers.values())):
            for machine in machines:
                if header not in headers[machine]:
                    yield f"{layer}/arch/{machine} lacks {header}, which code of all architectures includes"
        for at, _, names in os.walk(os.path.join(source, "src", layer)) if machines else ():
            for path in [os.path.join(at, name) for name in sorted(names) if name.endswith(CODE)]:
                found = None if "/arch/" in path else OF_ONE.search(EMBEDDED.sub("", code_of(read(path))))
                if found:
                    yield f"{os.path.relpath(path, source)} has {found[0]}, of one architecture, outside of arch/"


def check(source):
    components, allowed = list(folders(source)), table(source)
    found = [*check_arrows(components, allowed), *check_cycles(allowed), *check_file_cycles(components, source),
             *check_names(components), *check_sizes(components), *check_tests(source),
             *check_architectures(source)]
    return list(dict.fromkeys(found)) if components else ["there are no components"]


def self_test():
    good = {
        "docs/design.md": "| component | does | uses |\n| `core/base` | x | nothing |\n| `core/walk` * | x | base |\n"
        "| `command/cli` | x | walk |\n",
        "src/core/base/base.h": "#pragma once\nstruct cs_base {\n",
        "src/core/walk/walk.c": '#include "base/base.h"\n#include "walk/walk.h"\n',
        "src/command/cli/main.c": '#include "walk/walk.h"\n',
    }
    faults = {
        "not in the table": {"src/core/new/new.c": "\n"},
        "which the table does not give it": {"src/command/cli/main.c": '#include "walk/a.h"\n#include "base/base.h"\n'},
        "though the table says so": {"src/command/cli/main.c": "\n"},
        "which is of the layer command": {"src/core/walk/walk.c": '#include "base/a.h"\n#include "cli/a.h"\n'},
        "which is not a directory": {"docs/design.md": good["docs/design.md"] + "| `core/gone` | x | nothing |\n"},
        "a cycle of components: base -> walk -> base": {
            "docs/design.md": good["docs/design.md"].replace("nothing", "walk"),
            "src/core/base/base.h": '#include "walk/walk.h"\n',
        },
        "a cycle of files in core/base, which docs/design.md gives no reason for: a, b": {
            "src/core/base/base.h": good["src/core/base/base.h"] + "int f(int);\nint g(int x);\n",
            "src/core/base/a.c": '#include "base/base.h"\nint f(int x) {\n  return g(x);\n}\n',
            "src/core/base/b.c": '#include "base/base.h"\nint g(\n  int x) {\n  return f(x - 1);\n}\n',
        },
        "which docs/design.md gives no reason for: c, d, e": {
            "src/core/base/c.c": "int c(int x) {\n  return d(x);\n}\n",
            "src/core/base/d.h": "inline int d(int x) {\n  return e(x);\n}\n",
            "src/core/base/e.c": "int (*const e)(int) = c;\nstruct s *e(struct s *x) {\n  return x;\n}\n",
        },
        "has a cycle of files in core/base that does not exist: a, b": {
            "docs/design.md": good["docs/design.md"] + "| `core/base`: `a`, `b` | recursion |\n",
            "src/core/base/b.c": "static int f(int x) {\n  return x;\n}\nint g(int x) {\n  // Not a().\n  return f(x);\n}\n",
            "src/core/base/b.h": "int a(int x);\n",
            "src/core/base/a.h": "int a(int x) {\n  return g(x);\n}\n",
            "src/core/base/c.c": "int c(int x) {\n  return g(x);\n}\n",
        },
        "core/base/other.h lacks #pragma once": {"src/core/base/other.h": "#ifndef CS_BASE_OTHER_H\n"},
        "struct cs_base stands in": {"src/core/walk/walk.h": "struct cs_base {\n"},
        "501 lines": {"src/core/walk/long.c": "\n" * 501},
        "base.h:1 has 101 columns": {"src/core/base/base.h": "//" + "x" * 99 + "\n"},
        "walk uses cli": {"src/core/arch/a/walk/x.c": '#include "cli/a.h"\n'},
        "core/new is not in the table": {"src/core/arch/a/new/x.c": "\n"},
        "reason for: f, g": {"src/core/arch/b/base/f.c": "int f(int x) {\n  return g(x);\n}\n",
                             "src/core/arch/a/base/f.c": "int f(int x) {\n  return x;\n}\n",
                             "src/core/base/g.c": "int g(int x) {\n  return f(x);\n}\n"},
        "src/core/walk/walk.c has CS_RBX": {"src/core/arch/a/base/one.h": "CS_RAX;\n", "src/core/walk/walk.c":
                                           good["src/core/walk/walk.c"] + "int x = CS_RBX; // CS_RCX\n"},
        "arch/b lacks base/one.h": {"src/core/arch/a/base/one.h": "\n", "src/core/arch/b/base/two.h": "\n",
                                    "src/core/walk/walk.c": good["src/core/walk/walk.c"] + '#include "base/one.h"\n'},
        "core/base has 41 files": {f"src/core/base/f{i}.c": "\n" for i in range(40)},
        "tests/live has 41 files": {f"tests/live/f{i}.sh": "\n" for i in range(41)},
    }
    one = "#pragma once\nstruct cs_one {\n"
    allowed = {"src/core/arch/a/base/one.h": one, "src/core/arch/b/base/one.h": one,
               "src/core/walk/walk.c": good["src/core/walk/walk.c"] + '#include "base/one.h"\n'}
    for expected, changed in [(None, {}), (None, allowed), *faults.items()]:
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
