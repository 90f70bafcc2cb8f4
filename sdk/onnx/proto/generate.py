#!/usr/bin/env python3
"""Writes the C++ structs, readers and writers of the messages in onnx.proto and newer.proto.

Usage: generate.py onnx.proto newer.proto OUTPUT_DIRECTORY

The script understands the part of proto2 that onnx.proto uses: messages (nested ones too), enums, optional and repeated
fields, oneof, packed. Strings and bytes become views into the reader's buffer.
"""
import pathlib
import re
import sys

WIRE = {  # proto type: (C++ type, name in wire.h)
    "int32": ("int32_t", "varint"),
    "int64": ("int64_t", "varint"),
    "uint64": ("uint64_t", "varint"),
    "float": ("float", "fixed"),
    "double": ("double", "fixed"),
    "string": ("std::string_view", "bytes"),
    "bytes": ("std::string_view", "bytes"),
}


class Field:
    def __init__(self, label, proto_type, name, number, oneof):
        self.label, self.proto_type, self.name, self.number, self.oneof = label, proto_type, name, number, oneof


class Message:
    def __init__(self, name):
        self.name, self.fields, self.enums, self.nested = name, [], {}, []


def tokens(text):
    text = re.sub(r"//[^\n]*", "", text)
    return re.findall(r'"[^"]*"|[\w.]+|[{}=;\[\],\-]', text)


class Parser:
    def __init__(self, text):
        self.tokens, self.at = tokens(text), 0

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def peek(self):
        return self.tokens[self.at]

    def statement_end(self):
        while self.next() != ";":
            pass

    def enum(self):
        name, values = self.next(), {}
        assert self.next() == "{"
        while self.peek() != "}":
            key = self.next()
            assert self.next() == "=", key
            values[key] = int(self.next(), 0)
            self.statement_end()
        self.next()
        return name, values

    def field(self, message, label, proto_type, oneof=None):
        name = self.next()
        assert self.next() == "=", name
        number = int(self.next())
        self.statement_end()
        message.fields.append(Field(label, proto_type, name, number, oneof))

    def message(self, prefix=""):
        message = Message(prefix + self.next())
        assert self.next() == "{"
        while self.peek() != "}":
            word = self.next()
            if word == "message":
                message.nested.append(self.message(message.name + "_"))
            elif word == "enum":
                name, values = self.enum()
                message.enums[name] = values
            elif word == "oneof":
                oneof = self.next()
                assert self.next() == "{"
                while self.peek() != "}":
                    self.field(message, "optional", self.next(), oneof)
                self.next()
            elif word in ("optional", "repeated"):
                self.field(message, word, self.next())
            elif word == "reserved":
                self.statement_end()
            else:
                assert word == ";", f"onnx.proto: unexpected '{word}' in {message.name}"
        self.next()
        return message

    def file(self):
        messages, enums = [], {}
        while self.at < len(self.tokens):
            word = self.next()
            if word == "message":
                messages.append(self.message())
            elif word == "enum":
                name, values = self.enum()
                enums[name] = values
            elif word != ";":
                self.statement_end()
        return messages, enums


def joined(messages, newer):
    """Merges `messages` with the messages of `newer` and the fields that only those have."""
    by_name = {m.name: m for m in messages}
    for message in newer:
        known = by_name.get(message.name)
        if known is None:
            messages.append(message)
            continue
        known.fields += [f for f in message.fields if f.number not in {k.number for k in known.fields}]
    return messages


def flatten(messages):
    for message in messages:
        yield from flatten(message.nested)
        yield message


def resolve(field, message, names):
    """The C++ type of the field, and its wire form: varint, fixed, bytes or message."""
    if field.proto_type in WIRE:
        return WIRE[field.proto_type]
    if field.proto_type in message.enums:
        return "int32_t", "varint"
    nested = message.name + "_" + field.proto_type
    name = nested if nested in names else field.proto_type
    assert name in names, f"onnx.proto: unknown type {field.proto_type} of {message.name}.{field.name}"
    return name, "message"


def member(field, cpp_type, wire):
    if field.label == "repeated":
        return f"std::vector<{cpp_type}> {field.name};"
    if wire == "message":
        return f"std::unique_ptr<{cpp_type}> {field.name};"
    return f"{cpp_type} {field.name}{{}};"


