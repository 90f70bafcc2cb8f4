"""Ops as C++ declarations and calls."""

import textwrap

from generator.model.signature import Signature


def cpp_result(signature, mutates):
    if mutates:
        return "Tensor&"
    if signature.result == "Tensor[]":
        return "TensorList"
    if signature.result == "Tensor":
        return "Tensor"
    return f"std::tuple<{signature.result.strip('()')}>"


def cpp_parameters(signature, defaults, first=None):
    parts = [first] if first else []
    for i, p in enumerate(signature.parameters):
        kind = "Tensor&" if first is None and signature.variant == "inplace" and i == 0 else p.cpp_type
        parts.append(f"{kind} {p.name}" + (f" = {p.cpp_default}" if defaults and p.cpp_default else ""))
    return ", ".join(parts)


def call_arguments(signature, first=None):
    return ", ".join(([first] if first else []) + [p.name for p in signature.parameters])


def inplace_signatures(op):
    """Signatures of the in-place form `add_`: those whose first parameter is a tensor, which is written."""
    chosen = []
    for s in op.signatures:
        if s.parameters and s.parameters[0].type == "Tensor":
            chosen.append(Signature(op.name + "_", s.parameters, "Tensor", "inplace"))
    return chosen


def method_signatures(signatures):
    """Signatures that start with a tensor, for methods."""
    return [s for s in signatures if s.parameters[0].type in ("Tensor", "Tensor!") and not s.parameters[0].optional]


def method_parameters(signature, defaults):
    return cpp_parameters(Signature(signature.op, signature.parameters[1:], signature.result), defaults)


def method_arguments(signature):
    return call_arguments(Signature(signature.op, signature.parameters[1:], signature.result), "*this")


def wrap_comment(text, width=117, indent=0):
    """The text as lines of comment. Spaces in front of it stay; the lines after the first one begin with `indent` spaces."""
    first = " " * (len(text) - len(text.lstrip()))
    filled = textwrap.wrap(text.strip(), width, initial_indent=first, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"// {line}" for line in filled)
