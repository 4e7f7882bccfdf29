#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""costs.py CLRSNAP APP: a program that throws, allocates and waits as fast as it can (tests/apps/Costs) is recorded in all
modes and left alone by turns. Its CPU time per operation, including the agent's, must not multiply. As a
control it is also recorded with every event walked, which must show. In a mode of events alone the agent's thread wakes up
less often than in cpu mode, whose rounds are 10 ms apart."""
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TURNS = 3
SECONDS = 1.5  # of each turn that counts
MODES = "cpu,alloc,lock,exception,gc,wait"
# The runtime itself takes half a microsecond for an event, beside one and a half for an exception and five for what an event of an
# allocation stands for. A walk of each event by 40 us makes it thirty times, nine times, and five times as much.
ROUND = 0.01  # s, of the agent's thread in cpu mode
MOST = {"throw": 1.7, "alloc": 2.5, "wait": 2.0}


def agent_of(pid):
    """The agent's thread; None: there is none."""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            if open(f"/proc/{pid}/task/{task}/comm").read() == ".clrsnap\n":
                return task
    except FileNotFoundError:  # a thread that has just ended
        return agent_of(pid)
    return None


def is_recorded(pid):
    return agent_of(pid) is not None


def sleeps(pid):
    """How often the agent's thread has gone to sleep."""
    with open(f"/proc/{pid}/task/{agent_of(pid)}/status") as status:
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)$", status.read(), re.M)[1])


def wait_for(what, said):
    for _ in range(600):
        if what():
            return
        time.sleep(0.05)
    raise SystemExit(f"FAIL: {said}")


def window():
    time.sleep(0.3)
    begin = time.monotonic_ns()
    time.sleep(SECONDS)
    return begin, time.monotonic_ns()


def recorded(clrsnap, pid, work, options, modes=MODES, within=window):
    recorder = subprocess.Popen([clrsnap, "record", "--mode", modes, *options, "-o", f"{work}/out.clrsnap", str(pid)],
                                stderr=subprocess.PIPE, text=True)
    wait_for(lambda: is_recorded(pid) or recorder.poll() is not None, "nothing is recorded")
    span = within()
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=300)[1]
    if recorder.returncode != 0:
        raise SystemExit(f"FAIL: {said}")
    wait_for(lambda: not is_recorded(pid), "it is still recorded")
    return span, said


def wakes(clrsnap, pid, work):
    """How often the agent's thread wakes up in a mode of events alone, for each round of cpu mode's."""
    def count():
        time.sleep(2.5)  # in its first two seconds, a recording is drained as often in every mode
        before, begin = sleeps(pid), time.monotonic()
        time.sleep(SECONDS)
        return (sleeps(pid) - before) / ((time.monotonic() - begin) / ROUND)
    return recorded(clrsnap, pid, work, [], "exception", count)[0]


def read_slices(path):
    with open(path) as lines:
        for line in lines:
            if line.count(" ") == 4 and line.endswith("\n"):
                kind, *numbers = line.split()
                yield kind, *map(int, numbers)


def cost(slices, kind, spans):
    """Median CPU time of an operation, in us, over the slices within these spans."""
    each = [cpu / count for of, begin, end, count, cpu in slices
            if of == kind and any(begin >= span[0] and end <= span[1] for span in spans)]
    if len(each) < 3 * len(spans):
        raise SystemExit(f"FAIL: {len(each)} slices of {kind} in {len(spans)} turns")
    return statistics.median(each)


def measure(clrsnap, app):
    """What was wrong: sentences."""
    alone, by_default, all_walked = [], [], []
    with tempfile.TemporaryDirectory() as work, open(f"{work}/slices", "w") as out:
        program = subprocess.Popen(["dotnet", app], stdin=subprocess.PIPE, stdout=out)
        time.sleep(1)
        for _ in range(TURNS):
            alone.append(window())
            span, said = recorded(clrsnap, program.pid, work, [])
            by_default.append(span)
            alone.append(window())
            all_walked.append(recorded(clrsnap, program.pid, work, ["--alloc", "100k", "--event-rate", "1000000"])[0])
        often = wakes(clrsnap, program.pid, work)
        program.stdin.close()
        if program.wait(timeout=300) != 0:
            raise SystemExit("FAIL: the program")
        slices = list(read_slices(f"{work}/slices"))
    print(said)
    bad = []
    for kind, most in MOST.items():
        own = cost(slices, kind, alone)
        ratio, control = cost(slices, kind, by_default) / own, cost(slices, kind, all_walked) / own
        print(f"{kind}: {own:.1f} us; recorded {ratio:.2f} times that, at most {most}; with all events walked {control:.2f}")
        if ratio > most:
            bad.append(f"{kind} costs {ratio:.2f} times as much while it is recorded")
        if kind == "throw" and control < 1.15 * ratio:
            bad.append("that every exception was walked is not to be seen")
    print(f"exception mode: the agent's thread wakes up {often:.2f} times in a round of cpu mode's")
    if not 0 < often < 0.5:
        bad.append("in a mode of events alone the agent's thread does not sleep for longer")
    return bad


def main():
    # Other programs on the machine may take more from some turns than from others; what is wrong is so each time.
    for _ in range(3):
        bad = measure(*sys.argv[1:])
        if not bad:
            return
        print("; ".join(bad))
    sys.exit("FAIL: " + "; ".join(bad))


if __name__ == "__main__":
    main()
