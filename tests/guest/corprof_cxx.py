#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""corprof_cxx.py INCLUDE_DIR OUT: writes the profiling API as a C++ profiler sees it.

Microsoft's own headers declare the interfaces for C++ as chains of abstract classes, and no package provides those
headers. This script derives the classes from clrsnap's C tables (corprof.h, cormeta.h): one class per interface, in
slot order, each derived from the one before it. The classes cannot drift away from the tables, because they are
generated from them, and static_asserts on the number of slots check the result again.

It also writes ProfilerCallbackBase, in which every callback returns S_OK through one function (`any`) that a derived
class may override. An unexpected line is an error and is never skipped: one missing method would shift all later slots.
"""
import re
import sys

# The table of a family, and the comment at which its members begin: "// NAME" or "// NAME: from slot N".
MACRO = re.compile(r"^#define (\w+)\(([\w, ]+)\)\s+(.*)$")
TABLE = re.compile(r"typedef struct (\w+)Vtbl \{(.*?)\} \1Vtbl;", re.S)
MEMBER = re.compile(r"^(HRESULT|ULONG|BOOL|void \*|void) ?\(\*(\w+)\) ?\((\w+) \*(?:, ?(.*))?\)$", re.S)
MARK = re.compile(r"^// (I\w+)(?:: from slot (\d+))?$")


def fail(text):
    sys.exit(f"corprof_cxx.py: {text}")


def read(path):
    """The header with continued lines joined, and with function-like macros removed and their uses expanded."""
    text = re.sub(r"\\\n", " ", open(path, encoding="ascii").read())
    macros, lines = {}, []
    for line in text.split("\n"):
        found = MACRO.match(line)
        if found and found[1] not in ("CLRSNAP_SLOT", "CLRSNAP_IID"):
            macros[found[1]] = ([name.strip() for name in found[2].split(",")], found[3])
        else:
            lines.append(line)
    text = "\n".join(lines)
    for name, (parameters, body) in macros.items():
        def expand(use, parameters=parameters, body=body):
            values = [value.strip() for value in use[1].split(",")]
            if len(values) != len(parameters):
                fail(f"{path}: {use[0]} does not fit its macro")
            result = body
            for parameter, value in zip(parameters, values):
                result = re.sub(rf"\b{parameter}\b", value, result)
            return re.sub(r"\s*##\s*", "", result) + ";"
        text = re.sub(rf"\b{name}\(([^)]*)\);", expand, text)
    return text


def parameters_of(text):
    """Pointers to GUIDs in C are references in C++; the ABI is the same."""
    flat = re.sub(r"\s+", " ", text or "").strip()
    return re.sub(r"\bREF(?:IID|GUID|CLSID)\b", "const GUID &", flat)


def members_of(family, body):
    """A list of (interface, return type, method, parameters) in slot order."""
    interface, members = family, []
    body = re.sub(r"//(?! I\w+(?:: from slot \d+)?$).*$", "", body, flags=re.M)
    for piece in re.split(r"(//[^\n]*)|;", body):
        piece = re.sub(r"\s+", " ", piece or "").strip()
        if not piece:
            continue
        mark = MARK.match(piece)
        if mark:
            interface = mark[1]
            if mark[2] and int(mark[2]) != len(members):
                fail(f"{interface} begins at slot {len(members)}, not at {mark[2]}")
            continue
        member = MEMBER.match(piece)
        if not member or member[3] != family:
            fail(f"{family}: not understood: {piece}")
        members.append((interface, member[1], member[2], parameters_of(member[4])))
    if [m[2] for m in members[:3]] != ["QueryInterface", "AddRef", "Release"]:
        fail(f"{family} does not begin as IUnknown does")
    return members


def names_only(parameters):
    """The types of the parameters without their names, so that the compiler reports no unused parameter."""
    out = []
    for parameter in filter(None, parameters.split(", ")):
        found = re.match(r"^(.*?)(\w+)(\[\])?$", parameter)
        out.append(found[1].strip() + (" *" if found[3] else ""))
    return ", ".join(out)


def write_chain(out, members, family):
    """One class for each interface of the family, with the methods that the interface adds."""
    base = "IUnknown"
    order = list(dict.fromkeys(m[0] for m in members[3:])) or [family]
    for interface in order:
        out.append(f"struct {interface} : {base} {{")
        for _, result, method, parameters in (m for m in members[3:] if m[0] == interface):
            out.append(f"  virtual {result} {method}({parameters}) = 0;")
        out.append("};")
        base = interface
    if order[-1] != family:
        fail(f"{family}'s table ends with {order[-1]}")


def write_base(out, members):
    out.append("struct ProfilerCallbackBase : ICorProfilerCallback11 {")
    out.append("  virtual HRESULT any(const char *) { return S_OK; }")
    for _, result, method, parameters in members[3:]:
        out.append(f"  {result} {method}({names_only(parameters)}) override {{ return any(\"{method}\"); }}")
    out.append("};")


def main():
    folder = sys.argv[1] + "/clrsnap/"
    headers = [read(folder + "cormeta.h"), read(folder + "corprof.h")]
    out = ["// Made by tests/guest/corprof_cxx.py from clrsnap/corprof.h and clrsnap/cormeta.h.",
           "#pragma once", '#include "clrsnap/cortypes.h"']
    iids = re.findall(r"^CLRSNAP_IID\((\w+), ?([^)]*)\);", headers[1], re.M)
    for name, numbers in iids:
        parts = [part.strip() for part in numbers.split(",")]
        out.append(f"constexpr GUID IID_{name} = {{{', '.join(parts[:3])}, {{{', '.join(parts[3:])}}}}};")
    for name, head, tail in re.findall(r"GUID IID_(\w+) __attribute__\(\(unused\)\) = \{\s*"
                                       r"([^{]*), \{([^}]*)\}\};", headers[0]):
        out.append(f"constexpr GUID IID_{name} = {{{head}, {{{tail}}}}};")
    out += re.findall(r"^#define of\w+ \w+$", headers[0], re.M)
    tables = [(name, members_of(name, body)) for h in headers for name, body in TABLE.findall(h)]
    tables.sort(key=lambda table: table[0] != "IUnknown")
    for name in dict.fromkeys([m[0] for _, members in tables for m in members] + [t[0] for t in tables]):
        out.append(f"struct {name};")
    out.append("struct ICorProfilerAssemblyReferenceProvider;")
    for line in re.findall(r"^typedef [\w ]+ \**\w+\((?:[^()]*)\);", headers[1], re.M):
        out.append(re.sub(r"\s+", " ", line))
    out.append("struct IUnknown {\n  virtual HRESULT QueryInterface(const GUID &iid, void **out) = 0;\n"
               "  virtual ULONG AddRef() = 0;\n  virtual ULONG Release() = 0;\n};")
    for name, members in tables[1:]:
        write_chain(out, members, name)
        if name == "ICorProfilerCallback11":
            write_base(out, members)
    wanted = {"ICorProfilerCallback11": 98, "ICorProfilerInfo15": 115, "IMetaDataImport2": 73}
    for name, members in tables:
        if name in wanted and len(members) != wanted.pop(name):
            fail(f"{name} has {len(members)} slots")
    if wanted:
        fail(f"not found: {', '.join(wanted)}")
    with open(sys.argv[2], "w", encoding="ascii") as file:
        file.write("\n".join(out) + "\n")


main()
