# SPDX-License-Identifier: MIT
"""completion_zsh.py FOLDER VERB...: makes a zsh on a terminal list its completions, and looks for each verb and each
option (VERB.options in this folder)."""
import os
import pty
import re
import select
import sys
import time

folder, *verbs = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(TERM="dumb", COLUMNS="200", LINES="200", ZDOTDIR="/nonexistent", LC_ALL="C.UTF-8")
    os.execvp("zsh", ["zsh", "-f", "-i"])


def answer(text, until, seconds=30):
    """Types the text, and returns the output up to the pattern."""
    os.write(terminal, text.encode())
    shown, end = "", time.monotonic() + seconds
    while not re.search(until, shown):
        if time.monotonic() > end:
            sys.exit(f"FAIL: {text!r}: {until!r} never comes: {shown!r}")
        if select.select([terminal], [], [], 0.1)[0]:
            shown += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", os.read(terminal, 65536).decode(errors="replace"))
    return shown


answer(f"stty rows 200 cols 200; unsetopt zle_bracketed_paste always_last_prompt prompt_cr; PS1='READY> '; LISTMAX=0; fpath=({folder} $fpath)\n", r"\nREADY> ")
answer("autoload -Uz compinit; compinit -u -D; print DO'NE'\n", r"DONE\n[^\n]*READY> ")


def listed(line):
    """The words that Ctrl-D lists after the line."""
    # Ctrl-D, followed by a command of its own, whose output marks the end of the list.
    os.write(terminal, (line + "\x04").encode())
    shown = answer("", r"\nREADY> clrsnap")
    answer("\x15print NE'XT'\n", r"NEXT\n[^\n]*READY> ")
    return set(re.findall(r"(?m)(?:^|\s)(-{0,2}[A-Za-z][\w.-]*)", shown))


failed = False
for line, wanted in [("clrsnap ", set(verbs))] + [
    (f"clrsnap {verb} --", set(open(f"{verb}.options").read().split()))
    for verb in verbs
    if os.path.exists(f"{verb}.options")
]:
    found = listed(line)
    if not wanted or wanted - found:
        print(f"FAIL: zsh does not offer {sorted(wanted - found)} for '{line}', but {sorted(found)}")
        failed = True
for line, wanted in (("clrsnap record --mode ", {"cpu", "wall", "alloc", "lock", "wait", "exception", "gc"}),
                     ("clrsnap record --event ", {"page-faults", "branch-misses"}), ("clrsnap diff --format ", {"md"}), ("clrsnap report --format ", {"html", "pprof"}),
                     ("clrsnap record -o new", {"new.html", "new.clrsnap"}), ("clrsnap report ", {"old.clrsnap"}),
                     ("clrsnap top --sort ", {"self", "total", "name"})):
    found = listed(line)
    if wanted - found:
        print(f"FAIL: zsh does not offer {sorted(wanted - found)} for '{line}', but {sorted(found)}")
        failed = True
sys.exit(failed)
