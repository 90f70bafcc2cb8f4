"""Ops as Python calls: for stubs, and for the reference page."""

from generator.emit.cpp import inplace_signatures

KEYWORDS = {"from", "lambda", "in", "is", "None"}


def default_of(p):
    """The default in Python; `...` for a dtype, whose name may hide a Python type."""
    if p.default in ("true", "false"):
        return p.default.capitalize()
    return "..." if p.default is not None and p.type == "dtype" and p.default != "None" else p.default


def own_keywords(op, signature, variant):
    """The keywords that a call of this variant ("", "inplace") has in addition to the parameters, each with its default."""
    keywords = {}
    if variant == "" and "out" in op.variants and signature.result == "Tensor":
        keywords["out"] = "None"
    if variant == "" and "inplace" in op.variants and signature.parameters and signature.parameters[0].type == "Tensor":
        keywords["inplace"] = "False"
    return keywords


def call_of(op, signature, variant=""):
    """The call with its defaults, for readers: add(input, other, *, alpha=1, out=None, inplace=False)."""
    parts, starred = [], False
    for p in signature.parameters:
        if p.keyword_only and not starred:
            parts.append("*")
            starred = True
        default = p.default if p.type == "dtype" else default_of(p)
        parts.append(p.name if default is None else f"{p.name}={default}")
    keywords = own_keywords(op, signature, variant)
    if keywords and not starred:
        parts.append("*")
    parts += [f"{name}={default}" for name, default in keywords.items()]
    return f"{op.name}{'_' if variant == 'inplace' else ''}({', '.join(parts)})"


def calls_of(op):
    """(signature, variant) of every form in which Python calls the op and its variants."""
    forms = [(s, "") for s in op.signatures]
    return forms + ([(s, "inplace") for s in inplace_signatures(op)] if "inplace" in op.variants else [])
