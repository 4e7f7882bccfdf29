#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare.py MODE PLAIN [DROP_IN [SUSPENDED]]: compares what the guest profiler saw plainly and through the drop-in.

The files are the guest's notes (GUEST_OUT). PLAIN is a run without clrsnap, DROP_IN one through it; without
DROP_IN only PLAIN is judged. SUSPENDED is a plain run of the mode suspend, which has the parked threads' stacks
as the runtime itself sees them. "-" stands for no file. Exits with 1, and says why, if something is wrong.
"""
import os
import re
import sys

S_OK, E_NOTIMPL, UNMANAGED_CTX = "0x00000000", "0x80004001", "0x8013135f"
E_FAIL, E_INVALIDARG, GONE = "0x80004005", "0x80070057", "0x8013135e"
UNSAFE, ABORTED, DETACHING = "0x80131360", "0x80131361", "0x80131367"
PARKED = "Main Wait Join Lock Generic Catch Finally Dynamic Native Callback".split()
BUSY = "Loop Allocate Raise".split()
ORIGINS = ("Guest.Program.Main", "System.Threading.Thread.StartCallback")

# hostile: what each kind of call may return. E_NOTIMPL is never allowed, because a profiler would conclude from it that
# walks are not supported.
ANYBODY = {S_OK, E_FAIL, UNSAFE, GONE, UNMANAGED_CTX, DETACHING}
HOSTILE = {
    "handler, itself": {S_OK, E_FAIL, UNSAFE, DETACHING},
    "handler, seeded": {S_OK, E_FAIL, UNSAFE, DETACHING, E_INVALIDARG, UNMANAGED_CTX},
    "walker, another": ANYBODY, "walker, throws": ANYBODY, "walker, seeded": ANYBODY | {E_INVALIDARG},
    "callback, itself": {S_OK, E_FAIL, UNSAFE, UNMANAGED_CTX, DETACHING},
    "callback, throws": {S_OK, E_FAIL, UNSAFE, UNMANAGED_CTX, DETACHING},
    "callback, seeded": ANYBODY | {E_INVALIDARG}, "callback, another": ANYBODY,
    **{f"{who}, nobody": {S_OK, UNSAFE, GONE, DETACHING} for who in ("handler", "walker", "callback")},
}

# A walk is refused once exception dispatch has begun to unwind, as CoreCLR refuses it (contract: HRESULTs, 8). How often
# that is met is a matter of chance.
MAY_FAIL = {"Raise": {UNMANAGED_CTX}}

failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


class Notes:
    """walks: {(thread, flags, hr, frames): count}; said: the lines of Notes::say, in order."""

    def __init__(self, path):
        self.path, self.walks, self.said = path, {}, []
        lines = open(path, encoding="utf-8").read().split("\n")
        check(lines[-2:] == ["end", ""], f"{path} ends early")
        for line in lines:
            kind, *rest = line.split("\t")
            if kind == "say":
                self.said.append(rest[0])
            elif kind == "walk":
                count, thread, flags, hr, frames = rest
                key = (thread, flags, hr, frames)
                self.walks[key] = self.walks.get(key, 0) + int(count)

    def of(self, threads):
        return {key: count for key, count in self.walks.items() if key[0] in threads}

    def total(self, threads):
        return sum(self.of(threads).values())


def plain_names(frames):
    """The frames without their offsets and contexts."""
    return [re.sub(r"(\+[0-9a-f?]+)?(@.*)?$", "", frame) for frame in frames.split("|")]


def complete(thread, frames):
    """Whether the stack has the thread's place, the method that the thread began in, and the host below it."""
    names = plain_names(frames)
    place = "Guest.Places." + ("Run" if thread == "Main" else thread)
    # On .NET 8 and 9 the method that starts a thread leaves the stack by a tail call.
    return len(names) >= 2 and names[-1] == "[native]" and place in names and names[-2] in (*ORIGINS, place)


def show(difference):
    thread, flags, hr, frames = difference
    return f"{thread} {flags} {hr} {frames[:400]}"


def same_stacks(a, b, threads, what):
    """Both runs saw the same stacks of these threads, however often each was seen."""
    left, right = set(a.of(threads)), set(b.of(threads))
    for one in sorted(left - right):
        check(False, f"{what}: only in {a.path}: {show(one)}")
    for one in sorted(right - left):
        check(False, f"{what}: only in {b.path}: {show(one)}")
    for thread in threads:
        for notes in (a, b):
            check(notes.total([thread]) >= 10, f"{what}: {notes.path} has too few walks of {thread}")


