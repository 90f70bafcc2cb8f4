"""The column `sbp`: how the tensors of an op may be spread over ranks, read and checked."""

import re
from dataclasses import dataclass

from generator.model.errors import OpListError

ELEMENTWISE = ("unary", "binary", "ternary")


@dataclass
class Sbp:
    rule: str = ""  # the function of core/global/rules; empty: the arguments must be whole on each rank


def read_sbp(op, text):
    """The column of `op` (None: absent)."""
    if op.form == "composite" or op.library:
        if text is not None:
            raise OpListError(f"{op.name}: it has no `sbp`; the ops that it is written in have.")
        return Sbp()
    if text is None:
        if op.form in ELEMENTWISE:
            return Sbp(rule="elementwise")
        raise OpListError(f"{op.name}: no `sbp`; name a rule of core/global/rules, or write `broadcast` and why.")
    if re.fullmatch(r"broadcast: \S.*", text):
        if op.form in ELEMENTWISE:
            raise OpListError(f"{op.name}: an element-wise op is never `broadcast`.")
        return Sbp()
    if not re.fullmatch(r"[a-z_]\w*", text):
        raise OpListError(f"{op.name}: `sbp` is '{text}'; name a rule of core/global/rules, or write `broadcast` and why.")
    return Sbp(rule=text)


def has_dims(members):
    """True if an attribute struct holds the dims of the results."""
    return ("DimsAttribute", "dims", "") in [tuple(member) for member in members]
