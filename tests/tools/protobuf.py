# SPDX-License-Identifier: MIT
"""Protobuf's wire format, read: what a test says of a profile's bytes shall not come from what wrote them."""


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
    """Each field's number, wire type, and value: a number, or bytes."""
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
    """The numbers of a repeated field that is packed."""
    at, numbers = 0, []
    while at < len(value):
        number, at = varint(value, at)
        numbers.append(number)
    return numbers
