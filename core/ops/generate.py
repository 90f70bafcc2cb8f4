"""Makes the C++ API, op table, dynamic signatures and reference page from an op list (ops.yaml says how it is written).

usage: generate.py OPS.yaml --out DIR [--namespace tenon] [--include core/ops] [--ep-api DIR]

Refuses, with the row and the reason, whatever could not mean anything: an unknown scalar op or kind, a name used twice,
a default of the wrong type, an overload that no call can reach, an attribute struct with padding.
"""

import argparse
import pathlib
import re
import sys
from dataclasses import dataclass, field

import jinja2
import yaml

HERE = pathlib.Path(__file__).resolve().parent
FORMS = ("unary", "binary", "ternary", "kernel", "view", "composite")
ROW_KEYS = {"op", "signature", "signatures", "doc", "errors", "scalar_op", "infer", "outputs", "attributes", "scalars",
            "variants", "functor", "decompose", "operator", *FORMS}
OPERATORS = {"+": (2,), "-": (1, 2), "*": (2,), "/": (2,)}  # with how many operands
FIELD_BYTES = {"i32": 4, "u32": 4, "dtype": 4, "i64": 8, "dims": 72}
FIELD_TYPES = {"i32": "int32_t", "u32": "uint32_t", "dtype": "DType", "i64": "int64_t", "dims": "DimsAttribute"}


class OpListError(Exception):
    pass


@dataclass(frozen=True)
class ArgType:
    """A parameter type: the kinds of value it accepts, its C++ spelling and how the dynamic call reads one."""

    accepts: frozenset
    cpp: str
    read: str  # member of ArgumentList
    shown: str  # in messages


def arg_type(accepts, cpp, read, shown):
    return ArgType(frozenset(accepts.split()), cpp, read, shown)


TYPES = {
    "Tensor": arg_type("tensor", "const Tensor&", "tensor", "Tensor"),
    "Tensor!": arg_type("tensor", "Tensor&", "mutable_tensor", "Tensor"),
    "Tensor|Scalar": arg_type("tensor bool int float", "const Tensor&", "tensor_or_number", "Tensor or a number"),
    "Tensor[]": arg_type("tensors empty", "const TensorList&", "tensors", "list of Tensors"),
    "Scalar": arg_type("bool int float", "Scalar", "scalar", "Scalar"),
    "int": arg_type("int", "int64_t", "integer", "int"),
    "float": arg_type("int float", "double", "number", "float"),
    "bool": arg_type("bool", "bool", "boolean", "bool"),
    "int[]": arg_type("ints empty", "IntList", "ints", "list of ints"),
    "int[1]": arg_type("int ints empty", "IntList", "ints", "int or list of ints"),
    "dtype": arg_type("dtype", "DType", "dtype", "dtype"),
    "device": arg_type("device", "Device", "device", "device"),
    "string": arg_type("string", "std::string_view", "text", "str"),
}
# Types whose absence has a value of its own in C++; the others become std::optional.
ABSENT = {"Tensor": "Tensor()", "dtype": "DType::none", "device": "Device()", "int[]": "IntList()", "int[1]": "IntList()"}


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


@dataclass
class Op:
    name: str
    form: str
    doc: str
    errors: str
    signatures: list
    variants: tuple
    functor: bool
    kind: str = ""
    scalar_op: str = ""
    dtypes: str = "0"
    bool_result: bool = False
    cond_first: bool = False
    alias_input: str = ""
    infer: str = ""
    lower: str = ""
    view: str = ""
    outputs: int = 1
    attributes: str = ""
    decompose: bool = False
    operator: str = ""
    scalars: list = field(default_factory=list)

    @property
    def constant(self):
        return "k" + "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def mutates(self):
        return self.signatures[0].parameters[:1] and self.signatures[0].parameters[0].type == "Tensor!"


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
    """Checks a default against its type and gives it in C++."""
    text, bad = p.default, OpListError(f"{op}: the default of '{p.name}', {p.default}, is no {p.type}{'?' if p.optional else ''}.")
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
    match = re.fullmatch(r"(Tensor\|Scalar|Tensor!|[A-Za-z]+(?:\[1?\])?)(\?)?\s+([a-z_][a-z0-9_]*)(?:\s*=\s*(.+))?", text)
    if not match or match[1] not in TYPES:
        known = ", ".join(TYPES)
        raise OpListError(f"{op}: '{text}' is no parameter; write `type name` or `type name = default` with a type of {known}.")
    p = Parameter(match[1], match[3], match[2] == "?", keyword_only, match[4])
    if p.optional and p.type in ("Tensor!", "Tensor|Scalar", "Tensor[]"):
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
        raise OpListError(f"{op}: '{text}' is no signature; write `(type name, ...)`, then maybe `-> (Tensor, Tensor)` or `-> Tensor[]`.")
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


