"""An op: one row of the list, read and checked."""

import re
from dataclasses import dataclass, field

from generator.model.abi import domain_mask
from generator.model.doc import Doc, read_doc
from generator.model.errors import OpListError
from generator.model.gradient import Gradient
from generator.model.library import FORMS as LIBRARY_FORMS
from generator.model.library import check_library_row, fill_library_form
from generator.model.record import INPUTS, Record, make_record
from generator.model.sbp import Sbp
from generator.model.signature import check_overloads, parse_signature

ARITIES = {"unary": 1, "binary": 2, "ternary": 3}
FORMS = ("unary", "binary", "ternary", "kernel", "view", "builtin", "composite", "host")
ROW_KEYS = {"op", "inputs", "signature", "signatures", "doc", "args", "returns", "errors", "example", "scalar_op", "infer", "lower", "order", "outputs", "attributes", "scalars",
            "variants", "functor", "method", "same_as", "decompose", "operator", "on_bool", "refuses_bool", "gradient", "state", "dtypes", "sbp", "wide", *FORMS}
OPERATORS = {"+": (2,), "-": (1, 2), "*": (2,), "/": (2,), "%": (2,), "==": (2,), "!=": (2,), "<": (2,), "<=": (2,), ">": (2,),
             ">=": (2,), "&": (2,), "|": (2,), "^": (2,), "~": (1,), "!": (1,)}  # number of operands
DEFAULT_SIGNATURES = {
    "unary": ["(Tensor input)"],
    "binary": ["(Tensor input, Tensor other)", "(Tensor input, Scalar other)", "(Scalar input, Tensor other)"],
}


@dataclass
class Op:
    name: str
    form: str
    signatures: list
    variants: tuple
    functor: bool
    doc: Doc | None = None
    kind: str = ""
    scalar_op: str = ""
    dtypes: str = "0"
    bool_result: bool = False
    cond_first: bool = False
    alias_input: str = ""
    infer: str = ""
    lower: str = ""
    view: str = ""
    run: str = ""
    record: Record | None = None  # for a composite
    outputs: int = 1
    keeps_channels: str = "no"  # a value of KeepsChannels
    attributes: str = ""
    inputs: int = 0
    decompose: bool = False
    operator: str = ""
    method: bool = False
    same_as: str = ""
    on_bool: str = ""
    refuses_bool: str = ""  # the error if one argument is bool
    refuses_bools: str = ""  # the error if both are
    scalars: list = field(default_factory=list)
    gradient: Gradient | None = None
    sbp: Sbp = field(default_factory=Sbp)
    wide: bool = False  # for a composite: f16 and bf16 compute in f32
    library: str = ""  # its library of ops; empty: an op of Tenon
    state: bool = False

    @property
    def full_name(self):
        """The name in the dynamic call and in texts of graphs."""
        return f"{self.library}::{self.name}" if self.library else self.name

    @property
    def takes_out(self):
        """True if its functor takes the tensor to write. For other ops `name_` copies the result into the argument."""
        return bool(self.variants) and self.form in ARITIES

    @property
    def mutates(self):
        return self.signatures[0].parameters[:1] and self.signatures[0].parameters[0].type == "Tensor!"


def check_keys(row, library):
    name = row.get("op")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise OpListError(f"a row has no valid name: {row}.")
    unknown = sorted(set(row) - ROW_KEYS)
    if unknown:
        raise OpListError(f"{name}: unknown key '{unknown[0]}'.")
    check_library_row(name, row, library)
    known = [f for f in FORMS if f in LIBRARY_FORMS] if library else [f for f in FORMS if f != "host"]
    forms = [f for f in known if f in row]
    if len(forms) != 1:
        raise OpListError(f"{name}: exactly one of {', '.join(known)} must be given, not {len(forms)}.")
    if not row.get("doc"):
        raise OpListError(f"{name}: no doc.")
    return name, forms[0]


def scalar_row(abi, op, table, name):
    if name not in abi.scalar_ops[table]:
        raise OpListError(f"{op}: ep_api/scalar_ops.def has no {table} op '{name}'.")
    return abi.scalar_ops[table][name]


def launch_scalars(op, row, signature):
    """The expressions of launch scalars a, b of a unary op."""
    names = [p.name for p in signature.parameters[1:] if p.type in ("float", "Scalar")]
    chosen = row.get("scalars", names)
    for scalar in chosen:
        if isinstance(scalar, str) and scalar not in names:
            raise OpListError(f"{op}: scalar '{scalar}' is not a float or Scalar parameter.")
    return [s if isinstance(s, str) else repr(float(s)) for s in chosen]


def fill_form(op, row, abi):
    if op.library and op.form != "composite":
        fill_library_form(op, row, abi)
        return
    if op.form in ("unary", "binary", "ternary"):
        domain, result = scalar_row(abi, op.name, op.form, row[op.form])
        op.kind, op.scalar_op = op.form, row[op.form]
        op.dtypes, op.bool_result, op.cond_first = domain_mask(abi, domain), result == "BOOL", domain == "COND"
        op.alias_input = "0" if not op.bool_result else ""
        op.functor = row.get("functor", op.form == "ternary")
        if op.form == "unary":
            op.scalars = launch_scalars(op.name, row, op.signatures[0])
        return
    op.functor = True
    if op.form == "kernel":
        op.kind = row["kernel"]
        if op.kind not in abi.kinds:
            raise OpListError(f"{op.name}: ep_api/primitives.def has no kind '{op.kind}'.")
        if op.kind in ("reduce", "arg_reduce"):
            op.scalar_op = row.get("scalar_op", "")
            scalar_row(abi, op.name, "reduce", op.scalar_op)
        op.infer, op.lower = row.get("infer", op.kind), row.get("lower", op.kind)
        op.alias_input = "0" if abi.kinds[op.kind] == "SRC" else ""
        op.outputs = row.get("outputs", 1)
        if row.get("order", "channels") != "channels":
            raise OpListError(f"{op.name}: `order` is '{row['order']}'; it may be 'channels'.")
        if "order" in row:
            listed = op.signatures[0].parameters[0].type == "Tensor[]"
            op.keeps_channels = "of_all_inputs" if listed else "of_first_input"
    if op.form == "view":
        op.view = row["view"]
    if op.form == "builtin":
        op.run, op.infer = row["builtin"], row.get("infer", row["builtin"])