def struct(message, names):
    name = message.name
    lines = [f"struct {name} {{"]
    for enum, values in message.enums.items():
        lines.append(f"  enum {enum} : int32_t {{ " + ", ".join(f"{enum}_{k} = {v}" for k, v in values.items()) + " };")
    lines += [f"  {member(f, *resolve(f, message, names))}" for f in message.fields]
    lines += [
        "  // Bit N: field number N was there.",
        "  uint32_t present = 0;",
        "  bool has(uint32_t field) const { return (present >> field & 1) != 0; }",
        "  enum Field : uint32_t { " + ", ".join(f"k_{f.name} = {f.number}" for f in message.fields) + " };",
        f"  {name}();",
        f"  ~{name}();",
        f"  {name}({name}&&) noexcept;",
        f"  {name}& operator=({name}&&) noexcept;",
        "};",
    ]
    return lines


def reader(message, names):
    lines = [f"bool read(Reader& in, {message.name}* out) {{", "  Tag tag;", "  while (in.next(&tag)) {",
             "    switch (tag.field) {"]
    for f in message.fields:
        _, wire = resolve(f, message, names)
        target = f"&out->{f.name}"
        siblings = [s for s in message.fields if f.oneof and s.oneof == f.oneof and s is not f]
        clear = ""
        if siblings:
            mask = " | ".join(f"1u << {s.number}" for s in siblings)
            clear = f" out->present &= ~({mask});"
        kind = ("repeated_" if f.label == "repeated" else "") + wire
        lines.append(f"      case {f.number}: if (!read_{kind}(in, tag, {target})) return false;{clear}"
                     f" out->present |= 1u << {f.number}; break;")
    lines += ["      default: if (!in.skip(tag)) return false;", "    }", "  }", "  return in.ok();", "}"]
    return lines


def writer(message, names):
    lines = [f"void write(Writer& out, const {message.name}& message) {{"]
    for f in message.fields:
        _, wire = resolve(f, message, names)
        kind = ("repeated_" if f.label == "repeated" else "") + wire
        guard = "" if f.label == "repeated" else f"if (message.has({f.number})) "
        if f.label != "repeated" and wire == "message":
            guard = f"if (message.has({f.number}) && message.{f.name}) "
        lines.append(f"  {guard}write_{kind}(out, {f.number}, message.{f.name});")
    return lines + ["}"]


HEADER = """// sdk/onnx/proto/generate.py makes this file from onnx.proto.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace tenon::onnx_proto {

class Reader;
class Writer;
"""

SOURCE = """// sdk/onnx/proto/generate.py makes this file from onnx.proto.
#include "onnx_messages.h"

#include "sdk/onnx/proto/wire.h"

namespace tenon::onnx_proto {
"""


def main():
    source, newer, output = (pathlib.Path(path) for path in sys.argv[1:])
    messages, enums = Parser(source.read_text()).file()
    messages = list(flatten(joined(messages, Parser(newer.read_text()).file()[0])))
    names = {m.name for m in messages}
    for message in messages:
        assert all(0 < f.number < 32 for f in message.fields), f"onnx.proto: {message.name} has a field number above 31"

    header = [HEADER]
    for name, values in enums.items():
        header.append(f"enum {name} : int32_t {{ " + ", ".join(f"{name}_{k} = {v}" for k, v in values.items()) + " };")
    header += [f"struct {m.name};" for m in messages]
    for message in messages:
        header += ["", *struct(message, names)]
    header.append("")
    for m in messages:
        header.append(f"bool read(Reader& in, {m.name}* out);")
        header.append(f"void write(Writer& out, const {m.name}& message);")
    header += ["", "}  // namespace tenon::onnx_proto", ""]

    body = [SOURCE]
    for m in messages:
        body += [f"{m.name}::{m.name}() = default;", f"{m.name}::~{m.name}() = default;",
                 f"{m.name}::{m.name}({m.name}&&) noexcept = default;",
                 f"{m.name}& {m.name}::operator=({m.name}&&) noexcept = default;", ""]
    for m in messages:
        body += [*reader(m, names), "", *writer(m, names), ""]
    body += ["}  // namespace tenon::onnx_proto", ""]

    output.mkdir(parents=True, exist_ok=True)
    (output / "onnx_messages.h").write_text("\n".join(header))
    (output / "onnx_messages.cpp").write_text("\n".join(body))


if __name__ == "__main__":
    main()
