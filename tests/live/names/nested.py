# SPDX-License-Identifier: MIT
"""nested.py ALLOC.folded EXCEPTION.folded [exact] < TRUTH: each method has objects of its own type only, "truth MODE METHOD TYPE [COUNT]".

Where a module is unloaded before the samples have been read, a type that was never seen before has its inner name alone,
as the runtime's events have it; that is seldom, and never another type's name. What RoundN.Make and RoundN.Fail make is
unloaded. With `exact`, exceptions of each type are as many as COUNT, whatever stack they have, but for these.
"""
import collections
import re
import sys

SELDOM = 0.1
exact = sys.argv[3:] == ["exact"]
truth = [line.split() for line in sys.stdin if line.startswith("truth ")]
failed = []


def check(good, what):
    if not good:
        failed.append(what)


def inner(name):
    """Nested.Outer<int>.Inner<string>[] becomes Inner<int,string>[]; what is not nested stays as it is."""
    if not name.startswith(("Nested.", "Round")):
        return re.sub(r"(Nested\.\w+)\.", r"\1+", name)
    bare = re.sub(r"<[^<>]*>", "", name).rpartition(".")[2]
    arguments = [re.sub(r"(Nested\.\w+)\.", r"\1+", a) for a in re.findall(r"<([^<>]*)>", name)]
    return re.sub(r"(\[\])?$", ("<" + ",".join(arguments) + ">" if arguments else "") + r"\1", bare, count=1)


for mode, path in zip(("alloc", "exception"), sys.argv[1:3]):
    types, found = collections.defaultdict(collections.Counter), collections.Counter()
    for line in open(path, encoding="utf-8"):
        stack, value = line.rstrip("\n").rsplit(" ", 1)
        frames = stack.split(";")
        found[frames[-1]] += int(value)
        types[frames[-2] if len(frames) > 1 else ""][frames[-1]] += int(value)
    told = [(method, name, *count) for _, of, method, name, *count in truth if of == mode]
    told += [(method, method.replace(*(".Make", ".Item[]") if mode == "alloc" else (".Fail", ".Error")))
             for method in types if re.fullmatch(r"Round\d+\." + ("Make" if mode == "alloc" else "Fail"), method)]
    dying = collections.Counter()
    for method, name, *_ in told:
        has = types[method]
        check(has.keys() <= {name, inner(name)}, f"{mode}: {method} should have {name}, has {dict(has)}")
        if method.startswith("Round"):
            dying += collections.Counter(whole=has[name], inner=has[inner(name)])
            continue
        print(f"{mode}: {method} {dict(has)}")
        check(has[name] > 0 and has[inner(name)] * (name != inner(name)) <= SELDOM * has.total(), f"{mode}: {method} has {dict(has)}")
    print(f"{mode}: of types that are unloaded: {dict(dying)}")
    check(dying["whole"] > dying["inner"], f"{mode}: the types that are unloaded are seldom whole")
    if exact and mode == "exception":
        want = collections.Counter()
        for _, name, count in (words for words in told if len(words) == 3):
            want[name] += int(count)
        print("thrown:", dict(want), "found:", {name: found[name] for name in want})
        check(all((1 - SELDOM) * count <= found[name] <= count for name, count in want.items()), "not as many")
for what in failed:
    print("wrong:", what)
sys.exit(bool(failed))
