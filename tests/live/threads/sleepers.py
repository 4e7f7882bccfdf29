#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sleepers.py session PID: keeps an EventPipe session open, as tools do, and throws away what comes.
sleepers.py check FILE.clrsnap SAID whole|cut: is what the recording has of the threads of "Callers asleep" and of the thread of the
session what these threads say of themselves?"""
import re
import socket
import struct
import sys
import tempfile

from recfile import Tree, records, samples

EVENT_PIPE, BLOCKED = ".NET EventPipe", "s-blocked"
CUT = 3  # a frame of this kind is in place of what is missing of a stack
RARELY = 6  # signals to a thread beside those for samples of it, and beside one a second
NS = 12 * 10**9


def session(pid):
    def string(s):
        units = (s + "\0").encode("utf-16-le")
        return struct.pack("<I", len(units) // 2) + units

    provider = struct.pack("<QI", 1, 4) + string("Microsoft-Windows-DotNETRuntime") + string("")
    payload = struct.pack("<IIBI", 16, 1, 0, 1) + provider
    # A killed program leaves its socket behind; the number in the name is when the process has started.
    started = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[19]
    path = f"{tempfile.gettempdir()}/dotnet-diagnostic-{pid}-{started}-socket"
    port = socket.socket(socket.AF_UNIX)
    port.connect(path)
    port.sendall(b"DOTNET_IPC_V1\0" + struct.pack("<HBBH", 20 + len(payload), 2, 3, 0) + payload)
    if port.recv(20)[16:18] != b"\xff\x00":  # OK
        sys.exit("the runtime has refused the session")
    print("open", flush=True)
    while port.recv(65536):
        pass
    print("closed", flush=True)


def sums_by_thread(recording):
    """For each thread's name: its time waiting, running, and with stacks that were cut, in ns, and its samples by signal."""
    tree, sums = Tree(), {}
    for kind, payload in records(open(recording, "rb").read()):
        tree.take(kind, payload)
        if kind == 10:
            for _, weight, node, held in samples(payload):
                path, _, name = tree.path(node)
                is_cut = any(frame >> 62 == CUT for frame in path)
                one = sums.setdefault(name, {"waiting": 0, "running": 0, "signals": 0, "cut": 0})
                one["running" if held else "waiting"] += weight
                one["signals"] += held != 0
                one["cut"] += weight if is_cut else 0
    return sums


def faults(name, found, interrupted, awake, stacks):
    whole = found["waiting"] + found["running"]
    if whole < 0.9 * NS:
        yield "its time is not all there"
    if found["running"] > 2 * awake + 0.1 * whole:
        yield "it did not run for so long"
    if interrupted > RARELY + whole / 1e9 + found["signals"]:
        yield "it was woken too often"
    if stacks == "whole" and name != BLOCKED and found["cut"] > 0.1 * whole:
        yield f"its stacks are cut for {found['cut'] / 1e9:.3f} s"


def check(recording, said, stacks):
    sums = sums_by_thread(recording)
    told = {m[1]: (int(m[2]), int(m[3])) for m in re.finditer(r"^(s-\S+) interrupted (\d+) awake_ns (\d+)$", open(said).read(), re.M)}
    if len(told) < 7:
        sys.exit(f"only {len(told)} threads have said how they slept")
    wrong = 0
    for name, (interrupted, awake) in {**told, EVENT_PIPE: (0, 0)}.items():
        found = sums.get(name, {"waiting": 0, "running": 0, "signals": 0, "cut": 0})
        bad = list(faults(name, found, interrupted, awake, stacks))
        print(f"{name}: waiting {found['waiting'] / 1e9:.3f} s, running {found['running'] / 1e9:.3f}, cut {found['cut'] / 1e9:.3f}, "
              f"awake {awake / 1e9:.4f}, {found['signals']} samples by signal, interrupted {interrupted}: {', '.join(bad) or 'right'}")
        wrong += len(bad)
    if wrong:
        print("all threads:", {name: round((s["waiting"] + s["running"]) / 1e9, 3) for name, s in sums.items()})
    sys.exit(wrong != 0)


if sys.argv[1] == "session":
    session(int(sys.argv[2]))
else:
    check(*sys.argv[2:])
