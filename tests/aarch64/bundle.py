#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A .NET program that is a single file, taken apart and put together again.

bundle.py unpack PROGRAM FOLDER         its files into FOLDER
bundle.py pack PROGRAM OUT [NAME=FILE]... NAME...
                                        a program with these of its files, and FILE in place of NAME

The host has a signature; the 8 bytes before it say where the header is. The header: version (two
numbers), number of files, an id; offset and size of NAME.deps.json and of NAME.runtimeconfig.json;
flags; then for each file offset, size, size when compressed (or 0), type, and name.
"""
import pathlib
import struct
import sys
import zlib

SIGNATURE = bytes.fromhex("8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae")
ASSEMBLY = 1  # a type, whose content begins at a page, so that it can be mapped
PAGE, WORDS = 4096, 16


class Cursor:
    def __init__(self, data, at):
        self.data, self.at = data, at

    def read(self, layout):
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def text(self):
        """A string with its length before it, seven bits to a byte."""
        size = shift = 0
        while True:
            (byte,) = self.read("B")
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                self.at += size
                return bytes(self.data[self.at - size : self.at])


def encoded(text):
    size, head = len(text), bytearray()
    while size >= 0x80:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes(head) + bytes([size]) + text


class Bundle:
    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        self.signature = data.find(SIGNATURE)
        if self.signature < 8:
            sys.exit(f"{path} is no single-file program")
        cursor = Cursor(data, *struct.unpack_from("<q", data, self.signature - 8))
        *self.version, count = cursor.read("IIi")
        self.id = cursor.text()
        cursor.read("qqqq")
        (self.flags,) = cursor.read("Q")
        self.files, self.types, begin = {}, {}, len(data)
        for _ in range(count):
            offset, size, packed, kind = cursor.read("qqqB")
            name = cursor.text().decode()
            content = data[offset : offset + (packed or size)]
            self.files[name] = zlib.decompress(content, -15) if packed else content
            self.types[name] = kind
            begin = min(begin, offset)
        self.host = data[:begin]

    def write(self, path, files):
        out, places = bytearray(self.host), {}
        for name, content in files.items():
            align = PAGE if self.types[name] == ASSEMBLY else WORDS
            out += bytes(-len(out) % align)
            places[name] = (len(out), len(content))
            out += content
        struct.pack_into("<q", out, self.signature - 8, len(out))
        out += struct.pack("<IIi", *self.version, len(files)) + encoded(self.id)
        for suffix in (".deps.json", ".runtimeconfig.json"):
            out += struct.pack("<qq", *next(p for n, p in places.items() if n.endswith(suffix)))
        out += struct.pack("<Q", self.flags)
        for name, place in places.items():
            out += struct.pack("<qqqB", *place, 0, self.types[name]) + encoded(name.encode())
        pathlib.Path(path).write_bytes(out)
        pathlib.Path(path).chmod(0o755)


def main():
    command, program, out, *names = sys.argv[1:]
    bundle = Bundle(program)
    if command == "unpack":
        for name, content in bundle.files.items():
            path = pathlib.Path(out, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return
    files = {}
    for name in names:
        name, _, file = name.partition("=")
        files[name] = pathlib.Path(file).read_bytes() if file else bundle.files[name]
    bundle.write(out, files)


main()
