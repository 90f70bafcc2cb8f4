"""Generates the parts of the Python package that depend on the op list.

methods.inc: ops that are methods of Tensor. in_place.inc: ops with an in-place variant. __init__.pyi: type stubs.

usage: generate.py OPS.yaml --ep-api DIR --stubs TEMPLATE.pyi --out DIR
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True  # keeps compiled modules out of the source tree
CORE = pathlib.Path(__file__).resolve().parents[2] / "core/ops"
sys.path.insert(0, str(CORE))

from generator.emit.doc import in_place_text, plain_text, stub_docstring
from generator.emit.python import KEYWORDS, calls_of, default_of, own_keywords
from generator.model.op_list import load

# Python types that each type of parameter accepts (core/ops/conversions.h).
TYPES = {
    "Tensor": "Tensor", "Tensor!": "Tensor", "Tensor|Scalar": "Tensor | Number", "Tensor|float": "Tensor | Number",
    "Tensor[]": "Sequence[Tensor]", "Scalar": "Number", "int": "SupportsIndex", "float": "_Float", "bool": "_Bool",
    "int[]": "Ints", "int[1]": "SupportsIndex | Ints", "dtype": "DTypeLike", "device": "DeviceLike",
    "generator": "Generator", "string": "str",
}
KEYWORD_TYPES = {"out": "Tensor | None", "inplace": "_Bool"}


def parameters_of(op, signature, method, variant):
    """Returns the parameters as Python source; None if the name of one is a Python keyword."""
    parts, starred = [], False
    for i, p in enumerate(signature.parameters):
        if method and i == 0:
            parts.append("self")
            continue
        if p.name in KEYWORDS:
            return None
        if p.keyword_only and not starred:
            parts.append("*")
            starred = True
        text = f"{p.name}: {TYPES[p.type]}{' | None' if p.optional else ''}"
        parts.append(text if p.default is None else f"{text} = {default_of(p)}")
    own = own_keywords(op, signature, variant)
    if own and not starred:
        parts.append("*")
    parts += [f"{name}: {KEYWORD_TYPES[name]} = {default}" for name, default in own.items()]
    return ", ".join(parts)


def with_free_numbers(op, signature):
    """True if the op ends with a list of ints that may be written without brackets: x.reshape(2, 3)."""
    places = [p for p in signature.parameters if not p.keyword_only]
    return places and places[-1].type == "int[]" and all(p.type in ("Tensor", "Tensor!") for p in places[:-1]) and len(places) <= 2


def result_of(signature):
    if signature.result == "Tensor":
        return "Tensor"
    if signature.result == "Tensor[]":
        return "tuple[Tensor, ...]"
    return "tuple[" + signature.result.strip("()") + "]"


def functions(op, method):
    """Returns the stub lines of an op, for all signatures and variants. The first function has the full docstring."""
    lines = []
    listed = [(op.name, "", plain_text(op.doc.summary))]
    if "inplace" in op.variants:
        listed.append((op.name + "_", "inplace", plain_text(in_place_text(op))))
    for name, variant, summary in listed:
        signatures = [s for s, of in calls_of(op) if of == variant]
        if method:
            signatures = [s for s in signatures if s.parameters and s.parameters[0].type in ("Tensor", "Tensor!")]
        forms = []
        for signature in signatures:
            text = parameters_of(op, signature, method, variant)
            if text is None:
                forms.append(("*args: Any, **kwargs: Any", result_of(signature)))
                continue
            forms.append((text, result_of(signature)))
            if with_free_numbers(op, signature):
                first = "self, " if method else f"{signature.parameters[0].name}: Tensor, " if len(signature.parameters) > 1 and signature.parameters[0].type.startswith("Tensor") else ""
                rest = [p for p in signature.parameters if p.keyword_only and p.name not in KEYWORDS]
                keywords = "".join(f", {p.name}: {TYPES[p.type]}{' | None' if p.optional else ''} = {default_of(p)}" for p in rest)
                forms.append((f"{first}*{signature.parameters[-1 - len(rest)].name}: SupportsIndex{keywords}", result_of(signature)))
        forms = list(dict.fromkeys(forms))
        indent = "    " if method else ""
        for i, (text, result) in enumerate(forms):
            if len(forms) > 1:
                lines.append(f"{indent}@overload")
            lines.append(f"{indent}def {name}({text}) -> {result}:  # type: ignore[misc, override, unused-ignore]")
            doc = stub_docstring(op, 4) if i == 0 and not method and not variant else summary
            lines.append(f'{indent}    """{doc}"""')
    return lines


def stub_names(template):
    """Returns the names that the template declares by hand: at the top level, and in Tensor."""
    top, in_tensor, inside = set(), set(), False
    for line in template.splitlines():
        if line.startswith("class "):
            inside = line.startswith("class Tensor")
        elif line and not line[0].isspace():
            inside = False
        words = line.strip().replace("(", " ").replace(":", " ").split()
        if len(words) > 1 and words[0] in ("def", "class"):
            (in_tensor if inside and line[0].isspace() else top if not line[0].isspace() else set()).add(words[1])
    return top, in_tensor


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ops", type=pathlib.Path)
    parser.add_argument("--ep-api", type=pathlib.Path, required=True)
    parser.add_argument("--stubs", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    ops, _ = load(args.ops, args.ep_api, args.ops)
    methods = [name for op in ops if op.method for name in [op.name] + ([op.name + "_"] if "inplace" in op.variants else [])]
    template = args.stubs.read_text()
    top, in_tensor = stub_names(template)
    as_functions = [line for op in ops if op.name not in top for line in functions(op, False)]
    as_methods = [line for op in ops if op.method and op.name not in in_tensor for line in functions(op, True)]
    made = template.replace("    # METHODS\n", "\n".join(as_methods) + "\n").replace("# FUNCTIONS\n", "\n".join(as_functions) + "\n")
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "methods.inc").write_text("".join(f'"{name}",\n' for name in methods))
    (args.out / "in_place.inc").write_text("".join(sorted(f'"{op.name}",\n' for op in ops if "inplace" in op.variants)))
    (args.out / "__init__.pyi").write_text(made)


if __name__ == "__main__":
    main()
