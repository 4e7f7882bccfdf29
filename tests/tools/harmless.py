#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""harmless.py WORD FILE...: checks that each file has WORD, on lines that are harmless. --self-test"""
import re
import sys

BAD = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def fault(data, word):
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return f"is no UTF-8: {error}"
    if found := BAD.search(text):
        return f"has {found.group()!r} in {text[max(0, found.start() - 40):found.end()]!r}"
    return None if word in text else f"has no {word}"


if sys.argv[1] == "--self-test":
    for data in (b"w\x1b[2J", b"w\xc2\x9b2J", b"w\x9b", "w\u202e".encode(), "w\u2028".encode(), b"w\r", b"w\x7f", b"x"):
        assert fault(data, "w"), data
    assert fault("w ä€\n".encode(), "w") is None
    sys.exit()
for name in sys.argv[2:]:
    with open(name, "rb") as file:
        if what := fault(file.read(), sys.argv[1]):
            sys.exit(f"{name} {what}")
