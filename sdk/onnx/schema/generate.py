#!/usr/bin/env python3
"""Writes operators.def, ONNX's own rules for each operator: its inputs, outputs, element types and attributes.

Usage: generate.py [OPERATOR...]     adds the named operators and writes the table; needs a Python onnx that knows
                                     NEWEST_OPSET
       generate.py --check           prints the rows in which the installed onnx differs, for opset versions it knows

The build reads operators.def only, so it needs no onnx. CHOICES below has what onnx says in prose only: the allowed
values of an attribute.
"""
import os
import re
import sys

import onnx

NEWEST_OPSET = 20  # kNewestOpset of translate/translator.h
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "operators.def")
ROW = re.compile(r'^OPERATOR\((\w+), (\d+),\s+("[^)]*")\)', re.MULTILINE)
TEXT = re.compile(r'"([^"]*)"')

TYPES = {"float16": "f16", "float": "f32", "double": "f64", "bfloat16": "bf16", "int8": "i8", "int16": "i16", "int32": "i32",
         "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool",
         "float8e4m3fn": "f8e4m3fn", "float8e5m2": "f8e5m2"}  # the types that Tenon has
GROUPS = {"floats": ["f16", "f32", "f64"], "ints": ["i8", "i16", "i32", "i64"], "uints": ["u8", "u16", "u32", "u64"],
          "f8": ["f8e4m3fn", "f8e5m2"]}
KINDS = {"FLOAT": "float", "INT": "int", "STRING": "text", "FLOATS": "floats", "INTS": "ints", "STRINGS": "texts",
         "TENSOR": "tensor"}

PADS = "NOTSET|SAME_UPPER|SAME_LOWER|VALID"
REDUCTIONS = "none|sum|mean"
# (operator, attribute): {first version: values}
CHOICES = {
    ("AveragePool", "auto_pad"): {1: PADS},
    ("BitShift", "direction"): {11: "LEFT|RIGHT"},
    ("Conv", "auto_pad"): {1: PADS},
    ("ConvTranspose", "auto_pad"): {1: PADS},
    ("DepthToSpace", "mode"): {11: "DCR|CRD"},
    ("Gelu", "approximate"): {20: "none|tanh"},
    ("LpNormalization", "p"): {1: "1|2"},
    ("MaxPool", "auto_pad"): {1: PADS},
    ("MaxPool", "storage_order"): {8: "0|1"},
    ("NegativeLogLikelihoodLoss", "reduction"): {12: REDUCTIONS},
    ("Pad", "mode"): {1: "constant|reflect|edge", 19: "constant|reflect|edge|wrap"},
    ("Resize", "coordinate_transformation_mode"): {
        11: "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_half_pixel_for_nn|tf_crop_and_resize",
        13: "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_crop_and_resize",
        19: "half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric|tf_crop_and_resize"},
    ("Resize", "keep_aspect_ratio_policy"): {18: "stretch|not_larger|not_smaller"},
    ("Resize", "mode"): {10: "nearest|linear", 11: "nearest|linear|cubic"},
    ("Resize", "nearest_mode"): {11: "round_prefer_floor|round_prefer_ceil|floor|ceil"},
    ("SoftmaxCrossEntropyLoss", "reduction"): {12: REDUCTIONS},
    ("Upsample", "mode"): {1: "nearest|bilinear", 7: "nearest|linear"},
}

# A later release of onnx corrected these rows without a new version of the operator. The table has the correction.
CORRECTED = {("Erf", 13)}  # releases before 1.16 let integers pass

HEAD = """\
// ONNX's rules for the operators of translate/, one row per version. generate.py writes this file.
//   OPERATOR(name, first opset version, inputs, outputs, types, attributes)
// An input or output is name:type. "?" after the name: it may be absent. "+": it is the last and may occur many times.
// `types` lists the types of each letter, as far as Tenon has them. An attribute is name:kind. "!" after the kind: a
// node must have the attribute. "=": its allowed values.
"""


def types_text(strings):
    have = {TYPES[m.group(1)] for m in (re.fullmatch(r"tensor\((\w+)\)", s) for s in strings) if m and m.group(1) in TYPES}
    words = []
    for group, members in GROUPS.items():
        if have.issuperset(members):
            words.append(group)
            have -= set(members)
    return "|".join(words + [t for t in TYPES.values() if t in have])