DEFAULT_SIGNATURES = {
    "unary": ["(Tensor x)"],
    "binary": ["(Tensor input, Tensor other)", "(Tensor input, Scalar other)", "(Scalar input, Tensor other)"],
}


def check_keys(row):
    name = row.get("op")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise OpListError(f"a row has no valid name: {row}.")
    unknown = sorted(set(row) - ROW_KEYS)
    if unknown:
        raise OpListError(f"{name}: unknown key '{unknown[0]}'.")
    forms = [f for f in FORMS if f in row]
    if len(forms) != 1:
        raise OpListError(f"{name}: exactly one of {', '.join(FORMS)} must be given, not {len(forms)}.")
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
            raise OpListError(f"{op}: scalar '{scalar}' is no float or Scalar parameter.")
    return [s if isinstance(s, str) else repr(float(s)) for s in chosen]


def fill_form(op, row, abi):
    if op.form in ("unary", "binary", "ternary"):
        domain, result = scalar_row(abi, op.name, op.form, row[op.form])
        op.kind, op.scalar_op = op.form, row[op.form]
        op.dtypes, op.bool_result, op.cond_first = domain_mask(abi, domain), result == "BOOL", domain == "COND"
        op.alias_input = "0" if not op.bool_result else ""
        op.functor = row.get("functor", op.form == "ternary")
        if op.form == "unary" and not op.functor:
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
        op.infer, op.lower = row.get("infer", op.kind), op.kind
        op.alias_input = "0" if abi.kinds[op.kind] == "SRC" else ""
        op.outputs = row.get("outputs", 1)
    if op.form == "view":
        op.view = row["view"]


def operands(signature):
    """The parameters that a caller must give."""
    return [p for p in signature.parameters if p.default is None]


def check_operator(op):
    if op.operator not in OPERATORS:
        raise OpListError(f"{op.name}: '{op.operator}' is no operator; there are {', '.join(OPERATORS)}.")
    for s in op.signatures:
        count = len(operands(s))
        if count not in OPERATORS[op.operator] or s.result != "Tensor":
            raise OpListError(f"{op.name}: operator {op.operator} cannot be '{s.text}', which takes {count} operands and gives {s.result}.")


def make_op(row, structs, abi):
    name, form = check_keys(row)
    if "signature" in row and "signatures" in row:
        raise OpListError(f"{name}: both `signature` and `signatures` are given.")
    texts = row.get("signatures") or ([row["signature"]] if "signature" in row else DEFAULT_SIGNATURES.get(form))
    if not texts:
        raise OpListError(f"{name}: no signature.")
    signatures = [parse_signature(name, text, abi) for text in texts]
    check_overloads(name, signatures)
    op = Op(name, form, " ".join(row["doc"].split()), row.get("errors", ""), signatures, (), row.get("functor", False))
    fill_form(op, row, abi)
    op.decompose = bool(row.get("decompose", False))
    op.operator = row.get("operator", "")
    if op.operator:
        check_operator(op)
    op.attributes = row.get("attributes", "")
    if op.attributes and op.attributes not in structs:
        raise OpListError(f"{name}: there is no attribute struct '{op.attributes}'.")
    default = ("out",) if op.bool_result else ("inplace", "out")
    op.variants = tuple(row.get("variants", default if form in ("unary", "binary", "ternary") else ()))
    for variant in op.variants:
        if variant not in ("inplace", "out"):
            raise OpListError(f"{name}: unknown variant '{variant}'.")
    return op


def make_structs(rows, abi_header):
    structs = {}
    for name, fields in rows.items():
        offset, wide, members = 0, False, []
        for field_name, text in fields.items():
            match = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", text)
            kind, count = match[1], int(match[2] or 1)
            if kind.startswith("ep_"):
                if not re.search(rf"}} {kind};", abi_header):
                    raise OpListError(f"attributes {name}: ep_api.h has no struct '{kind}'.")
                size, cpp, aligned = 8, kind, 8
            elif kind in FIELD_BYTES:
                size, cpp = FIELD_BYTES[kind] * count, FIELD_TYPES[kind]
                aligned = min(8, FIELD_BYTES[kind])
            else:
                raise OpListError(f"attributes {name}: '{text}' is no field type.")
            if offset % aligned:
                raise OpListError(f"attributes {name}: there is padding before '{field_name}'; put an i32 before it.")
            offset, wide = offset + size, wide or aligned == 8
            members.append((cpp, field_name, f"[{count}]" if match[2] else ""))
        if wide and offset % 8:
            raise OpListError(f"attributes {name}: there is padding at the end; add an i32 field.")
        structs[name] = members
    return structs


