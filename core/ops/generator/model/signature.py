"""Signatures: parameters with their defaults, read from text and checked; whether a call can reach each overload."""

import re
from dataclasses import dataclass

from generator.model.arg_types import ABSENT, TYPES
from generator.model.errors import OpListError


@dataclass
class Parameter:
    type: str
    name: str
    optional: bool
    keyword_only: bool
    default: str | None  # as written, None: required
    cpp_type: str = ""
    cpp_default: str = ""

    @property
    def accepts(self):
        return TYPES[self.type].accepts | ({"none"} if self.optional else set())

    @property
    def text(self):
        question = "?" if self.optional else ""
        return f"{self.type.rstrip('!')}{question} {self.name}" + (f" = {self.default}" if self.default is not None else "")


@dataclass
class Signature:
    op: str
    parameters: list
    result: str
    variant: str = ""  # "", "inplace", "out"

    @property
    def text(self):
        parts, starred = [], False
        for p in self.parameters:
            if p.keyword_only and not starred:
                parts.append("*")
                starred = True
            parts.append(p.text)
        if self.variant == "out" and not starred:
            parts.append("*")
        if self.variant == "out":
            parts.append("Tensor? out = None")
        result = "" if self.result == "Tensor" else f" -> {self.result}"
        return f"{self.op}({', '.join(parts)}){result}"

    @property
    def cpp_types(self):
        return tuple(p.cpp_type for p in self.parameters)


def split_commas(text):
    parts, depth, quoted, start = [], 0, False, 0
    for i, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif not quoted and c in "[(":
            depth += 1
        elif not quoted and c in "])":
            depth -= 1
        elif not quoted and c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p]


def default_as_cpp(op, p, abi):
    """Checks a default against its type and returns it in C++."""
    text, bad = p.default, OpListError(f"{op}: the default of '{p.name}', {p.default}, does not have type {p.type}{'?' if p.optional else ''}.")
    if text == "None":
        if not p.optional:
            raise bad
        return ABSENT.get(p.type, "std::nullopt")
    integer, number = r"-?\d+", r"-?(\d+\.\d*([eE]-?\d+)?|\d+([eE]-?\d+)?)"
    if p.type == "int" and re.fullmatch(integer, text):
        return text
    if p.type == "float" and re.fullmatch(number, text):
        return text if re.search(r"[.eE]", text) else text + ".0"
    if p.type == "Scalar" and (re.fullmatch(number, text) or text in ("true", "false")):
        return text
    if p.type == "bool" and text in ("true", "false"):
        return text
    if p.type == "string" and re.fullmatch(r'"[^"\\]*"', text):
        return text
    if p.type == "dtype" and text in abi.dtypes:
        return "DType::boolean" if text == "bool" else f"DType::{text}"
    if p.type == "int[1]" and re.fullmatch(integer, text):
        return f"IntList({text})"
    if p.type in ("int[]", "int[1]") and re.fullmatch(r"\[\s*(-?\d+(\s*,\s*-?\d+)*)?\s*\]", text):
        return "{" + text.strip("[]") + "}" if text.strip("[] ") else "IntList()"
    raise bad


def parse_parameter(op, text, keyword_only, abi):
    match = re.fullmatch(r"(Tensor\|Scalar|Tensor\|float|Tensor!|[A-Za-z]+(?:\[1?\])?)(\?)?\s+([a-z_][a-z0-9_]*)(?:\s*=\s*(.+))?", text)
    if not match or match[1] not in TYPES:
        known = ", ".join(TYPES)
        raise OpListError(f"{op}: '{text}' is not a parameter; write `type name` or `type name = default` with a type of {known}.")
    p = Parameter(match[1], match[3], match[2] == "?", keyword_only, match[4])
    if p.optional and p.type in ("Tensor!", "Tensor|Scalar", "Tensor|float", "Tensor[]"):
        raise OpListError(f"{op}: '{p.name}' may not be optional: {p.type} has no value for None.")
    cpp = TYPES[p.type].cpp
    p.cpp_type = f"std::optional<{cpp}>" if p.optional and p.type not in ABSENT else cpp
    if p.default is not None:
        p.cpp_default = default_as_cpp(op, p, abi)
    return p


def parse_signature(op, text, abi):
    match = re.fullmatch(r"\(([^()]*)\)\s*(?:->\s*(.+))?", text.strip(), re.S)
    result = (match[2] or "Tensor").strip() if match else ""
    if not match or not re.fullmatch(r"Tensor|Tensor\[\]|\(Tensor(, Tensor)+\)", result):
        raise OpListError(f"{op}: '{text}' is not a signature; write `(type name, ...)`, then maybe `-> (Tensor, Tensor)` or `-> Tensor[]`.")
    parameters, keyword_only = [], False
    for part in split_commas(" ".join(match[1].split())):
        if part == "*":
            keyword_only = True
            continue
        p = parse_parameter(op, part, keyword_only, abi)
        if any(other.name == p.name for other in parameters):
            raise OpListError(f"{op}: two parameters are called '{p.name}'.")
        if p.default is None and not keyword_only and parameters and parameters[-1].default is not None:
            raise OpListError(f"{op}: '{p.name}' has no default but follows '{parameters[-1].name}', which has one.")
        if p.default is None and keyword_only and parameters and parameters[-1].default is not None:
            raise OpListError(f"{op}: keyword '{p.name}' has no default but follows one that has.")
        parameters.append(p)
    return Signature(op, parameters, result)


def covers(earlier, later):
    """True if `earlier` accepts every call that `later` accepts."""
    places = {p.name: (i, p) for i, p in enumerate(earlier.parameters)}
    for i, p in enumerate(later.parameters):
        if p.name not in places:
            return False
        j, other = places[p.name]
        if not p.accepts <= other.accepts or (not p.keyword_only and (i != j or other.keyword_only)):
            return False
        if p.default is None:
            continue
        if other.default is None:
            return False
    names = {p.name for p in later.parameters}
    return all(p.default is not None for p in earlier.parameters if p.name not in names)


def check_overloads(op, signatures):
    for j, later in enumerate(signatures):
        for earlier in signatures[:j]:
            if covers(earlier, later):
                raise OpListError(f"{op}: no call can reach '{later.text}', because '{earlier.text}' stands before it and accepts everything it accepts.")
            if earlier.cpp_types == later.cpp_types:
                raise OpListError(f"{op}: '{earlier.text}' and '{later.text}' are one and the same function in C++.")