def judge_busy(notes, allowed):
    """All walks of busy threads are complete; `allowed` are the failures that a thread may have."""
    for (thread, flags, hr, frames), count in notes.of(BUSY).items():
        if hr == S_OK:
            check(complete(thread, frames), f"{notes.path}: cut: {show((thread, flags, hr, frames))}")
        else:
            check(hr in allowed.get(thread, ()), f"{notes.path}: {count} walks of {thread} failed: {hr}")


def judge_suspended_plain(plain):
    check(plain.said == ["mask set: 0x00000000"], f"{plain.path}: {plain.said}")
    for thread in PARKED:
        stacks = plain.of([thread])
        check(len(stacks) == 2, f"{plain.path}: {len(stacks)} stacks of {thread}, not one for each kind")
        for key in stacks:
            check(key[2] == S_OK and complete(thread, key[3]), f"{plain.path}: {show(key)}")


def forgive_instants(notes):
    """On .NET 8 the drop-in leaves walks to the runtime, which refuses a thread in cooperative mode. A thread that tries to return to
    managed code while the runtime is suspended is in that mode for an instant, which lasts where the thread has no processor."""
    refused = [key for key in notes.of(BUSY) if key[2] == E_NOTIMPL]
    if os.environ.get("GUEST_RUNTIME", "").startswith("8.") and sum(notes.walks[key] for key in refused) <= max(2, notes.total(BUSY) // 4):
        for key in refused:
            del notes.walks[key]


def suspend(plain, drop, _):
    judge_suspended_plain(plain)
    if drop is None:
        return
    same_stacks(plain, drop, PARKED, "parked")
    # Of the runtime's own threads, only the finalizer may have managed frames.
    idle = [{(hr, frames) for _, _, hr, frames in notes.of(["(unnamed)"]) if hr != S_OK} for notes in (plain, drop)]
    check(idle[0] == idle[1] != set(), f"the runtime's own threads: {idle[0]} and {idle[1]}")
    forgive_instants(drop)
    judge_busy(drop, {thread: {key[2] for key in plain.of([thread])} | MAY_FAIL.get(thread, set()) for thread in BUSY})


def caller_distance(key):
    """(The key without the distance on the stack between the first frame and its caller, that distance.)"""
    found = re.match(r"([^|]*\|[^|]*@\d+,)([0-9a-f]+)(.*)$", key[3], re.S)
    return (key[:3] + (found[1] + found[3],), int(found[2], 16)) if found else (key, 0)


def forgive_stackalloc(plain, drop):
    """CoreCLR's sp of a method that has called native code is the one from before a stackalloc (docs/contexts.md)."""
    others = {caller_distance(key)[0]: key for key in set(drop) - set(plain)}
    for key in set(plain) - set(drop):
        same, distance = caller_distance(key)
        other = others.get(same)
        if other is not None and caller_distance(other)[1] > distance:
            drop[key] = drop.pop(other)


def sites(plain, drop, _):
    check(plain.total(["Sites"]) >= 300, f"{plain.path} has too few walks")
    check({key[2] for key in plain.walks} == {S_OK}, f"{plain.path}: walks failed")
    known = [key[3] for key in plain.walks]
    for place in ("Make", "Of", "Emitted", "Filter", "Again", "Back"):
        check(any(f"Guest.Sites.{place}+" in frames for frames in known), f"no walk at {place}")
    if drop is not None:
        forgive_stackalloc(plain.walks, drop.walks)
        for key in sorted(set(plain.walks) | set(drop.walks)):
            counts = plain.walks.get(key, 0), drop.walks.get(key, 0)
            check(counts[0] == counts[1], f"{counts[0]} plainly, {counts[1]} here: {show(key)}")


AGAIN = "walks tried again: "


def tried_again(drop):
    for again, all_walks in re.findall(AGAIN + r"(\d+) of (\d+)", "\n".join(drop.said)):
        check(int(again) * 100 <= int(all_walks), f"{drop.path}: {again} of {all_walks} walks refused")


def other_threads(plain, drop, suspended):
    """cross, recipe: without the drop-in every walk is refused, and through it every walk is complete."""
    # The runtime first asks whether the target may be stopped where it is.
    wrong = {key[2:] for key in plain.walks} - {(E_NOTIMPL, ""), (UNSAFE, "")}
    check(not wrong, f"{plain.path}: not only E_NOTIMPL: {wrong}")
    check(plain.total(PARKED) >= 100, f"{plain.path} has too few walks")
    if drop is not None:
        tried_again(drop)
        judge_complete(drop, suspended)


def judge_complete(drop, suspended):
    same_stacks(suspended, drop, PARKED, "parked")
    judge_busy(drop, MAY_FAIL)
    for thread in BUSY:
        if drop.of([thread]) or thread != "Raise":
            walked = sum(n for key, n in drop.of([thread]).items() if key[2] == S_OK)
            check(walked >= 20, f"{drop.path}: only {walked} walks of {thread}")


def recipe(plain, drop, suspended):
    other_threads(plain, drop, suspended)
    for notes in filter(None, (plain, drop)):
        for line in ("threads that could not be held: 0", "threads that did not wait: 0"):
            check(line in notes.said, f"{notes.path}: {[t for t in notes.said if line[:-2] in t]}")
        seeds = re.findall(r"seeds: (\d+) in managed code, (\d+) below native frames, (\d+) none", "\n".join(notes.said))
        check(len(seeds) == 1, f"{notes.path}: {notes.said}")
        at_once, below, none = (int(number) for number in seeds[0])
        # Two threads of twelve compute, and may be met in the runtime's stubs each time: Allocate, and Loop while a collection waits.
        check(at_once > 0 and below > 0 and none * 4 <= at_once + below, f"{notes.path}: seeds {seeds[0]}")


def handler(_, drop, suspended):
    check("walks that never ended: 0" in drop.said, f"{drop.path}: {drop.said}")
    times = re.findall(r"CPU time before Initialize: (\d+) of (\d+) us", "\n".join(drop.said))
    check(len(times) == 1 and int(times[0][0]) * 25 <= int(times[0][1]), f"Initialize was kept waiting: {times}")
    judge_complete(drop, suspended)


# Calls whose results differ on purpose: the call, its result without clrsnap, its result through the drop-in, and the
# reason.
DIFFERENT = (
    (r"DoStackSnapshot, of the (caller|same thread), within a callback", r"0x80131360, 0 calls",
     r"0x00000000, [1-9]\d* calls", "CoreCLR walks a thread for one caller at a time; we need not"),
    (r"DoStackSnapshot, with a (small seed|seed of no size)", r"0x(00000000|80004005), \d calls",
     r"0x80070057, 0 calls", "contract: C16: a context that is too small is never read"),
)


def same_answers(plain, drop, _):
    """calls: every result is the same in both runs, except for the calls in DIFFERENT."""
    check(len(plain.said) >= 200, f"{plain.path}: {len(plain.said)} answers")
    check(not [t for t in plain.said if t.startswith("not asked for")], f"{plain.path}: unwanted callbacks")
    if drop is None:
        return
    check(len(plain.said) == len(drop.said), f"{len(plain.said)} answers plainly, {len(drop.said)} here")
    for left, right in zip(plain.said, drop.said):
        if left == right:
            continue
        known = any(re.fullmatch(f"{what}: {before}", left) and re.fullmatch(f"{what}: {after}", right)
                    for what, before, after, _ in DIFFERENT)
        check(known, f"plainly: {left}; here: {right}")


def crowd(plain, drop, suspended):
    """Every thread walks every other thread, and gets the results that a single walker would get."""
    nothing = {f"{what}: {hr}" for what in ("walk", "refused") for hr in (E_NOTIMPL, UNSAFE)}
    check({t.split(", ")[0] for t in plain.said[1:] if not t.startswith(AGAIN)} <= nothing, f"{plain.path}: {plain.said}")
    if drop is None:
        return
    tried_again(drop)
    judge_complete(drop, suspended)
    expected = {f"walk: {S_OK}", f"refused: {ABORTED}"}
    answers = {t.split(", ")[0] for t in drop.said[1:] if not t.startswith(AGAIN)}
    allowed = {f"within a callback: {S_OK}"} | {f"{what}: {UNMANAGED_CTX}"
                                                for what in ("walk", "refused", "within a callback")}
    check(expected <= answers <= expected | allowed, f"{drop.path}: {drop.said}")


def throws(plain, drop, _):
    """Every exception reaches the caller, and the walk that follows it succeeds."""
    for notes in filter(None, (plain, drop)):
        check(len(notes.said) >= 4, f"{notes.path}: {notes.said}")
        for text in notes.said[1:]:
            check("0 answered, 200 thrown, and then 0x00000000" in text, f"{notes.path}: {text}")
    if drop is not None:
        # The stack of a busy thread differs from walk to walk.
        lines = [sorted(t for t in notes.said if not t.startswith(tuple(BUSY))) for notes in (plain, drop)]
        check(lines[0] == lines[1], f"plainly: {lines[0]}; here: {lines[1]}")


def detach(plain, drop, _):
    """The requests return the same results; walks that were under way succeeded, and later walks were refused."""
    for notes in filter(None, (plain, drop)):
        check("ProfilerDetachSucceeded: yes" in notes.said, f"{notes.path}: {notes.said}")
    counted = ("before: ", "since the request: ")
    if drop is not None:
        lines = [[t for t in notes.said if not t.startswith(counted)] for notes in (plain, drop)]
        check(lines[0] == lines[1], f"plainly: {lines[0]}; here: {lines[1]}")
        walks = {t.split(", ")[0] for t in drop.said if t.startswith(counted)}
        allowed = {f"before: {UNMANAGED_CTX}"} | {f"since the request: {hr}" for hr in
                                                  (S_OK, UNMANAGED_CTX, UNSAFE, DETACHING)}
        check({f"before: {S_OK}", f"since the request: {DETACHING}"} <= walks <= allowed | {f"before: {S_OK}"},
              f"{drop.path}: {drop.said}")


def leave(plain, drop, _):
    if drop is not None:
        check(plain.said == drop.said, f"plainly: {plain.said}; here: {drop.said}")
    check("ProfilerDetachSucceeded" in plain.said, f"{plain.path}: {plain.said}")


def count_of(notes, what, hr):
    """How many times `what` returned `hr` (hostile)."""
    return sum(int(n) for n in re.findall(rf"^{what}: {hr}, (\d+) times$", "\n".join(notes.said), re.M))


def hostile(_, drop, __):
    """Nothing was damaged, each call returned one of its allowed results, and each kind of caller got enough frames."""
    said = "\n".join(drop.said)
    check("blocks damaged: 0" in drop.said, f"{drop.path}: {said}")
    answers = {what: set(re.findall(rf"^{what}: (0x\w+),", said, re.M)) for what in [*HOSTILE, "first method"]}
    for what, allowed in HOSTILE.items():
        check(answers[what] <= allowed, f"{drop.path}: {what}: {answers[what] - allowed}")
    # Walks are possible even before any method has run.
    check(answers["first method"] <= {S_OK, E_FAIL}, f"{drop.path}: the first method: {answers['first method']}")
    asked = {what.split(",")[0] for what in HOSTILE if answers[what]}
    check(asked and asked >= {"1": {"handler", "walker"}, "2": {"callback"}}.get(os.environ.get("GUEST_PART"), {"handler", "walker", "callback"}),
          f"{drop.path}: asked by {asked} only")
    for what in [f"{who}, {whom}" for who, whom in (("handler", "itself"), ("walker", "another"), ("callback", "itself"),
                                                    ("callback", "throws")) if who in asked]:
        frames = re.findall(rf"^{what}: (\d+) with frames$", said, re.M)
        check(frames and int(frames[0]) >= 20, f"{drop.path}: {what}: {frames} walks with frames")
    for what in [f"{who}, nobody" for who in asked]:
        check(count_of(drop, what, S_OK) >= 5, f"{drop.path}: {what}: asked too seldom")


def main():
    modes = {"suspend": suspend, "sites": sites, "cross": other_threads, "recipe": recipe, "handler": handler,
             "calls": same_answers, "crowd": crowd, "throw": throws, "detach": detach, "leave": leave,
             "hostile": hostile}
    files = [Notes(path) if path != "-" else None for path in sys.argv[2:]]
    modes[sys.argv[1]](*files, *[None] * (3 - len(files)))
    for text in failures[:20]:
        print("FAIL:", text)
    if len(failures) > 20:
        print(f"FAIL: and {len(failures) - 20} more")
    if not failures:
        print("pass:", "; ".join(f"{len(n.said)} answers, {sum(n.walks.values())} walks, {len(n.walks)} different"
                                 for n in files if n is not None))
    return 1 if failures else 0


sys.exit(main())
