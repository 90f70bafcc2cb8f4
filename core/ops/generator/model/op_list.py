"""The whole list: the rows, and the rules between rows."""

import re

import yaml

from generator.model.abi import read_abi
from generator.model.attributes import make_structs
from generator.model.errors import OpListError
from generator.model.gradient import read_gradient
from generator.model.library import check_library_name
from generator.model.op import DEFAULT_SIGNATURES, make_op, operands
from generator.model.sbp import read_sbp


def with_other_names(rows):
    """The rows. A row with `same_as` becomes a composite with the signatures of the row that it names."""
    named = {row.get("op"): row for row in rows}
    for row in rows:
        if "same_as" not in row:
            yield row
            continue
        other = named.get(row["same_as"])
        if other is None or "same_as" in other:
            raise OpListError(f"{row.get('op')}: `same_as` is '{row['same_as']}', which is not a row, or has a `same_as` itself.")
        form = next((form for form in DEFAULT_SIGNATURES if form in other), "")
        texts = other.get("signatures") or ([other["signature"]] if "signature" in other else DEFAULT_SIGNATURES.get(form, []))
        if any("Tensor[]" in text.partition("->")[2] for text in texts):
            raise OpListError(f"{row.get('op')}: '{row['same_as']}' gives a list of tensors, and has no other names.")
        yield {**documentation_of(row, other), **row, "composite": True, "signatures": texts}


DOC_KEYS = ("args", "returns", "errors", "example")


def documentation_of(row, other):
    """The documentation of another name, where its row has none: that of the row `other` which it names."""
    if "doc" in row or not other.get("doc"):
        return {}
    texts = {key: other[key] for key in DOC_KEYS if key in other}
    if "example" in texts:
        texts["example"] = re.sub(rf"\btenon\.{other['op']}\(", f"tenon.{row['op']}(", texts["example"])
    return {**texts, "doc": f"Another name of `{other['op']}`.\n{other['doc']}"}


def own_names(path):
    """The names of Tenon's own ops, which the gradients of a library may call; `path` is their list."""
    return {row["op"] + suffix for row in yaml.safe_load(path.read_text())["ops"] for suffix in ("", "_", "_out")}


def load(path, ep_api, own_list=None):
    """The ops of the list at `path` and their attribute structs. `own_list`: the path of Tenon's own list, if this is a library's."""
    data = yaml.safe_load(path.read_text())
    if not isinstance(data, dict) or not isinstance(data.get("ops"), list) or not data["ops"]:
        raise OpListError("the list has no `ops`.")
    abi, library = read_abi(ep_api), data.get("library", "")
    if "library" in data:
        check_library_name(library)
        if "attributes" in data:
            raise OpListError("a library has no `attributes`; its structs are made from the signatures.")
    shared = data.get("arguments") or {}
    structs = make_structs(data.get("attributes") or {}, (ep_api / "ep_api.h").read_text())
    data["ops"] = list(with_other_names(data["ops"]))
    ops = [make_op(row, structs, abi, library, shared) for row in data["ops"]]
    complete_other_names(ops)
    names = {}
    for op in ops:
        made = [op.name] + [op.name + "_"] * ("inplace" in op.variants) + [op.name + "_out"] * ("out" in op.variants)
        for name in made:
            if name in names:
                raise OpListError(f"the name '{name}' is made by two rows: {names[name]} and {op.name}.")
            names[name] = op.name
    check_operators(ops)
    check_bool_rows(ops)
    callable_names = set(names.values()) | (own_names(own_list) if own_list else set())
    for op, row in zip(ops, data["ops"]):
        op.gradient = read_gradient(op, row.get("gradient"), callable_names)
        op.sbp = read_sbp(op, row.get("sbp"))
    return ops, structs | composite_structs(ops, structs)


def complete_other_names(ops):
    """Gives another name of an op the result and the variants of the op."""
    rows = {op.name: op for op in ops}
    for op in ops:
        if op.same_as:
            op.doc.usual = rows[op.same_as].doc.usual
        if op.same_as and "inplace" in rows[op.same_as].variants:
            op.variants = ("inplace",)


def composite_structs(ops, structs):
    made = {}
    for op in ops:
        if op.record is None or op.record.struct is None:
            continue
        if op.record.struct in structs:
            raise OpListError(f"attributes {op.record.struct}: the record of '{op.name}' makes a struct of that name.")
        made[op.record.struct] = op.record.fields
    return made


def check_bool_rows(ops):
    """A row that computes another one on bool must be a binary op that is defined on bool."""
    rows = {op.name: op for op in ops}
    for op in ops:
        if not op.on_bool:
            continue
        row = rows.get(op.on_bool)
        if row is None or row.form != "binary" or row.on_bool or not row.bool_result:
            raise OpListError(f"{op.name}: `on_bool` is '{op.on_bool}', which is not a binary op that gives bool.")


def check_operators(ops):
    taken = {}
    for op in ops:
        for s in op.signatures if op.operator else []:
            key = (op.operator, tuple(p.cpp_type for p in operands(s)))
            if key in taken:
                raise OpListError(f"operator {op.operator} of ({', '.join(key[1])}) is made by two rows: {taken[key]} and {op.name}.")
            taken[key] = op.name
