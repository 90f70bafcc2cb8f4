"""Attribute structs: their fields, without padding."""

import re

from generator.model.errors import OpListError

FIELD_BYTES = {"i32": 4, "u32": 4, "dtype": 4, "i64": 8, "dims": 72}
FIELD_TYPES = {"i32": "int32_t", "u32": "uint32_t", "dtype": "DType", "i64": "int64_t", "dims": "DimsAttribute"}


def make_structs(rows, abi_header):
    structs = {}
    for name, fields in rows.items():
        offset, wide, members = 0, False, []
        for field_name, text in fields.items():
            match = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", text)
            kind, count = match[1], int(match[2] or 1)
            if kind.startswith("ep_"):
                if not re.search(rf"}} {kind};", abi_header):
                    raise OpListError(f"attributes {name}: ep_api.h has no struct '{kind}'.")
                size, cpp, aligned = 8, kind, 8
            elif kind in FIELD_BYTES:
                size, cpp = FIELD_BYTES[kind] * count, FIELD_TYPES[kind]
                aligned = min(8, FIELD_BYTES[kind])
            else:
                raise OpListError(f"attributes {name}: '{text}' is not a field type.")
            if offset % aligned:
                raise OpListError(f"attributes {name}: there is padding before '{field_name}'; put an i32 before it.")
            offset, wide = offset + size, wide or aligned == 8
            members.append((cpp, field_name, f"[{count}]" if match[2] else ""))
        if wide and offset % 8:
            raise OpListError(f"attributes {name}: there is padding at the end; add an i32 field.")
        structs[name] = members
    return structs


WORDS = {"int32_t": "i32", "uint32_t": "u32", "int64_t": "i64", "DType": "dtype", "DimsAttribute": "dims", "TextAttribute": "text",
         "double": "f64"}


def flat_fields(structs, abi_header):
    """By struct: [(path, type, count)] of every field except padding; fields of ABI structs are listed one by one."""
    return {name: [field for member in members for field in flat_field(*member, abi_header)] for name, members in structs.items()}


def flat_field(cpp, name, count, abi_header):
    if "reserved" in name:
        return []
    if cpp in WORDS:
        return [(name, WORDS[cpp], int(count.strip("[]") or 1))]
    body = re.search(rf"typedef struct {cpp} {{(.*?)}} {cpp};", abi_header, re.S)[1]
    members = re.findall(r"^\s*(\w+) (\w+)((?:\[\w+\])?);", body, re.M)
    ranks = {"[EP_MAX_RANK]": "[8]"}
    return [(f"{name}.{path}", kind, many)
            for inner, inner_name, inner_count in members
            for path, kind, many in flat_field(inner, inner_name, ranks.get(inner_count, inner_count), abi_header)]
