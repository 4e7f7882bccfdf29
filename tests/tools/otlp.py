#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""otlp.py FILE: reads an ExportProfilesServiceRequest (gzipped or not) and prints what it says:
  resource KEY VALUE
  id HEX, of the profile that follows
  profile TYPE UNIT TIME DURATION PERIOD
  ATTRIBUTES|STACK, root first, separated by ';'|VALUE, a link being trace_id and span_id among the attributes
and fails if anything is in it that the public schema has not, an index leads nowhere, or the first
entry of a table is not the zero value. The table of fields is kept by hand, from
opentelemetry-proto's files (profiles.proto, profiles_service.proto, common.proto, resource.proto of
version 1.11.0), and knows nothing of ours.
With --pprof FILE is a profile of pprof's, printed in the same form."""
import gzip
import sys

import protobuf

# message: field number -> (name, type); a type in [] is repeated.
SCHEMA = {
    "ExportProfilesServiceRequest": {1: ("resource_profiles", ["ResourceProfiles"]), 2: ("dictionary", "ProfilesDictionary")},
    "ProfilesDictionary": {
        1: ("mapping_table", ["Mapping"]), 2: ("location_table", ["Location"]), 3: ("function_table", ["Function"]),
        4: ("link_table", ["Link"]), 5: ("string_table", ["string"]), 6: ("attribute_table", ["KeyValueAndUnit"]),
        7: ("stack_table", ["Stack"])},
    "ResourceProfiles": {1: ("resource", "Resource"), 2: ("scope_profiles", ["ScopeProfiles"]), 3: ("schema_url", "string")},
    "ScopeProfiles": {1: ("scope", "InstrumentationScope"), 2: ("profiles", ["Profile"]), 3: ("schema_url", "string")},
    "Profile": {
        1: ("sample_type", "ValueType"), 2: ("samples", ["Sample"]), 3: ("time_unix_nano", "fixed64"),
        4: ("duration_nano", "varint"), 5: ("period_type", "ValueType"), 6: ("period", "varint"),
        7: ("profile_id", "bytes"), 8: ("dropped_attributes_count", "varint"),
        9: ("original_payload_format", "string"), 10: ("original_payload", "bytes"),
        11: ("attribute_indices", ["varint"])},
    "Link": {1: ("trace_id", "bytes"), 2: ("span_id", "bytes")},
    "ValueType": {1: ("type_strindex", "varint"), 2: ("unit_strindex", "varint")},
    "Sample": {
        1: ("stack_index", "varint"), 2: ("attribute_indices", ["varint"]), 3: ("link_index", "varint"),
        4: ("values", ["varint"]), 5: ("timestamps_unix_nano", ["fixed64"])},
    "Mapping": {
        1: ("memory_start", "varint"), 2: ("memory_limit", "varint"), 3: ("file_offset", "varint"),
        4: ("filename_strindex", "varint"), 5: ("attribute_indices", ["varint"])},
    "Stack": {1: ("location_indices", ["varint"])},
    "Location": {
        1: ("mapping_index", "varint"), 2: ("address", "varint"), 3: ("lines", ["Line"]),
        4: ("attribute_indices", ["varint"])},
    "Line": {1: ("function_index", "varint"), 2: ("line", "varint"), 3: ("column", "varint")},
    "Function": {
        1: ("name_strindex", "varint"), 2: ("system_name_strindex", "varint"), 3: ("filename_strindex", "varint"),
        4: ("start_line", "varint")},
    "KeyValueAndUnit": {1: ("key_strindex", "varint"), 2: ("value", "AnyValue"), 3: ("unit_strindex", "varint")},
    "AnyValue": {1: ("string_value", "string"), 2: ("bool_value", "varint"), 3: ("int_value", "varint"), 4: ("double_value", "fixed64")},
    "KeyValue": {1: ("key", "string"), 2: ("value", "AnyValue")},
    "InstrumentationScope": {1: ("name", "string"), 2: ("version", "string")},
    "Resource": {1: ("attributes", ["KeyValue"])},
    # pprof's profile.proto
    "PprofProfile": {
        1: ("sample_type", ["PprofValueType"]), 2: ("sample", ["PprofSample"]), 3: ("mapping", ["PprofMapping"]),
        4: ("location", ["PprofLocation"]), 5: ("function", ["PprofFunction"]), 6: ("string_table", ["string"]),
        7: ("drop_frames", "varint"), 8: ("keep_frames", "varint"), 9: ("time_nanos", "varint"),
        10: ("duration_nanos", "varint"), 11: ("period_type", "PprofValueType"), 12: ("period", "varint"),
        13: ("comment", ["varint"]), 14: ("default_sample_type", "varint")},
    "PprofValueType": {1: ("type", "varint"), 2: ("unit", "varint")},
    "PprofSample": {1: ("location_id", ["varint"]), 2: ("value", ["varint"]), 3: ("label", ["PprofLabel"])},
    "PprofLabel": {1: ("key", "varint"), 2: ("str", "varint"), 3: ("num", "varint"), 4: ("num_unit", "varint")},
    "PprofMapping": {
        1: ("id", "varint"), 2: ("memory_start", "varint"), 3: ("memory_limit", "varint"), 4: ("file_offset", "varint"),
        5: ("filename", "varint"), 6: ("build_id", "varint"), 7: ("has_functions", "varint"),
        8: ("has_filenames", "varint"), 9: ("has_line_numbers", "varint"), 10: ("has_inline_frames", "varint")},
    "PprofLocation": {
        1: ("id", "varint"), 2: ("mapping_id", "varint"), 3: ("address", "varint"), 4: ("line", ["PprofLine"]),
        5: ("is_folded", "varint")},
    "PprofLine": {1: ("function_id", "varint"), 2: ("line", "varint"), 3: ("column", "varint")},
    "PprofFunction": {
        1: ("id", "varint"), 2: ("name", "varint"), 3: ("system_name", "varint"), 4: ("filename", "varint"),
        5: ("start_line", "varint")},
}


