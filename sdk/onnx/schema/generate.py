#!/usr/bin/env python3
"""Writes operators.def, ONNX's own rules for each operator: its inputs, outputs, element types and attributes.

Usage: generate.py             writes the table, with every operator of DOMAINS; needs a Python onnx with NEWEST_OPSET
       generate.py --check     prints the rows in which the installed onnx differs, for opset versions it knows

The build reads operators.def only, so it needs no onnx. CHOICES below has the allowed values of attributes, which onnx
only describes in prose.
"""
import os
import re
import sys

import onnx

NEWEST_OPSET = 28  # kNewestOpset of translate/translator.h
DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "operators.def")
COLUMNS = ("inputs", "outputs", "types", "attributes")
ROW = re.compile(r"^OPERATOR\(((?:[^\"()]|\"[^\"]*\")*)\)", re.MULTILINE)
FIELD = re.compile(r'\.(\w+) = (\d+|(?:"[^"]*"\s*)+)')

TYPES = {"float16": "f16", "float": "f32", "double": "f64", "bfloat16": "bf16", "int8": "i8", "int16": "i16", "int32": "i32",
         "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool",
         "float8e4m3fn": "f8e4m3fn", "float8e5m2": "f8e5m2", "float8e4m3fnuz": "f8e4m3fnuz",
         "float8e5m2fnuz": "f8e5m2fnuz", "float8e8m0": "f8e8m0", "float6e2m3": "f6e2m3", "float6e3m2": "f6e3m2",
         "float4e2m1": "f4e2m1", "int4": "i4", "uint4": "u4", "int2": "i2", "uint2": "u2", "string": "string"}
NO_TENSORS = ("seq", "optional", "map")  # for values that are not tensors, the rules only have the kind
GROUPS = {"floats": ["f16", "f32", "f64"], "ints": ["i8", "i16", "i32", "i64"], "uints": ["u8", "u16", "u32", "u64"],
          "f8": ["f8e4m3fn", "f8e5m2"]}
KINDS = {"FLOAT": "float", "INT": "int", "STRING": "text", "FLOATS": "floats", "INTS": "ints", "STRINGS": "texts",
         "TENSOR": "tensor", "GRAPH": "graph", "SPARSE_TENSOR": "sparse", "TYPE_PROTO": "type"}

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
    ("GRU", "direction"): {1: "forward|reverse|bidirectional"},
    ("GridSample", "mode"): {16: "bilinear|nearest|bicubic", 20: "linear|nearest|cubic"},
    ("GridSample", "padding_mode"): {16: "zeros|border|reflection"},
    ("LSTM", "direction"): {1: "forward|reverse|bidirectional"},
    ("LpNormalization", "p"): {1: "1|2"},
    ("MaxPool", "auto_pad"): {1: PADS},
    ("MaxPool", "storage_order"): {8: "0|1"},
    ("NegativeLogLikelihoodLoss", "reduction"): {12: REDUCTIONS},
    ("Pad", "mode"): {1: "constant|reflect|edge", 19: "constant|reflect|edge|wrap"},
    ("RNN", "direction"): {1: "forward|reverse|bidirectional"},
    ("Resize", "coordinate_transformation_mode"): {
        11: "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_half_pixel_for_nn|tf_crop_and_resize",
        13: "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_crop_and_resize",
        19: "half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric|tf_crop_and_resize"},
    ("Resize", "keep_aspect_ratio_policy"): {18: "stretch|not_larger|not_smaller"},
    ("Resize", "mode"): {10: "nearest|linear", 11: "nearest|linear|cubic"},
    ("Resize", "nearest_mode"): {11: "round_prefer_floor|round_prefer_ceil|floor|ceil"},
    ("RoiAlign", "mode"): {10: "avg|max"},
    ("ScatterElements", "reduction"): {16: "none|add|mul", 18: "none|add|mul|max|min"},
    ("ScatterND", "reduction"): {16: "none|add|mul", 18: "none|add|mul|max|min"},
    ("SoftmaxCrossEntropyLoss", "reduction"): {12: REDUCTIONS},
    ("SpaceToDepth", "mode"): {28: "DCR|CRD"},
    ("StringNormalizer", "case_change_action"): {10: "LOWER|UPPER|NONE"},
    ("TensorScatter", "mode"): {24: "linear|circular"},
    ("TfIdfVectorizer", "mode"): {9: "TF|IDF|TFIDF"},
    ("Upsample", "mode"): {1: "nearest|bilinear", 7: "nearest|linear"},
}

# Later releases of onnx corrected these rows without a new version of the operator, and releases before 1.15 do not say
# which lists of inputs may be empty. The table has the corrected rows.
CORRECTED = {("", "Erf", 13), ("", "GridSample", 16), ("", "Loop", 11), ("", "Loop", 13), ("", "Loop", 16),
             ("", "SequenceMap", 17)}