def parameter_text(parameter):
    option = str(parameter.option).split(".")[-1]
    mark = {"Single": "", "Optional": "?", "Variadic": "+"}[option]
    type_text = parameter.type_str if hasattr(parameter, "type_str") else parameter.typeStr  # onnx before 1.15
    own = re.fullmatch(r"tensor\((\w+)\)", type_text)
    assert option != "Variadic" or getattr(parameter, "min_arity", 1) == 1, parameter.name
    return f"{parameter.name}{mark}:{TYPES[own.group(1)] if own else type_text}"


def choices_of(operator, attribute, version):
    by_version = CHOICES.get((operator, attribute), {})
    first = max((v for v in by_version if v <= version), default=None)
    return "" if first is None else "=" + by_version[first]


def attribute_text(schema, attribute):
    kind = KINDS.get(str(attribute.type).split(".")[-1], "other")
    required = "!" if attribute.required else ""
    return f"{attribute.name}:{kind}{required}{choices_of(schema.name, attribute.name, schema.since_version)}"


def row(schema):
    """(inputs, outputs, types, attributes) in the form of the table."""
    return (" ".join(parameter_text(p) for p in schema.inputs), " ".join(parameter_text(p) for p in schema.outputs),
            " ".join(f"{c.type_param_str}={types_text(c.allowed_type_strs)}"
                     for c in sorted(schema.type_constraints, key=lambda c: c.type_param_str)),
            " ".join(attribute_text(schema, a) for _, a in sorted(schema.attributes.items())))


def rows_of_onnx(names):
    newest = min(NEWEST_OPSET, onnx.defs.onnx_opset_version())
    schemas = [s for s in onnx.defs.get_all_schemas_with_history()
               if s.domain == "" and s.name in names and s.since_version <= newest and not s.deprecated]
    return {(s.name, s.since_version): row(s) for s in schemas}


def rows_of_table():
    text = open(TABLE).read() if os.path.exists(TABLE) else ""
    rows = {}
    for name, version, strings in ROW.findall(text):
        columns, column = [], ""
        for piece in re.findall(r'"[^"]*"|,', strings):  # adjacent texts are one text
            if piece == ",":
                columns.append(column)
                column = ""
            else:
                column += piece[1:-1]
        rows[name, int(version)] = tuple(columns + [column])
    return rows


def wrapped(text, width):
    """`text` as C string literals of at most `width` columns, cut between words."""
    pieces, line = [], ""
    for word in re.findall(r"\S+ ?", text):
        if line and len(line) + len(word) + 2 > width:
            pieces.append(line)
            line = ""
        line += word
    return ['"' + piece + '"' for piece in pieces + [line]]


def write(rows):
    with open(TABLE, "w") as out:
        out.write(HEAD)
        for (name, version), columns in sorted(rows.items()):
            line = f"OPERATOR({name}, {version}, " + ", ".join(f'"{c}"' for c in columns) + ")"
            if len(line) > 120:
                line = f"OPERATOR({name}, {version}"
                for column in columns:
                    literals = wrapped(column, 110)
                    line += ",\n         " + "\n         ".join(literals)
                line += ")"
            out.write(line + "\n")


def check():
    table = rows_of_table()
    known = rows_of_onnx({name for name, _ in table})
    newest = min(NEWEST_OPSET, onnx.defs.onnx_opset_version())
    differences = 0
    for key in sorted(set(known) | {k for k in table if k[1] <= newest}):
        if known.get(key) == table.get(key) or (key in CORRECTED and newest < NEWEST_OPSET):
            continue
        differences += 1
        print(f"{key[0]} (version {key[1]}):\n  onnx:  {known.get(key)}\n  table: {table.get(key)}")
    print(f"{len(known)} of {len(table)} rows compared with onnx {onnx.__version__}, which knows opset versions up to {newest}; "
          f"{differences} differ")
    return 1 if differences or not known else 0


def main():
    if sys.argv[1:] == ["--check"]:
        return check()
    if onnx.defs.onnx_opset_version() < NEWEST_OPSET:
        sys.exit(f"onnx {onnx.__version__} knows opset versions up to {onnx.defs.onnx_opset_version()}; {NEWEST_OPSET} are needed.")
    write(rows_of_onnx({name for name, _ in rows_of_table()} | set(sys.argv[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
