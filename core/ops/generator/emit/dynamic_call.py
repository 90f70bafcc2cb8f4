"""Ops as entries of the dynamic call: signatures, and the body that calls the C++ function."""

from dataclasses import dataclass

from generator.emit.cpp import inplace_signatures
from generator.emit.doc import docstring, in_place_text
from generator.model.arg_types import ABSENT, TYPES
from generator.model.signature import Signature


def made_of(type_name, value):
    """C++ that makes a value of the type; for a pointer type, `T*(v)` would not be an expression."""
    return f"static_cast<{type_name}>({value})" if type_name.endswith("*") else f"{type_name}({value})"


def dynamic_value(index, p, like):
    """C++ for argument `index` of a dynamic call, or its default if the caller omitted it."""
    accessor = TYPES[p.type].read
    read = f"a.{accessor}({index}, {like})" if accessor == "tensor_or_number" else f"a.{accessor}({index})"
    plain = p.cpp_type.removeprefix("const ").removesuffix("&")
    absent = made_of(plain, ABSENT.get(p.type, "std::nullopt"))
    if p.optional:
        read = f"(a.none({index}) ? {absent} : {made_of(plain, read)})"
    if p.default is None:
        return read
    default = p.cpp_default
    default = f"IntList{default}" if default.startswith("{") else default
    return f"(a.given({index}) ? {made_of(plain, read)} : {made_of(plain, default)})"


def dynamic_call(op, signature, name, variant, namespace):
    """The body of one entry of the signature table."""
    like = next((i for i, p in enumerate(signature.parameters) if p.type == "Tensor"), 0)
    values = [dynamic_value(i, p, like) for i, p in enumerate(signature.parameters)]
    if variant == "inplace":
        values[0] = "a.mutable_tensor(0)"
    call = f"::{namespace}::{name}({', '.join(values)})"
    if variant == "out":
        index = len(values)
        into = f"::{namespace}::{op.name}_out({', '.join([f'a.mutable_tensor({index})'] + values)})"
        return f"if (a.given({index}) && !a.none({index})) return a.one({into}); return a.one({call});"
    if signature.result == "Tensor[]":
        return f"return {call};"
    if signature.result == "Tensor":
        return f"return a.one({call});"
    return f"return several({call});"


@dataclass
class DynamicOp:
    name: str
    full_name: str
    doc: str
    entries: list  # (signature text, parameters, keyword only mask..., body)


def dynamic_ops(ops, namespace="tenon"):
    listed = []
    for op in ops:
        variant = "out" if "out" in op.variants else ""
        entries = []
        for s in op.signatures:
            shown = Signature(op.full_name, s.parameters, s.result, variant if s.result == "Tensor" else "")
            entries.append((shown, dynamic_call(op, s, op.name, shown.variant, namespace)))
        listed.append(DynamicOp(op.name, op.full_name, docstring(op), entries))
        if "inplace" in op.variants:
            entries = [(s, dynamic_call(op, s, op.name + "_", "inplace", namespace)) for s in inplace_signatures(op)]
            listed.append(DynamicOp(op.name + "_", op.full_name + "_", in_place_text(op), entries))
    return listed