HEAD = """\
// ONNX's rules for its operators, one row per version. generate.py writes this file.
//   OPERATOR(.domain, .op_type, .since, .inputs, .outputs, .types, .attributes)
// `since` is the first opset version of the row. Without `domain`, the row is for ai.onnx; an empty list is left out.
// An input or output is name:type. After the name, "?" means that it may be absent; "+" that it is the last one and may
// be repeated; "*" that it is the last one and may be repeated or absent. "~" after that means that the repeated values
// may differ in type. `types` lists the types of each letter. An attribute is name:kind. After the kind, "!" means that
// the attribute is required, and "=" lists its allowed values.
"""


def word_of(type_text):
    """The table's word for ONNX's name of a type; None if Tenon has no such type."""
    own = re.fullmatch(r"tensor\((\w+)\)", type_text)
    outer = type_text.split("(")[0]
    return TYPES.get(own.group(1)) if own else outer if outer in NO_TENSORS else None


def types_text(strings):
    have = {word_of(s) for s in strings} - {None}
    words = []
    for group, members in GROUPS.items():
        if have.issuperset(members):
            words.append(group)
            have -= set(members)
    return "|".join(words + [t for t in (*TYPES.values(), *NO_TENSORS) if t in have])


def parameter_text(parameter):
    option = str(parameter.option).split(".")[-1]
    least = getattr(parameter, "min_arity", 1)
    mark = {"Single": "", "Optional": "?", "Variadic": "+" if least == 1 else "*"}[option]
    mixed = getattr(parameter, "is_homogeneous", getattr(parameter, "isHomogeneous", True))
    if option == "Variadic" and not mixed:
        mark += "~"
    type_text = parameter.type_str if hasattr(parameter, "type_str") else parameter.typeStr  # onnx before 1.15
    return f"{parameter.name}{mark}:{word_of(type_text) or type_text}"


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


def newest_of_onnx():
    """{domain: the newest opset version that the installed onnx knows}, of the domains of the table"""
    newest = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        newest[schema.domain] = max(newest.get(schema.domain, 0), schema.since_version)
    newest[""] = min(NEWEST_OPSET, onnx.defs.onnx_opset_version())
    return {domain: newest.get(domain, 0) for domain in DOMAINS}


def rows_of_onnx():
    newest = newest_of_onnx()
    schemas = [s for s in onnx.defs.get_all_schemas_with_history()
               if s.since_version <= newest.get(s.domain, 0) and not s.deprecated]
    return {(s.domain, s.name, s.since_version): row(s) for s in schemas}


def rows_of_table():
    rows = {}
    for text in ROW.findall(open(TABLE).read()):
        # adjacent texts are one text
        fields = {name: "".join(re.findall(r'"([^"]*)"', value)) or value for name, value in FIELD.findall(text)}
        key = fields.get("domain", ""), fields["op_type"], int(fields["since"])
        rows[key] = tuple(fields.get(column, "") for column in COLUMNS)
    return rows


def wrapped(text, width):
    """`text` as C string literals of at most `width` columns, cut between words, or at "|" in a word that is too long."""
    pieces, line = [], ""
    for word in re.findall(r"\S+ ?", text):
        for part in [word] if len(word) + 2 <= width else re.findall(r"[^|]+\|?", word):
            if line and len(line) + len(part) + 2 > width:
                pieces.append(line)
                line = ""
            line += part
    return ['"' + piece + '"' for piece in pieces + [line]]


def write(rows):
    with open(TABLE, "w") as out:
        out.write(HEAD)
        for (domain, name, version), columns in sorted(rows.items()):
            begin = f'OPERATOR(.domain = "{domain}", ' if domain else "OPERATOR("
            begin += f'.op_type = "{name}", .since = {version}'
            fields = [(f".{name} = ", column) for name, column in zip(COLUMNS, columns) if column]
            line = ", ".join([begin] + [f'{start}"{column}"' for start, column in fields]) + ")"
            if len(line) > 120:
                line = begin
                for start, column in fields:
                    indent = "\n" + " " * (len("OPERATOR(") + len(start))
                    line += ",\n" + " " * len("OPERATOR(") + start + indent.join(wrapped(column, 119 - len(indent)))
                line += ")"
            out.write(line + "\n")


def check():
    table = rows_of_table()
    known = rows_of_onnx()
    newest = newest_of_onnx()
    differences = 0
    for key in sorted(set(known) | {k for k in table if k[2] <= newest[k[0]]}):
        domain, name, version = key
        if known.get(key) == table.get(key) or (key in CORRECTED and newest[""] < NEWEST_OPSET):
            continue
        differences += 1
        print(f"{domain}{'.' if domain else ''}{name} (version {version}):\n  onnx:  {known.get(key)}\n  table: {table.get(key)}")
    print(f"{len(known)} of {len(table)} rows compared with onnx {onnx.__version__}, which knows opset versions up to {newest['']}; "
          f"{differences} differ")
    return 1 if differences or not known else 0


def main():
    if sys.argv[1:] == ["--check"]:
        return check()
    if onnx.defs.onnx_opset_version() < NEWEST_OPSET:
        sys.exit(f"onnx {onnx.__version__} knows opset versions up to {onnx.defs.onnx_opset_version()}; {NEWEST_OPSET} are needed.")
    write(rows_of_onnx())
    return 0


if __name__ == "__main__":
    sys.exit(main())
