#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""async.py JSON SOURCE MANY: does `clrsnap async --json` say of tests/apps/Suspended what that program's source says?
Each expected line is "count chain", where a chain's steps are METHOD@MARK (the await's line has "at: MARK") or a name;
lines that are indented further are what the step above forks into. Exits with 1 and the difference."""
import json
import re
import sys

EXPECTED = """
1 Hang.Ping@Ping > Hang.Pong@Pong > Hang.Ping [again: they wait for each other]@Ping
300 Shop.Checkout@Checkout > Shop.Cart@Cart > Shop.Send@Send > TaskCompletionSource
50 Shop.Sleep@Sleep > Task.Delay
20 Shop.Enter@Enter > SemaphoreSlim.WaitAsync
11 Pooled.Outer@Pooled > Pooled.Inner@Inner > TaskCompletionSource
9 Custom.Leads@Leads > TaskCompletionSource
8 Generic<T>.Outer@Generic > Generic<T>.Inner<U>@GenericInner > TaskCompletionSource
7 Stream.Sum@Sum > Stream.Items@Items > TaskCompletionSource
6 Custom.Secret@Secret > Opaque<T> [what this awaiter waits for is not known]
5 Runs.Outer@Run > Task.Unwrap (Task.Run) > Runs.Outer.lambda#0@Run > TaskCompletionSource
4 Shared.User@User > Shared.One@One (one) > TaskCompletionSource (one)
4 Shop.Unseen > TaskCompletionSource
3 Shop.Read@Read > channel
2 Shop.Runs@Runs > Task of a delegate [runs] (one)
1 Nested.Outer@Outer > Task.WhenAll
 3 Nested.Branch@Branch > Task.WhenAll
  6 Nested.Leaf@Leaf > TaskCompletionSource
1 Shop.Accept@Accept > ValueTask.AsTask > socket
1 Shop.Any@Any > Task.WhenAny
 2 TaskCompletionSource
 1 Task.Delay
1 [a thread in Wait() or Result] > Blocked.Async@Blocked > TaskCompletionSource
"""


def marks(source):
    lines = open(source, encoding="utf-8").read().split("\n")
    found = {}
    for number, line in enumerate(lines, 1):
        mark = re.search(r"// at: (\w+)$", line)
        if mark:
            found[number] = mark[1]
    return found


def step(node, marks):
    text = node["name"] + (f" [{node['note']}]" if "note" in node else "")
    if "line" in node:
        assert node["file"].endswith("Program.cs"), node
        text += "@" + marks.get(node["line"], f"line {node['line']}")
    return text + (" (one)" if node.get("one_object") else "")


def lines(node, marks, indent=""):
    text = f"{indent}{node['count']} {step(node, marks)}"
    while len(node["awaits"]) == 1 and node["awaits"][0]["count"] == node["count"]:
        node = node["awaits"][0]
        text += " > " + step(node, marks)
    yield text
    for child in node["awaits"]:
        yield from lines(child, marks, indent + " ")


def roots(nodes):
    """The operations, each with a list of what it awaits, from the flat list, in which a node follows its parent."""
    for number, node in enumerate(nodes):
        node["awaits"] = []
        parent = node["parent"]
        assert parent is None or parent < number, node
        assert node["depth"] == (0 if parent is None else nodes[parent]["depth"] + 1), node
        if parent is not None:
            nodes[parent]["awaits"].append(node)
    return [node for node in nodes if node["parent"] is None]


def main():
    said = json.load(open(sys.argv[1], encoding="utf-8"))
    many = int(sys.argv[3])
    expected = EXPECTED.strip("\n").split("\n")
    suspended, operations = 1076 + many, 434 + many
    if many:
        expected.insert(1, f"{many} Shop.Many@Many > TaskCompletionSource")
    at = marks(sys.argv[2])
    found = [line for node in roots(said["awaits"]) for line in lines(node, at)]
    wrong = [f"- {line}" for line in expected if line not in found]
    wrong += [f"+ {line}" for line in found if line not in expected]
    if not wrong and found != expected:
        wrong = ["another order:", *found]
    if (said["suspended"], said["operations"]) != (suspended, operations):
        wrong.append(f"{said['suspended']} methods in {said['operations']} operations")
    if not said["complete"] or said["stopped_ns"] <= 0 or said["objects"] < said["suspended"]:
        wrong.append(f"{ {key: value for key, value in said.items() if key != 'awaits'} }")
    if wrong:
        sys.exit("\n".join(wrong))


main()
