"""The documentation of an op as a docstring of Python, as a comment of C++, and as a section of the reference page."""

import textwrap

from generator.model.doc import parameters_of

# Types of parameters as a reader of Python knows them.
WORDS = {
    "Tensor": "Tensor", "Tensor!": "Tensor", "Tensor|Scalar": "Tensor or number", "Tensor|float": "Tensor or number",
    "Tensor[]": "list of Tensors", "Scalar": "number", "int": "int", "float": "float", "bool": "bool", "int[]": "list of ints",
    "int[1]": "int or list of ints", "dtype": "dtype", "device": "Device", "generator": "Generator", "string": "str",
}
WIDTH = 96  # columns of a docstring


def makes_tensors(op):
    """True if Python's call takes requires_grad, as sdk/python/op.cpp decides."""
    return op.name.endswith("_like") or any(p.name == "device" and p.keyword_only for s in op.signatures for p in s.parameters)


def type_of(parameters, signatures):
    """The types that a parameter has in the signatures, and its default. It is optional where a signature lacks it."""
    words = " or ".join(dict.fromkeys(WORDS[p.type] for p in parameters))
    defaults = [p.default for p in parameters if p.default is not None]
    if not defaults and len(parameters) == len(signatures):
        return f"{words} or None" if any(p.optional for p in parameters) else words
    if not defaults or defaults[0] in ("None", "[]") or len(defaults) < len(parameters):
        return f"{words}, optional"
    return f"{words}, default {defaults[0].capitalize() if defaults[0] in ('true', 'false') else defaults[0]}"


def arguments_of(op):
    """(name, types, text) of each argument in Python, with the keywords that the variants add."""
    rows = [(name, type_of(found, op.signatures), op.doc.arguments.get(name, "")) for name, found in parameters_of(op.signatures).items()]
    first = op.signatures[0].parameters[0].name if op.signatures[0].parameters else ""
    if "out" in op.variants:
        rows.append(("out", "Tensor, optional", "The tensor that receives the result."))
    if "inplace" in op.variants:
        rows.append(("inplace", "bool, default False", f"inplace=True writes the result into `{first}`, as `{op.name}_` does."))
    if makes_tensors(op):
        rows.append(("requires_grad", "bool, default False", "True records the operations on the result, so that backward() gives it a gradient."))
    return rows


def in_place_text(op):
    """The sentence of `name_`."""
    return f"In-place form of `{op.name}`: writes the result into `{op.signatures[0].parameters[0].name}` and returns it."


def wrapped(text, indent, more):
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=more, break_long_words=False, break_on_hyphens=False)


def docstring(op, example=True):
    """The docstring: paragraphs, then the sections Args, Returns, Raises and Example."""
    parts = [wrapped(paragraph, "", "") for paragraph in op.doc.paragraphs]
    arguments = arguments_of(op) if op.doc.arguments else []
    if arguments:
        parts.append("\n".join(["Args:"] + [wrapped(f"{name} ({types})" + (f": {text}" if text else ""), "    ", "        ") for name, types, text in arguments]))
    if op.doc.result:
        parts.append("Returns:\n" + wrapped(op.doc.result, "    ", "    "))
    if op.doc.errors:
        parts.append("Raises:\n" + wrapped(f"InvalidArgument: If {op.doc.conditions}.", "    ", "        "))
    if op.doc.example and example:
        parts.append("Example:\n" + textwrap.indent(op.doc.example, "    "))
    return "\n\n".join(parts)


def plain_text(text):
    """The text without the characters that a docstring in source would have to escape."""
    return text.replace('"', "'").replace("\\", "")


def stub_docstring(op, width):
    """The docstring of a stub: `width` spaces stand before it. Editors show it, so it has all but the example."""
    text = plain_text(docstring(op, example=False))
    if "\n" not in text:
        return text
    return textwrap.indent(text, " " * width).strip() + "\n" + " " * width


def literal(text):
    """The text as a string literal of C++."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def shared_comment(ops, wrap):
    """A comment about the arguments that rows leave to `arguments` of the list, which mean the same in every op."""
    texts = {}
    for op in ops:
        for name, found in parameters_of(op.signatures).items():
            if name in op.doc.arguments and name not in op.doc.own:
                texts.setdefault((name, op.doc.arguments[name]), WORDS[found[0].type])
    return "\n".join(wrap(f"  {name} ({words}): {text}", indent=6) for (name, text), words in sorted(texts.items()))


def comment(op, wrap):
    """The comment in front of the C++ declarations: paragraphs, the arguments that the row describes, result, errors."""
    parts = [wrap(paragraph) for paragraph in op.doc.paragraphs]
    parts += [wrap(f"  {name}: {text}", indent=6) for name, text in op.doc.arguments.items() if name in op.doc.own]
    if op.doc.returns:
        parts.append(wrap(f"Returns: {op.doc.returns}"))
    if op.doc.errors:
        parts.append(wrap(f"Errors: invalid_argument if {op.doc.conditions}."))
    return "\n".join(parts)