def fill_bool(op, row):
    op.on_bool = row.get("on_bool", "")
    if op.on_bool and op.form != "binary":
        raise OpListError(f"{op.name}: only a binary op may have `on_bool`.")
    texts = row.get("refuses_bool", [])
    most = {"unary": 1, "binary": 2}.get(op.form, 0)
    if len(texts) > most or (texts and op.on_bool):
        raise OpListError(f"{op.name}: `refuses_bool` has {len(texts)} texts; a unary op may have 1, a binary one without `on_bool` 2.")
    op.refuses_bool, op.refuses_bools = (*texts, "", "")[:2]


@dataclass
class RecordShape:
    required: int
    most: int
    listed: bool


def record_shape(op):
    """The number of inputs of the record of `op`. Every signature names the same tensors."""
    if op.form in ARITIES:
        return RecordShape(ARITIES[op.form], ARITIES[op.form], False)
    if op.inputs:
        return RecordShape(op.inputs, op.inputs, False)
    tensors = [p for p in op.signatures[0].parameters if p.type in INPUTS]
    listed = any(p.type == "Tensor[]" for p in tensors)
    required = sum(1 for p in tensors if not p.optional)
    return RecordShape(required, 15 if listed or op.form == "composite" else len(tensors), listed)


def is_of_floats(op, abi):
    """True if the op is elementwise and is defined on floats alone, so that integers become f32 before it."""
    return op.form in ARITIES and scalar_row(abi, op.name, op.form, op.scalar_op)[0] == "FLOAT"


def operands(signature):
    """The parameters that a caller must give."""
    return [p for p in signature.parameters if p.default is None]


def check_operator(op):
    if op.operator not in OPERATORS:
        raise OpListError(f"{op.name}: '{op.operator}' is not an operator; the operators are {', '.join(OPERATORS)}.")
    for s in op.signatures:
        count = len(operands(s))
        if count not in OPERATORS[op.operator] or s.result != "Tensor":
            raise OpListError(f"{op.name}: operator {op.operator} cannot be '{s.text}', which takes {count} operands and gives {s.result}.")


def make_op(row, structs, abi, library="", shared=None):
    name, form = check_keys(row, library)
    if "signature" in row and "signatures" in row:
        raise OpListError(f"{name}: both `signature` and `signatures` are given.")
    texts = row.get("signatures") or ([row["signature"]] if "signature" in row else DEFAULT_SIGNATURES.get(form))
    if not texts:
        raise OpListError(f"{name}: no signature.")
    full_name = f"{library}::{name}" if library else name
    signatures = [parse_signature(full_name, text, abi) for text in texts]
    check_overloads(full_name, signatures)
    op = Op(name, form, signatures, (), row.get("functor", False), library=library)
    fill_form(op, row, abi)
    op.doc = read_doc(op, row, is_of_floats(op, abi), shared or {})
    op.decompose = bool(row.get("decompose", False))
    fill_bool(op, row)
    op.operator = row.get("operator", "")
    if op.operator:
        check_operator(op)
    op.same_as = row.get("same_as", "")
    op.method = bool(row.get("method", False))
    if op.method and not all(s.parameters and s.parameters[0].type in ("Tensor", "Tensor!") for s in signatures[:1]):
        raise OpListError(f"{name}: it cannot be a method, since its first parameter is not a Tensor.")
    op.wide = bool(row.get("wide", False))
    if op.wide and (form != "composite" or library or not all(s.result.startswith(("Tensor", "(")) and s.result != "Tensor[]" for s in signatures)):
        raise OpListError(f"{name}: only a composite of Tenon's own that gives tensors one by one may be `wide`.")
    op.inputs = row.get("inputs", 0)
    op.attributes = row.get("attributes", "")
    if op.attributes and form != "composite" and op.attributes not in structs:
        raise OpListError(f"{name}: there is no attribute struct '{op.attributes}'.")
    if form == "composite" or library:
        if op.attributes:
            raise OpListError(f"{name}: a composite has no `attributes`; its record is made from its signatures.")
        op.record = make_record(op)
        op.attributes = op.record.struct or ""
        if form == "composite":
            op.outputs = 1 if all(s.result == "Tensor" for s in op.signatures) else 0
    default = ("out",) if op.bool_result else ("inplace", "out")
    op.variants = tuple(row.get("variants", default if form in ("unary", "binary", "ternary") else ()))
    for variant in op.variants:
        if variant not in ("inplace", "out"):
            raise OpListError(f"{name}: unknown variant '{variant}'.")
        if variant == "out" and form not in ARITIES:
            raise OpListError(f"{name}: only {', '.join(ARITIES)} have the variant 'out'.")
    if "inplace" in op.variants and any(s.result != "Tensor" for s in signatures):
        raise OpListError(f"{name}: the variant 'inplace' is for one tensor, and it gives another result.")
    return op
