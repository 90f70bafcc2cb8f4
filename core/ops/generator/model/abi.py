"""The rows of ep_api/*.def that ops refer to."""

import re
from dataclasses import dataclass


@dataclass
class Abi:
    """The rows of ep_api/*.def that ops refer to."""

    dtypes: dict  # name -> (id, class)
    kinds: dict  # name -> alias role
    scalar_ops: dict  # arity word -> {name: (domain, result)}


def read_abi(folder):
    def rows(file, macro):
        text = re.sub(r"//.*", "", (folder / file).read_text())
        return [[cell.strip() for cell in row.split(",")] for row in re.findall(rf"^{macro}\((.*)\)\s*$", text, re.M)]

    scalar_ops = {}
    for word in ("unary", "binary", "ternary", "reduce"):
        scalar_ops[word] = {r[0]: (r[2], r[3] if word != "reduce" else "SAME") for r in rows("scalar_ops.def", f"EP_{word.upper()}")}
    return Abi(dtypes={r[0]: (int(r[1]), r[3]) for r in rows("dtypes.def", "EP_DTYPE")},
               kinds={r[0]: r[3] for r in rows("primitives.def", "EP_PRIMITIVE")},
               scalar_ops=scalar_ops)


def domain_mask(abi, domain):
    """Bit 1 << id of each dtype that a domain of scalar_ops.def holds."""
    signed, integer = {"INT", "FLOAT"}, {"INT", "UINT"}
    classes = {"FLOAT": {"FLOAT"}, "SIGNED": signed, "NUMERIC": integer | {"FLOAT"}, "INTEGER": integer,
               "BITS": integer | {"BOOL"}, "BOOL": {"BOOL"}, "ANY": integer | {"FLOAT", "BOOL"},
               "COND": integer | {"FLOAT", "BOOL"}}[domain]
    return f"{sum(1 << number for number, c in abi.dtypes.values() if c in classes):#x}u"
