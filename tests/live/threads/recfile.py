# SPDX-License-Identifier: MIT
"""The records of a recording's file (docs/recording-format.md)."""
import struct


def text(data, at):
    (size,) = struct.unpack_from("<H", data, at)
    return data[at + 2 : at + 2 + size].decode(), at + 2 + size


def records(data):
    (at,) = struct.unpack_from("<I", data, 12)
    while at + 16 <= len(data):
        size, _, kind = struct.unpack_from("<IIH", data, at)
        yield kind, data[at + 16 : at + size]
        at += size