def load(path, ep_api):
    data = yaml.safe_load(path.read_text())
    abi = read_abi(ep_api)
    structs = make_structs(data.get("attributes") or {}, (ep_api / "ep_api.h").read_text())
    ops = [make_op(row, structs, abi) for row in data["ops"]]
    names = {}
    for op in ops:
        made = [op.name] + [op.name + "_"] * ("inplace" in op.variants) + [op.name + "_out"] * ("out" in op.variants)
        for name in made:
            if name in names:
                raise OpListError(f"the name '{name}' is made by two rows: {names[name]} and {op.name}.")
            names[name] = op.name
    check_operators(ops)
    return ops, structs


def check_operators(ops):
    taken = {}
    for op in ops:
        for s in op.signatures if op.operator else []:
            key = (op.operator, tuple(p.cpp_type for p in operands(s)))
            if key in taken:
                raise OpListError(f"operator {op.operator} of ({', '.join(key[1])}) is made by two rows: {taken[key]} and {op.name}.")
            taken[key] = op.name


# --- what the templates ask for -----------------------------------------------------------------------------------------

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
    """Signatures of `add_`: those whose first parameter is a tensor, which is written."""
    chosen = []
    for s in op.signatures:
        if s.parameters and s.parameters[0].type == "Tensor":
            chosen.append(Signature(op.name + "_", s.parameters, "Tensor", "inplace"))
    return chosen


def dynamic_value(index, p, like):
    """C++ for argument `index` of a dynamic call, its default where the caller left it out."""
    accessor = TYPES[p.type].read
    read = f"a.{accessor}({index}, {like})" if accessor == "tensor_or_number" else f"a.{accessor}({index})"
    plain = p.cpp_type.removeprefix("const ").removesuffix("&")
    absent = f"{plain}({ABSENT.get(p.type, 'std::nullopt')})"
    if p.optional:
        read = f"(a.none({index}) ? {absent} : {plain}({read}))"
    if p.default is None:
        return read
    default = p.cpp_default
    default = f"IntList{default}" if default.startswith("{") else default
    return f"(a.given({index}) ? {plain}({read}) : {plain}({default}))"


def dynamic_call(op, signature, name, variant):
    """The body of one entry of the signature table."""
    like = next((i for i, p in enumerate(signature.parameters) if p.type == "Tensor"), 0)
    values = [dynamic_value(i, p, like) for i, p in enumerate(signature.parameters)]
    if variant == "inplace":
        values[0] = "a.mutable_tensor(0)"
    call = f"{name}({', '.join(values)})"
    if variant == "out":
        index = len(values)
        into = f"{op.name}_out({', '.join([f'a.mutable_tensor({index})'] + values)})"
        return f"if (a.given({index}) && !a.none({index})) return one({into}); return one({call});"
    if signature.result == "Tensor[]":
        return f"return {call};"
    if signature.result == "Tensor":
        return f"return one({call});"
    return f"return several({call});"


@dataclass
class DynamicOp:
    name: str
    doc: str
    entries: list  # (signature text, parameters, keyword only mask..., body)


def dynamic_ops(ops):
    listed = []
    for op in ops:
        variant = "out" if "out" in op.variants else ""
        entries = []
        for s in op.signatures:
            shown = Signature(op.name, s.parameters, s.result, variant if s.result == "Tensor" else "")
            entries.append((shown, dynamic_call(op, s, op.name, shown.variant)))
        listed.append(DynamicOp(op.name, op.doc, entries))
        if "inplace" in op.variants:
            entries = [(s, dynamic_call(op, s, op.name + "_", "inplace")) for s in inplace_signatures(op)]
            listed.append(DynamicOp(op.name + "_", f"As {op.name}, written into the first argument.", entries))
    return listed


def wrap_comment(text, width=117):
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) + 1 > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join(f"// {part}" for part in lines + [line])


def render(args, ops, structs):
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE / "templates"), trim_blocks=True,
                                     lstrip_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    environment.globals.update(cpp_result=cpp_result, cpp_parameters=cpp_parameters, call_arguments=call_arguments,
                               inplace_signatures=inplace_signatures, operands=operands, wrap_comment=wrap_comment, types=TYPES)
    context = {"ops": ops, "structs": structs, "dynamic": dynamic_ops(ops), "namespace": args.namespace,
               "include": args.include, "source": args.ops.name}
    args.out.mkdir(parents=True, exist_ok=True)
    for template in sorted((HERE / "templates").glob("*.j2")):
        text = environment.get_template(template.name).render(context)
        target = args.out / template.name.removesuffix(".j2")
        if not target.exists() or target.read_text() != text:
            target.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ops", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--namespace", default="tenon")
    parser.add_argument("--include", default="core/ops", help="how the generated files include each other")
    parser.add_argument("--ep-api", type=pathlib.Path, default=HERE.parent.parent / "ep_api")
    args = parser.parse_args()
    try:
        ops, structs = load(args.ops, args.ep_api)
    except OpListError as error:
        sys.exit(f"{args.ops}: {error}")
    render(args, ops, structs)


if __name__ == "__main__":
    main()
