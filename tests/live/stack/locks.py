#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""locks.py check JSON SOURCE: what `clrsnap stack --json` says of the threads of tests/apps/Locks, each of which is
named after what it does. locks.py self-test: faults put into such a file are found."""
import copy, json, re, sys

# What threads "waits for NAME" wait for: the type, how many they are, and who owns it ("owner of NAME" unless it says otherwise).
WAITS = {
    "an object": ("System.Object", 3), "a string": ("System.String", 3), "a boxed int": ("System.Int32", 3),
    "a vector": ("System.Int32[]", 3), "a matrix": ("System.String[,][]", 3),
    "a dictionary": ("System.Collections.Generic.Dictionary<TKey,TValue>", 3), "a hashed object": ("System.Object", 3),
    "a Lock": ("System.Threading.Lock", 3),
    "a written lock": ("System.Threading.ReaderWriterLockSlim", 2),
    "an upgraded lock": ("System.Threading.ReaderWriterLockSlim", 1),
    "a read lock": ("System.Threading.ReaderWriterLockSlim", 1, "readers"),
    "an upgrade": ("System.Threading.ReaderWriterLockSlim", 1, "readers"),
    "a while": ("System.Object", 1), "a signal": ("System.Object", 1, "nobody"), "an orphan": ("System.Object", 1, "ended"),
}
RINGS = {"two monitors": 2, "three monitors": 3, "two locks": 2, "three locks": 3, "two writers": 2, "a while": 2, "mixed": 3}


def by_name(all, name):
    return [t for t in all["threads"] if t["name"] == name]


def check_wait(all, name, expected, line):
    type, count, *owner = expected
    threads = by_name(all, "waits for " + name)
    assert len(threads) == count, (name, len(threads))
    locks = [t.get("lock") for t in threads]
    assert all_equal(locks), (name, locks)
    lock = locks[0]
    assert lock and lock["type"] == type and int(lock["address"], 16) % 8 == 0, (name, lock)
    assert lock["time_limit"] == (name == "a while"), (name, lock)
    if owner:
        assert lock["owner"] == owner[0], (name, lock)
        return None
    holder = by_name(all, "owner of " + name)[0]
    assert lock["owner"] == "thread" and (lock["owner_tid"], lock["owner_name"]) == (holder["tid"], holder["name"]), (name, lock)
    assert any(f["name"] == "Known.HoldHere" and f["line"] == line for f in holder["frames"]), holder
    return lock["address"]


def all_equal(items):
    return all(i == items[0] for i in items)


def check(all, line):
    found = [check_wait(all, name, expected, line) for name, expected in WAITS.items()]
    addresses = [a for a in found if a]
    assert len(set(addresses)) == len(addresses), "two locks have one address"
    rings = [[by_name(all, f"{name} {i}")[0]["tid"] for i in range(size)] for name, size in RINGS.items()]
    turned = [r[r.index(min(r)):] + r[:r.index(min(r))] for r in rings]
    said = [d[d.index(min(d)):] + d[:d.index(min(d))] for d in all.get("deadlocks", [])]
    assert sorted(said) == sorted(turned), (said, turned)
    known = {"waits for " + n for n in WAITS} | {f"{n} {i}" for n, size in RINGS.items() for i in range(size)}
    for t in all["threads"]:
        assert ("lock" in t) == (t["name"] in known), (t["name"], t.get("lock"))


def example():
    threads, deadlocks, tid = [], [], 100
    for name, (type, count, *owner) in WAITS.items():
        tid += 10
        threads.append({"tid": tid, "name": "owner of " + name, "frames": [{"name": "Known.HoldHere", "line": 7}]})
        lock = {"type": type, "address": hex(tid * 8), "time_limit": name == "a while", "owner": owner[0] if owner else "thread"}
        if not owner:
            lock |= {"owner_tid": tid, "owner_name": "owner of " + name}
        threads += [{"tid": tid + 1 + i, "name": "waits for " + name, "frames": [], "lock": lock} for i in range(count)]
    for name, size in RINGS.items():
        tid += 10
        threads += [{"tid": tid + i, "name": f"{name} {i}", "frames": [], "lock": {}} for i in range(size)]
        deadlocks.append([tid + i for i in range(size)])
    return {"threads": threads, "deadlocks": deadlocks}


def self_test():
    check(example(), 7)
    first = lambda e, name: by_name(e, name)[0]
    faults = [
        lambda e: first(e, "waits for a Lock")["lock"].update(owner_tid=1),
        lambda e: first(e, "waits for an object")["lock"].update(type="System.String"),
        lambda e: first(e, "waits for an orphan")["lock"].update(owner="unknown"),
        lambda e: first(e, "waits for a string").pop("lock"),
        lambda e: first(e, "owner of a string").update(lock={}),
        lambda e: first(e, "waits for a string")["lock"].update(address=first(e, "waits for an object")["lock"]["address"]),
        lambda e: first(e, "owner of a vector")["frames"].clear(),
        lambda e: e["deadlocks"].pop(),
        lambda e: e["deadlocks"][1].reverse(),
        lambda e: e["deadlocks"].append([1, 2]),
    ]
    for i, fault in enumerate(faults):
        faulty = copy.deepcopy(example())
        fault(faulty)
        try:
            check(faulty, 7)
        except (AssertionError, KeyError, IndexError):
            continue
        sys.exit(f"fault {i} is not found")


if sys.argv[1] == "self-test":
    self_test()
else:
    source = open(sys.argv[3]).read().split("\n")
    line = next(n for n, s in enumerate(source, 1) if "the owner is here" in s)
    check(json.load(open(sys.argv[2])), line)
