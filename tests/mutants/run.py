#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py BUILD SOURCE MATERIAL [NAME...]: would the oracles notice? Faults are put into copies of the signal-safe
island, one at a time; the oracle that is named beside each, in its short form, has to fail by it, and has to pass
without any. A fault is a change of one place in one file: if that place is not there (once), this fails, and the fault
has to be put in anew. With NAMEs: only those faults.

Each oracle is run by the code that handlers run, so this is also the proof that they enter it: among the faults are
traps at the heads of the loops."""
import os
import shutil
import subprocess
import sys
import tempfile

STEP = "step"        # the every-instruction oracle
HIJACK = "hijack"    # the same, over return addresses that the runtime has replaced
EXCEPTION = "throw"  # the same, over an exception
CLRMD = "remote"     # the walks that ClrMD is compared with, over all threads of a program

# name, oracle, file, what stands there, what is put there
FAULTS = [
    # The loop over known call sites (walk/run.c), in which handlers spend most of a walk.
    ("trap in the handler's loop", STEP, "core/arch/x86_64/walk/run.c",
     "  cs_site site = run->site;\n", "  cs_site site = run->site;\n  __builtin_trap();\n"),
    ("trap in the handler's loop", CLRMD, "core/arch/x86_64/walk/run.c",
     "  cs_site site = run->site;\n", "  cs_site site = run->site;\n  __builtin_trap();\n"),
    ("a known frame is left out", STEP, "core/arch/x86_64/walk/run.c",
     "      words[count++] = run.ip", "      words[count += count != 3] = run.ip"),
    ("rbp is not followed", STEP, "core/arch/x86_64/walk/run.c",
     "    run->rbp = restored(cfa, rule->saved[CS_CFI_RBP], run->rbp);", "    run->rbp += 0;"),
    ("saved registers are not followed", STEP, "core/arch/x86_64/walk/run.c",
     "run->saved[i] = restored(cfa, rule->saved[i], run->saved[i]);", "run->saved[i] += 0;"),
    ("what was known is forgotten", STEP, "core/arch/x86_64/walk/run.c",
     "    run->known |= rule->restores;", "    run->known |= 0;"),
    ("the registers are not followed once more", HIJACK, "core/arch/x86_64/walk/run.c",
     "  if (count != 0 && !CS_SITE_IS_BASE(run.site) && until != 0) {",
     "  if (count == 1 && !CS_SITE_IS_BASE(run.site) && until != 0) {"),
    ("a call site that is not known ends the walk", STEP, "core/arch/x86_64/walk/run.c",
     "if (ip == 0 || cs_codemap_find_near", "if (ip != 0) return 1ull << 50;\n  if (ip == 0 || cs_codemap_find_near"),
    # The cache.
    ("another address' call site is taken", STEP, "core/unwind/sites.c",
     "    if (site != 0 && cs_site_has_tag(site, hash)) return site;", "    if (site != 0) return site;"),
    ("a rule is kept without a register", STEP, "core/unwind/sites.c",
     "      sites->rules[index] = *rule;\n", "      sites->rules[index] = *rule;\n      sites->rules[index].saved[1] = 0;\n"),
    ("rbp is looked for where it is not", STEP, "core/unwind/sites.c",
     "compacted.saved[CS_CFI_FP] == -2", "compacted.saved[CS_CFI_FP] != 0"),
    ("code that may die is kept with another frame's size", STEP, "core/unwind/sites.c",
     "  site |= CS_SITE_TAG(hash);", "  site |= CS_SITE_TAG(hash);\n  site += 1ull << CS_SITE_CFA_AT;"),
    # The sample and the capture.
    ("an interrupted frame is no longer exact", STEP, "library/signal/sample.c",
     "(frame.flags & CS_FRAME_EXACT) != 0);", "false);"),
    ("a record lacks its flags", STEP, "library/signal/capture.c",
     "  out->flags = (uint8_t)frame->flags;", "  out->flags = 0;"),
    # The exact walk: how it steps over each kind of code.
    ("trap in the exact loop", STEP, "core/walk/walk.c",
     "  enum cs_stop stop = CS_STOP_NONE;\n  if (walk->site", "  __builtin_trap();\n  enum cs_stop stop = CS_STOP_NONE;\n  if (walk->site"),
    ("a return address is looked up behind the call", CLRMD, "core/walk/walk.c",
     "find_code(walk, exact ? ip : ip - 1)", "find_code(walk, ip + 64)"),
    ("prologs and epilogs are not minded", STEP, "core/walk/walk.c",
     "return cs_unwind_managed(walk->world, code, &walk->stack, exact, regs);",
     "return cs_unwind_managed(walk->world, code, &walk->stack, false, regs);"),
    ("epilogs are not minded", STEP, "core/arch/x86_64/unwind/epilog.c",
     "  bool on_stack = pop_saved(&w, step);", "  bool on_stack = false;"),
    ("native code is stepped over by the row before", STEP, "core/unwind/native.c",
     "find_rule(images->rules, code->image, ip, exact);", "find_rule(images->rules, code->image, ip, false);"),
    ("a stub's caller is one word further up", STEP, "core/arch/x86_64/walk/stub.c",
     "if (len >= 5 && b[len - 5] == 0xE8) return true;", "if (len >= 5 && b[len - 5] == 0xE8) return false;"),
    ("a replaced return address is not seen", HIJACK, "core/walk/walk.c",
     "  uint64_t slot, address;\n", "  uint64_t slot, address;\n  if (walk->depth != 0) return false;\n"),
    ("where a context leads is not seen", EXCEPTION, "core/arch/x86_64/unwind/special.c",
     "  next.r[CS_RIP] = words[RIP / 8];", "  next.r[CS_RIP] = words[RIP / 8] + 1;"),
]


def fail(text):
    print(f"FAIL: {text}")
    sys.exit(1)


class Tree:
    """A copy of the sources and a build of it, in which one file at a time is replaced."""

    def __init__(self, work, build, source):
        self.source, self.copy, self.build = source, os.path.join(work, "source"), os.path.join(work, "build")
        shutil.copytree(source, self.copy, ignore=shutil.ignore_patterns(".git", "build", "bin", "obj"))
        settings = os.path.join(self.copy, "CMakeLists.txt")
        with open(settings, encoding="utf-8") as file:
            text = file.read()
        with open(settings, "w", encoding="utf-8") as file:
            file.write(text.replace(" -Werror ", " "))  # a fault may leave something unused
        compiler = None
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
            for line in cache:
                if line.startswith("CMAKE_C_COMPILER:"):
                    compiler = line.split("=", 1)[1].strip()
        self.run("cmake", "-S", self.copy, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 f"-DCMAKE_C_COMPILER={compiler}")

    @staticmethod
    def run(*words):
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            print(done.stdout)
            fail(f"{' '.join(words[:3])} ended with {done.returncode}")

    def make(self):
        self.run("cmake", "--build", self.build, "--target", "step", "stepmark", "remote_walk")

    def put(self, name, old, new):
        path = os.path.join("src", name)
        with open(os.path.join(self.source, path), encoding="utf-8") as file:
            text = file.read()
        if text.count(old) != 1:
            fail(f"'{old.strip()}' is {text.count(old)} times in {path}: this fault has to be put in anew")
        self.write(path, text.replace(old, new))

    def restore(self, name):
        path = os.path.join("src", name)
        with open(os.path.join(self.source, path), encoding="utf-8") as file:
            self.write(path, file.read())

    def write(self, path, text):
        with open(os.path.join(self.copy, path), "w", encoding="utf-8") as file:
            file.write(text)


def look(tree, material, oracle):
    """The oracle's exit code and its output."""
    command = [os.path.join(tree.build, "bin", "step")]
    app = ["--", "dotnet", os.path.join(material, "apps", "Step", "Step.dll"), "1"]
    how = {
        STEP: ["-x", "-q", "600", "-j", "200", *app, ""],
        HIJACK: ["-x", "-q", "40000", "-j", "100", *app, "replaced"],
        EXCEPTION: ["-x", "-q", "16000", *app, "caught in the same method"],
    }
    environment = dict(os.environ, STEP_MARK_LIB=os.path.join(tree.build, "lib", "libstepmark.so"))
    if oracle == HIJACK:
        environment["DOTNET_TieredCompilation"] = "0"
    if oracle == CLRMD:
        command = [os.path.join(tree.source, "tests", "live", "stack", "remote.sh"), tree.build, tree.source, material]
    else:
        command += how[oracle]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True,
                          timeout=300, check=False)
    return done.returncode, done.stdout


