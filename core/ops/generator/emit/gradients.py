"""Gradients as C++: functions for rows that are written as expressions, and the rows of the gradient table."""

from generator.model.gradient import arguments_of


def statements(op, i, expression):
    """C++ that gives the gradient of argument `i`, which wants one."""
    arguments, lines, give = arguments_of(op), [], f"b.give({i}, {expression.text});"
    for slot, name in expression.scalars:
        lines.append(f"const double {name} = b.scalar({slot});")
    if expression.results:
        lines.append("const Tensor result = b.result();")
    for j in expression.inputs:
        if arguments[j].number and j != i:
            give = f"b.with({j}, [&](const auto& {arguments[j].name}) {{ {give} }});"
        else:
            lines.append(f"const Tensor {arguments[j].name} = b.input({j});")
    return lines + [give]


def names_grad(op):
    return any("grad" in e.text for e in op.gradient.expressions.values())


def needs(op):
    """C++ for the entries of GradientRow::needs."""
    g = op.gradient
    if g.function:
        return f"{{{g.inputs:#x}, {g.results:#x}}}"
    entries = []
    for i in range(max(g.expressions, default=-1) + 1):
        e = g.expressions.get(i)
        entries.append(f"{{{sum(1 << j for j in e.inputs):#x}, {e.results:#x}}}" if e else "{}")
    return ", ".join(entries)


def needs_count(op):
    return 1 if op.gradient.function else max(op.gradient.expressions, default=-1) + 1


def functions(ops):
    """The hand-written functions, each listed once."""
    return sorted({op.gradient.function for op in ops if op.gradient.function})
