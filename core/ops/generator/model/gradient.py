"""The column `gradient`: how the gradients of an op's arguments are computed, read and checked."""

import re
from dataclasses import dataclass, field

from generator.model.errors import OpListError
from generator.model.record import INPUTS, NUMBERS

NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
RESULT = re.compile(r"result(\d?)$")
MOST_EXPRESSIONS = 3  # GradientRow::needs
ARITY = {"unary": 1, "binary": 2, "ternary": 3}


@dataclass
class Argument:
    """A tensor argument of the record."""

    name: str
    number: bool  # a call may pass a number instead


@dataclass
class Expression:
    text: str
    inputs: list  # positions of the arguments it names
    results: int  # bits
    scalars: list  # (slot, name) of the float parameters it names


@dataclass
class Gradient:
    none: str = ""
    function: str = ""
    expressions: dict = field(default_factory=dict)  # position of the argument -> Expression
    inputs: int = 0  # bits: inputs that a function saves
    results: int = 0
    attributes: bool = False
    scalars: bool = False


def arguments_of(op):
    """The tensor arguments, in the order of the record."""
    if op.form in ARITY:
        made = []
        for i, p in enumerate(op.signatures[0].parameters[: ARITY[op.form]]):
            number = any(len(s.parameters) > i and s.parameters[i].type == "Scalar" for s in op.signatures)
            made.append(Argument(p.name, number))
        return made
    return [Argument(p.name, False) for p in op.signatures[0].parameters if p.type in INPUTS]


def reason_of(text):
    match = re.fullmatch(r"none: (\S.*)", text)
    return match[1] if match else ""


def read_names(op, text, ops):
    """Parses the expression `text` and checks its names."""
    arguments = {a.name: i for i, a in enumerate(arguments_of(op))}
    slots = {name: slot for slot, name in enumerate(op.scalars) if re.fullmatch(r"[A-Za-z_]\w*", name)}
    read = Expression(text, [], 0, [])
    for name in dict.fromkeys(NAME.findall(text)):
        if name in arguments:
            read.inputs.append(arguments[name])
        elif name == "result":
            read.results |= 1
        elif name in slots:
            read.scalars.append((slots[name], name))
        elif name != "grad" and name not in ops:
            raise OpListError(f"{op.name}: its gradient names '{name}', which is not an op, an argument or a float parameter.")
    return read


def read_expressions(op, row, ops):
    made, arguments = Gradient(), arguments_of(op)
    for name in row:
        if name not in [a.name for a in arguments]:
            raise OpListError(f"{op.name}: `gradient` names '{name}', which is not a tensor argument.")
    for i, argument in enumerate(arguments):
        if argument.name not in row:
            raise OpListError(f"{op.name}: `gradient` does not name '{argument.name}'; write an expression, or none and why.")
        if not reason_of(row[argument.name]):
            made.expressions[i] = read_names(op, row[argument.name], ops)
    if not made.expressions:
        raise OpListError(f"{op.name}: no argument has a gradient; write `gradient: \"none: why\"`.")
    if len(made.expressions) > MOST_EXPRESSIONS:
        raise OpListError(f"{op.name}: gradients of {len(made.expressions)} arguments are more than {MOST_EXPRESSIONS}; write a function.")
    made.scalars = any(e.scalars or any(arguments[j].number for j in e.inputs) for e in made.expressions.values())
    return made


def read_function(op, text):
    match = re.fullmatch(r"([a-z_]\w*)\(([\w, ]*)\)", text)
    if not match:
        raise OpListError(f"{op.name}: `gradient` is '{text}'; write expressions, a function with what it saves, or none and why.")
    made, arguments = Gradient(function=match[1]), [a.name for a in arguments_of(op)]
    for name in [part.strip() for part in match[2].split(",") if part.strip()]:
        result = RESULT.match(name)
        if result:
            made.results |= 1 << int(result[1] or 0)
        elif name == "inputs":
            made.inputs = 0xffffffff
        elif name in arguments:
            made.inputs |= 1 << arguments.index(name)
        else:
            raise OpListError(f"{op.name}: its gradient saves '{name}', which is neither a tensor argument nor a result.")
    made.attributes = bool(op.attributes)
    made.scalars = any(p.type in NUMBERS for s in op.signatures for p in s.parameters)
    return made


def read_gradient(op, row, ops):
    """The gradient of `op`, whose column is `row` (None: absent). `ops` has the names of all ops."""
    if op.form == "composite" and row is None:
        return Gradient(none="it is written in other ops")
    if op.form == "composite" and isinstance(row, str) and reason_of(row):
        raise OpListError(f"{op.name}: a composite without a gradient of its own has those of the ops that it is written in; leave `gradient` out.")
    if row is None:
        raise OpListError(f"{op.name}: no `gradient`; write expressions, a function with what it saves, or none and why.")
    if isinstance(row, dict):
        return read_expressions(op, row, ops)
    if reason_of(row):
        return Gradient(none=reason_of(row))
    return read_function(op, row)