def last_words(text):
    lines = [line for line in text.splitlines() if "WRONG" in line or "cut in" in line or "FAIL" in line]
    return (lines or text.splitlines() or ["it died"])[0].strip()[:110]


def main():
    build, source, material, *names = sys.argv[1:]
    faults = [fault for fault in FAULTS if not names or fault[0] in names]
    if shutil.which("dotnet") is None:
        print("skipped: there is no dotnet command")
        sys.exit(77)
    missed = 0
    with tempfile.TemporaryDirectory() as work:
        tree = Tree(work, build, os.path.abspath(source))
        tree.make()
        for oracle in sorted({fault[1] for fault in faults}):
            code, text = look(tree, material, oracle)
            if code != 0:
                print(text[-3000:])
                fail(f"the oracle '{oracle}' fails without any fault")
        for name, oracle, file, old, new in faults:
            tree.put(file, old, new)
            tree.make()
            # Whether a return address is replaced during a run depends on the machine.
            for _ in range(20 if oracle == HIJACK else 1):
                code, text = look(tree, material, oracle)
                if code != 0:
                    break
            tree.restore(file)
            missed += code == 0
            print(f"{'noticed' if code != 0 else 'MISSED '} by {oracle:7} {name}: {last_words(text) if code else ''}", flush=True)
    if missed:
        fail(f"{missed} of {len(faults)} faults are not noticed")
    print(f"{len(faults)} faults, each noticed")


if len(sys.argv) < 4:
    print(__doc__)
    sys.exit(2)
main()
