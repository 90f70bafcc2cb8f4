"""Rows in the op list of a library: the keys that they may use."""

import re

from generator.model.errors import OpListError
from generator.model.record import INPUTS, NUMBERS

FORMS = ("composite", "kernel", "host", "same_as")
KEYS = {"op", "signature", "signatures", "doc", "args", "returns", "errors", "example", "infer", "gradient", "decompose", "state", "dtypes", *FORMS}
RULES = ("like_input", "elementwise")  # rules that a library need not write
RESERVED = ("tenon", "std")
MOST_NUMBERS = 8  # EP_MAX_SCALARS


def check_library_name(name):
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in RESERVED:
        raise OpListError(f"`library` is '{name}'; it must be a name such as my_package, and not {' or '.join(RESERVED)}.")


def check_library_row(name, row, library):
    """Raises an error for a row that a library may not have."""
    if not library:
        for key in ("host", "state", "dtypes"):
            if key in row:
                raise OpListError(f"{name}: `{key}` is for libraries of ops; this list names none.")
        return
    for key in row:
        if key not in KEYS:
            raise OpListError(f"{name}: `{key}` is for Tenon's own ops; a row of a library may have {', '.join(sorted(KEYS))}.")
    if "host" in row and "decompose" in row:
        raise OpListError(f"{name}: `decompose` is for a kernel; a function on the host serves every device.")
    if "state" in row and "host" not in row:
        raise OpListError(f"{name}: `state` is for functions on the host.")


def fill_library_form(op, row, abi):
    """An op with its own record. Its attribute struct is made from its signature, like a composite's."""
    if len(op.signatures) != 1:
        raise OpListError(f"{op.name}: a {op.form} of a library has one signature, not {len(op.signatures)}; write a composite that calls it.")
    signature = op.signatures[0]
    if signature.result == "Tensor[]" or any(p.type == "Tensor!" for p in signature.parameters):
        raise OpListError(f"{op.name}: a {op.form} of a library gives new tensors, whose number is known.")
    inputs = [p for p in signature.parameters if p.type in INPUTS]
    if not inputs:
        raise OpListError(f"{op.name}: a {op.form} of a library has a tensor among its parameters.")
    if any(a.optional and not b.optional for a, b in zip(inputs, inputs[1:])):
        raise OpListError(f"{op.name}: the tensors that may be None must be the last ones.")
    if any(p.type == "generator" for p in signature.parameters):
        raise OpListError(f"{op.name}: a record holds no generator; write a composite.")
    op.scalars = [p.name for p in signature.parameters if p.type in NUMBERS]
    if len(op.scalars) > MOST_NUMBERS:
        raise OpListError(f"{op.name}: {len(op.scalars)} floats and Scalars are more than the {MOST_NUMBERS} that a record holds.")
    op.functor = False
    op.outputs = signature.result.count(",") + 1
    op.infer = row.get("infer", op.name)
    op.state = bool(row.get("state", False))
    op.dtypes = dtype_mask(op, row.get("dtypes", []), abi)
    if op.form == "kernel":
        op.kind, op.lower = row["kernel"], op.name
        if op.kind not in abi.kinds:
            raise OpListError(f"{op.name}: ep_api/primitives.def has no kind '{op.kind}'.")
    else:
        op.run = op.name


def dtype_mask(op, names, abi):
    """Bit 1 << id of each dtype that the first tensor may have."""
    for name in names:
        if name not in abi.dtypes:
            raise OpListError(f"{op.name}: `dtypes` has '{name}', which is not a dtype; the dtypes are {', '.join(abi.dtypes)}.")
    return f"{sum(1 << abi.dtypes[name][0] for name in names):#x}u"