def scalar(kind, wire, value):
    assert wire == {"varint": 0, "fixed64": 1}.get(kind, 2), f"{kind} as wire type {wire}"
    if kind == "string":
        return value.decode("utf-8")
    return value if kind in ("varint", "fixed64", "bytes") else parse(kind, value)


def repeated(kind, wire, value):
    if kind == "varint" and wire == 2:  # packed
        return protobuf.packed(value)
    return [scalar(kind, wire, value)]


def parse(message, data):
    fields = SCHEMA[message]
    out = {name: [] if isinstance(kind, list) else None for name, kind in fields.values()}
    for number, wire, value in protobuf.fields(data):
        assert number in fields, f"{message} has no field {number}"
        name, kind = fields[number]
        if isinstance(kind, list):
            out[name] += repeated(kind[0], wire, value)
        else:
            assert out[name] is None, f"{message}.{name} twice"
            out[name] = scalar(kind, wire, value)
    return out


def is_zero(value):
    return not any(v if not isinstance(v, dict) else not is_zero(v) for v in value.values())


def any_value(value):
    given = [v for v in value.values() if v is not None]
    assert len(given) == 1, f"no or several values: {value}"
    return given[0]


def print_otlp(data):
    request = parse("ExportProfilesServiceRequest", data)
    d = request["dictionary"]
    assert d["string_table"][0] == "", "string_table[0]"
    for table in ("mapping_table", "location_table", "function_table", "link_table", "attribute_table", "stack_table"):
        assert is_zero(d[table][0]), f"{table}[0]"
    for table in d:
        keys = [repr(entry) for entry in d[table]]
        assert len(set(keys)) == len(keys), f"{table} has an entry twice"
    strings = d["string_table"]

    def frame(index):
        assert index > 0
        location = d["location_table"][index]
        assert len(location["lines"]) == 1
        function = d["function_table"][location["lines"][0]["function_index"]]
        module = strings[d["mapping_table"][location["mapping_index"] or 0]["filename_strindex"] or 0]
        assert function["name_strindex"]
        line = location["lines"][0]["line"] or 0
        return strings[function["name_strindex"]] + (f"@{module}" if module else "") + (f":{line}" if line else "")

    def attribute(index):
        assert index > 0
        a = d["attribute_table"][index]
        return f"{strings[a['key_strindex']]}={any_value(a['value'])}"

    def link(index):
        if index == 0:
            return []
        entry = d["link_table"][index]
        assert len(entry["trace_id"]) == 16 and len(entry["span_id"]) == 8
        return ["trace_id=" + entry["trace_id"].hex(), "span_id=" + entry["span_id"].hex()]

    for resource in request["resource_profiles"]:
        for a in resource["resource"]["attributes"]:
            print("resource", a["key"], any_value(a["value"]))
        for scope in resource["scope_profiles"]:
            assert scope["scope"]["name"] == "clrsnap"
            for profile in scope["profiles"]:
                kind = profile["sample_type"]
                assert len(profile["profile_id"]) == 16 and any(profile["profile_id"])
                print("id", profile["profile_id"].hex())
                print("profile", strings[kind["type_strindex"]], strings[kind["unit_strindex"]],
                      profile["time_unix_nano"], profile["duration_nano"], profile["period"])
                for s in profile["samples"]:
                    assert len(s["values"]) == 1
                    stack = d["stack_table"][s["stack_index"] or 0]["location_indices"]
                    attributes = ",".join([attribute(i) for i in s["attribute_indices"]] + link(s["link_index"] or 0))
                    print(f"{attributes}|{';'.join(frame(i) for i in reversed(stack))}|{s['values'][0]}")


def print_pprof(data):
    p = parse("PprofProfile", data)
    strings = p["string_table"]
    functions = {f["id"]: f for f in p["function"]}
    locations = {l["id"]: l for l in p["location"]}
    mappings = {m["id"]: m for m in p["mapping"]}
    which = len(p["sample_type"]) - 1
    kind = p["sample_type"][which]
    print("profile", strings[kind["type"]], strings[kind["unit"]], p["time_nanos"], p["duration_nanos"], p["period"])

    def frame(index):
        l = locations[index]
        module = strings[mappings[l["mapping_id"]]["filename"] or 0]
        line = l["line"][0]["line"] or 0
        name = strings[functions[l["line"][0]["function_id"]]["name"]]
        return name + (f"@{module}" if module else "") + (f":{line}" if line else "")

    names = {"thread": "thread.name", "tid": "thread.id"} | {n: n for n in ("trace_id", "span_id", "endpoint", "http_status")}
    for s in p["sample"]:
        labels = ",".join(f"{names[strings[l['key']]]}={strings[l['str']] if l['str'] else l['num']}" for l in s["label"])
        print(f"{labels}|{';'.join(frame(i) for i in reversed(s['location_id']))}|{s['value'][which]}")


contents = open(sys.argv[-1], "rb").read()
if contents[:2] == b"\x1f\x8b":
    contents = gzip.decompress(contents)
(print_pprof if "--pprof" in sys.argv else print_otlp)(contents)
