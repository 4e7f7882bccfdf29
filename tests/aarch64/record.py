#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""record.py FOLDER CLRSNAP: judges what record.sh has made in the emulated machine, which is in FOLDER. CLRSNAP is this
machine's command, which must make the same of each recording.

Every bound follows from the run itself, since an emulated machine is slow and its speed varies: shares and sums of samples
must be right to four standard deviations, which follow from the number of samples and their weights, and times to a
hundredth and what the program itself cannot tell apart. Exits with 1, and says why, if something is wrong; with 3 if there
are too few samples to tell."""
import json
import math
import pathlib
import re
import subprocess
import sys

SEVEN, THREE = "Proofs.Recorded.Seven", "Proofs.Recorded.Three"
SIGMAS = 4
ROUND_NS = 30e6  # of CPU time, in which Seven and Three have one turn each
OBJECT, ALLOC_STEP = 10_024, 100 << 10  # bytes of an array of 10,000 bytes; record.sh's --alloc
failed = few = False


def check(good, text):
    global failed
    failed |= not good
    print(f"{'ok' if good else 'FAIL'}: {text}")


def enough(good, text):
    """The machine was too slow to tell, so the test is to be repeated with a longer run."""
    global few
    few |= not good
    print(f"{'ok' if good else 'too few'}: {text}")


def near(what, has, truth, below, above=None, unit=1e6, name="ms"):
    above = below if above is None else above
    good = truth - below <= has <= truth + above
    check(good, f"{what}: {has / unit:.1f} {name}, truly {truth / unit:.1f} (-{below / unit:.1f}, +{above / unit:.1f})")


class Mode:
    """A mode of a recording as JSON: its facts, and its samples: (path, the thread's name first; weight in ns, bytes or 1)."""

    def __init__(self, data):
        self.facts = data["facts"]
        unit = 1000 if self.facts["unit"] == "nanoseconds" else 1
        names, paths, self.samples, at = data["strings"], [[]], [], 0
        for i, (back, frame) in enumerate(zip(data["parent"], data["frame"]), 1):
            name = names[(data["threads"][frame] if back == i else data["frames"][3 * frame :])[0]]
            paths.append(paths[i - back] + [name])
            count = data["self"][i - 1]
            self.samples += [(paths[i], weight * unit) for weight in data["timeWeight"][at : at + count]]
            at += count

    def weights(self, *frames):
        return [weight for path, weight in self.samples if set(frames) <= set(path)]


class Made:
    """What record.sh has left of one recording."""

    def __init__(self, folder, name, program=None):
        self.name, program = name, program or name
        read = lambda what: (folder / what).read_text()
        self.said, self.out = read(f"{name}.said"), read(f"{program}.out")
        self.modes = {}
        for data in json.loads(read(f"{name}.json"))["modes"]:
            self.modes[data["facts"]["mode"]] = Mode(data)
        self.truth = {}
        for word, _, values in re.findall(r"^truth (\w+)( (.*))$", self.out, re.M):
            self.truth[word] = [int(value) for value in values.split()]
        self.so_far = [tuple(map(int, line)) for line in re.findall(r"^so far (\d+) (\d+) (\d+)$", self.out, re.M)]
        # What the program prints and returns is its own.
        lines = [l for l in self.out.splitlines() if not re.fullmatch(r"(so far \d+|truth \w+ \d+)( \d+)*", l)]
        check(not lines and self.truth, f"{name}: the program's output is its own {lines}")
        codes = read(f"{program}.code"), read(f"{name}.code")
        check(codes == ("7\n", "7\n" if program == name else "0\n"), f"{name}: exit codes {codes}")
        said = [l for l in self.said.splitlines() if not l.startswith("clrsnap: ")]
        check(not said, f"{name}: nothing else on standard error {said}")

    def complete(self):
        """Nothing is lost, and walks are complete. The two exceptions are a matter of the emulator's speed: a thread that is in
        a handler for long counts as one that blocks its signals, and events are not walked if walks take too much time."""
        for mode, data in self.modes.items():
            facts = data.facts
            check(set(facts["lost"].values()) == {0}, f"{self.name}, {mode}: lost {facts['lost']}")
            stops = {token: count for token, _, count in facts["stops"]}
            late, blocked = stops.pop("put-off", 0), stops.pop("blocked", 0)
            check(not stops, f"{self.name}, {mode}: {facts['complete']} of {facts['samples']} complete, {late} put off {stops}")
            share = sum(data.weights("[cut: blocked]")) / max(1, sum(data.weights()))
            enough(late <= facts["samples"] / 5 and share <= 0.1, f"{self.name}, {mode}: {late + blocked} without a stack")

    def cpu_truth(self):
        """The CPU time of Seven and Three while it was recorded, to within a round at either end."""
        facts = next(iter(self.modes.values())).facts
        begin, end = facts["startMs"] * 10**6, (facts["startMs"] + facts["durationMs"]) * 10**6
        inside = [line for line in self.so_far if begin <= line[0] <= end]
        return [inside[-1][i] - inside[0][i] for i in (1, 2)]


def judge_shares(made, engine, most, whole):
    """The share of Seven in the time of both; and, if the recording has the whole run and can tell it, that time.

    A sample of the perf engine stands for the time since the thread's last one. It is wrong only if the method has changed in
    that time; then what is wrong of its weight is evenly distributed, so its square is a third of the weight's. A sample of
    the clock engine says nothing of other moments than its own."""
    mode = made.modes["cpu"]
    used = mode.facts["engine"]["used"]
    check(used == engine, f"{made.name}: engine {used}")
    seven, three = mode.weights(SEVEN), mode.weights(THREE)
    both, truth = seven + three, made.cpu_truth()
    share, true_share = sum(seven) / sum(both), truth[0] / sum(truth)
    alone = true_share * (1 - true_share)
    variance = sum(w * w * (min(alone, 2 * w / ROUND_NS / 3) if engine == "perf" else alone) for w in both)
    bound = SIGMAS * math.sqrt(variance) / sum(both)
    print(f"{made.name}: {len(both)} samples, the longest stands for {max(both) / 1e6:.1f} ms")
    enough(bound <= most, f"{made.name}: the share of Seven can be told to {100 * bound:.1f} points, {100 * most:.0f} at most")
    near(f"{made.name}: the share of Seven", share, true_share, bound, unit=0.01, name="%")
    if whole:
        chance = SIGMAS * math.sqrt(sum(w * w for w in both))
        near(f"{made.name}: CPU time of both", sum(both), sum(truth), chance + sum(mode.weights("[cut: blocked]")), chance)
    main = {path[0] for path, _ in mode.samples if SEVEN in path}
    check(main == {"Main"}, f"{made.name}: Seven ran on {main}")


def judge_wall(made):
    """Two threads are there all the time: one sleeps, and one works."""
    mode = made.modes["wall"]
    lasted, uncovered = mode.facts["durationMs"] * 1e6, mode.facts["uncoveredNs"]
    for who, frames in (("the sleeper", ("Sleeper", "Proofs.Recorded.Sleeps")),
                        ("the main thread", ("Main", "Proofs.Recorded.Shares"))):
        # Where this machine's processors are taken away, the emulated one's start of a recording takes 5 % of it.
        less = lasted / 12 + uncovered + sum(mode.weights("[cut: blocked]"))
        near(f"{made.name}: time of {who}", sum(mode.weights(*frames)), lasted, less, lasted / 100)
    count = len(mode.weights("Sleeper", "System.Threading.Thread.Sleep"))
    enough(count >= 30 and uncovered < lasted, f"{made.name}: {count} samples of the sleeper, {uncovered / 1e9:.1f} s not covered")


def judge_kernel(made):
    """Reading the clock of a thread is a system call, which is below the kernel's function for it, and above the program's."""
    mode = made.modes["cpu"]
    call = "__arm64_sys_clock_gettime [k]"
    paths = [path for path, _ in mode.samples if call in path]
    enough(len(paths) >= 5, f"{made.name}: {len(paths)} samples in {call}")
    callers = {next((name for name in path if name in (SEVEN, THREE)), path[0]) for path in paths}
    check(callers & {SEVEN, THREE}, f"{made.name}: it is called by {callers}")
    for path, _ in mode.samples:
        first = next((i for i, name in enumerate(path) if name.endswith(" [k]")), len(path))
        if not all(name.endswith(" [k]") for name in path[first:]):
            check(False, f"{made.name}: a frame of the program above one of the kernel: {path}")
            break


def judge_faults(made):
    """Those of Touches, as the kernel counts them for its thread, but for what came after the thread's last sample."""
    mode, truth = made.modes["page-faults"], made.truth["faults"][0]
    near(f"{made.name}: page faults", sum(mode.weights("Proofs.Recorded.Touches")), truth, truth / 10, truth / 50, 1, "faults")


def judge_lines(folder):
    """Each frame of the program has the line of its call, or of what it throws, in the source."""
    source = (pathlib.Path(__file__).parent / "program/Recorded.cs").read_text().splitlines()
    line = {text: next(i for i, one in enumerate(source, 1) if text in one)
            for text in ("Throws(5);", "Throws(depth - 1);", "throw new InvalidOperationException")}
    events, calls, throws = line.values()
    want = [("Events", events)] + 5 * [("Throws", calls)] + [("Throws", throws)]
    want = ";".join(f"Proofs.Recorded.{method} (Recorded.cs:{at})" for method, at in want)
    stacks = (folder / "lines.folded").read_text().splitlines()
    good = len(stacks) == 1 and stacks[0].endswith(f"{want};System.InvalidOperationException 5")
    check(good, f"lines: {want}" if good else f"lines: {stacks}, not {want}")


def judge_events(made):
    truth, modes = made.truth, made.modes
    began = modes["exception"].facts["startMs"] * 1_000_000
    enough(began < truth["begin"][0], f"{made.name}: recorded {(truth['begin'][0] - began) / 1e9:.1f} s before its first event")
    unknown = {mode: sum(data.weights("[cut: put-off]")) for mode, data in modes.items()}
    thrown = ["Proofs.Recorded.Events"] + 6 * ["Proofs.Recorded.Throws"] + ["System.InvalidOperationException"]
    count = sum(w for path, w in modes["exception"].samples if path[-len(thrown) :] == thrown)
    whole = sum(modes["exception"].weights())
    good = count + unknown["exception"] == whole == truth["thrown"][0]
    check(good, f"{count} exceptions where they are thrown, {whole} in all, truly {truth['thrown'][0]}")
    chance = 1 - math.exp(-OBJECT / ALLOC_STEP)
    objects = truth["objects"][0]
    sigma = OBJECT * math.sqrt(objects * (1 - chance) / chance)
    allocated = sum(modes["alloc"].weights("Proofs.Recorded.Allocates", "byte[]"))
    near("allocated", allocated, objects * OBJECT, SIGMAS * sigma + unknown["alloc"], SIGMAS * sigma, name="MB")
    # The runtime's events are about the wait proper; in the program's time its thread also runs, and waits for a processor.
    for mode, word, method, leaf in (("lock", "gate", "WaitsForGate", r"\[System\.Object held by (Holder|nobody.*)\]"),
                                     ("wait", "signal", "WaitsForSignal", r"WaitHandle\.WaitOne")):
        waits = [(path, w) for path, w in modes[mode].samples if f"Proofs.Recorded.{method}" in path]
        lasted, busy = truth[word]
        less = lasted / 50 + busy + unknown[mode]
        near(f"{mode}: {len(waits)} waits in {method}", sum(w for _, w in waits), lasted, less, lasted / 50)
        enough(len(waits) >= 5, f"{mode}: {len(waits)} waits")
        leaves = {path[-1] for path, w in waits if w > 0}
        check(all(re.fullmatch(leaf, one) for one in leaves), f"{mode}: what is waited for: {leaves}")
    pauses = [path[-1] for path, _ in modes["gc"].samples if "Proofs.Recorded.Collects" in path]
    own, late = pauses.count("[GC gen 2, induced, blocking]"), len(modes["gc"].weights("[cut: put-off]"))
    check(0 <= truth["collected"][0] - own <= late, f"gc: {own} collections by Collects, truly {truth['collected'][0]}")


def judge_reports(folder, clrsnap):
    """The command of this machine makes the same of a recording as the one of arm64."""
    for recording in sorted(folder.glob("*.clrsnap")):
        other = recording.with_suffix(".other.json")
        subprocess.run([clrsnap, "report", "-o", other, recording], check=True, stderr=subprocess.DEVNULL)
        theirs = json.loads(recording.with_suffix(".json").read_text())
        ours = json.loads(other.read_text())
        differ = [key for a, b in zip(theirs["modes"], ours["modes"]) for key in a if a[key] != b.get(key)]
        check(not differ and len(theirs["modes"]) == len(ours["modes"]), f"{recording.name}: the same on this machine {differ}")


def main():
    folder, clrsnap = pathlib.Path(sys.argv[1]), sys.argv[2]
    made = [Made(folder, name) for name in ("perf", "clock")]
    made += [Made(folder, f"attach-{mode}", "attached") for mode in ("cpu", "wall")]
    events = [Made(folder, "events"), Made(folder, "attach-events", "attached-events")]
    kernel, faults, lines = (Made(folder, name) for name in ("kernel", "faults", "lines"))
    for one in made + events + [kernel, faults, lines]:
        print(one.said, end="")
        one.complete()
    perf, clock, attach_cpu, attach_wall = made
    judge_shares(perf, "perf", 0.15, whole=True)
    judge_shares(clock, "clock", 0.25, whole=False)  # few samples tell no sums
    judge_shares(attach_cpu, "perf", 0.15, whole=False)
    judge_wall(attach_wall)
    for one in events:
        judge_events(one)
    judge_shares(kernel, "perf", 0.2, whole=True)
    judge_kernel(kernel)
    judge_faults(faults)
    judge_lines(folder)
    judge_reports(folder, clrsnap)
    sys.exit(1 if failed else 3 if few else 0)


main()
