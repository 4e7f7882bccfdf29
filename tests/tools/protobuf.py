# SPDX-License-Identifier: MIT
"""A reader of protobuf's wire format: a test's view of a profile must not come from the code that wrote it."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """The number, wire type and value of each field; a value is a number or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = int.from_bytes(data[at : at + 8], "little"), at + 8
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size, "cut"
        else:
            raise AssertionError(f"wire type {wire}")
        yield key >> 3, wire, value


def packed(value):
    """The numbers of a packed repeated field."""
    at, numbers = 0, []
    while at < len(value):
        number, at = varint(value, at)
        numbers.append(number)
    return numbers
