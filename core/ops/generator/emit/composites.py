"""Composites as records: code that packs a call into a record, and code that unpacks it."""

from generator.emit.cpp import call_arguments
from generator.model.record import FIELDS, INPUTS, NUMBERS, counted_lists, has_flag


def field_value(record, p):
    """C++ for the attribute field of parameter `p`."""
    if FIELDS[p.type] == "DType":
        return p.name
    if FIELDS[p.type] == "TextAttribute":
        return f"TextAttribute::of({p.name})"
    if record.type_of[p.name] == "DimsAttribute":
        return f"composite::list({p.name})"
    return f"{p.name}.value_or(0)" if has_flag(p) else p.name


def fill_fields(op, signature):
    """Statements that fill `attributes` from the parameters of `signature`."""
    lines = [f"attributes.overload = {op.signatures.index(signature)};"] if op.record.overloads else []
    for p in signature.parameters:
        if p.type in FIELDS:
            lines.append(f"attributes.{p.name} = {field_value(op.record, p)};")
        if has_flag(p):
            lines.append(f"attributes.{p.name}_given = {p.name}.has_value();")
    for p in counted_lists(signature):
        lines.append(f"attributes.{p.name}_count = static_cast<int64_t>({p.name}.size());")
    return lines


def inputs_of(signature):
    """C++ for the single tensors among the inputs of the record."""
    return ", ".join(f"composite::or_null({p.name})" for p in signature.parameters if p.type in INPUTS and p.type != "Tensor[]")


def tensors_of(signature):
    """C++ for the addresses of the tensors."""
    return ", ".join(f"&{p.name}" for p in signature.parameters if p.type in INPUTS and p.type != "Tensor[]")


def wide_arguments(signature):
    """The arguments of a call in which f16 and bf16 tensors are f32."""
    return ", ".join(f"halves.widened({p.name})" if p.type in INPUTS else p.name for p in signature.parameters)


def function_of(op, signature):
    """The C++ function that computes a call."""
    return f"wide_{op.name}_{op.signatures.index(signature)}" if op.wide else f"functors::{op.name}"


def argument_names(op):
    """The names of the tensor parameters, in the order in which they are inputs of the record."""
    parameters = op.signatures[0].parameters
    if op.form == "composite":  # the functor of a composite makes records with other inputs
        return []
    if op.form == "binary":
        return [p.name for p in parameters[:2]]
    return [p.name for p in parameters if p.type in INPUTS]


def lists_of(signature):
    """The names of the lists of tensors, which come last among the inputs."""
    return [p.name for p in signature.parameters if p.type == "Tensor[]"]


def scalars_of(signature):
    absent = {"float": "0.0", "Scalar": "Scalar()"}
    values = [f"{p.name}.value_or({absent[p.type]})" if p.optional else p.name for p in signature.parameters if p.type in NUMBERS]
    return ", ".join(f"Scalar({value})" for value in values)


def device_of(signature):
    return next((f"{p.name}.state()" for p in signature.parameters if p.type == "device"), None)


def fits(signature):
    """C++ that is true if the record has room for every list and text; None if there are none."""
    parts = [f"composite::fits({p.name})" for p in signature.parameters if p.type in ("int[]", "int[1]", "string", "generator")]
    return " && ".join(parts) or None


def value_back(record, p, number, scalar):
    """C++ that reads parameter `p` from a record, where it may be input `number` or scalar `scalar`."""
    if p.type == "Tensor!":
        return "call.outputs[0]"
    if p.type == "Tensor[]":
        length = f", a.{p.name}_count" if p.name + "_count" in record.type_of else ""
        return f"composite::inputs_from(call, {number}{length})"
    if p.type in INPUTS:
        return f"composite::input(call, {number})"
    if p.type == "device":
        return "Device(call.device)"
    if p.type == "generator":  # a call with a generator is not recorded
        return "nullptr"
    if p.type in NUMBERS:
        value = f"call.scalars[{scalar}]" + (".to_double()" if p.type == "float" else "")
    elif FIELDS[p.type] == "TextAttribute":
        value = f"a.{p.name}.view()"
    elif p.type == "int":
        value = f"a.{p.name}" + (".values[0]" if record.type_of[p.name] == "DimsAttribute" else "")
    elif p.type == "bool":
        value = f"a.{p.name} != 0"
    elif p.type == "dtype":
        value = f"a.{p.name}"
    else:
        value = f"IntList(a.{p.name}.span())"
    return f"a.{p.name}_given != 0 ? {p.cpp_type}({value}) : std::nullopt" if has_flag(p) else value


def arguments_back(op, signature):
    """The arguments of the functor, read from a record."""
    values, number, scalar = [], 0, 0
    first = str(sum(p.type in INPUTS and p.type != "Tensor[]" for p in signature.parameters))  # index of the next list
    counted = counted_lists(signature)
    for p in signature.parameters:
        values.append(value_back(op.record, p, first if p.type == "Tensor[]" else number, scalar))
        first += f" + a.{p.name}_count" if p in counted else ""
        number += p.type in INPUTS and p.type != "Tensor[]"
        scalar += p.type in NUMBERS
    return ", ".join(values)


def host_parameters(op, signature):
    """The parameters of the host function: results, state, then the op's parameters in order."""
    parts = ["tenon::library::HostTensors outputs"] + ([f"{state_name(op)}& state"] if op.state else [])
    for p in signature.parameters:
        if p.type == "Tensor[]":
            parts.append(f"tenon::library::HostTensors {p.name}")
        elif p.type in INPUTS:
            parts.append(f"const tenon::library::HostTensor& {p.name}")
        else:
            parts.append(f"{p.cpp_type} {p.name}")
    return ", ".join(parts)


def host_arguments(op, signature):
    """The arguments of the host function, from the tensors `in` and `out` and the record."""
    values, number, scalar = ["out"] + (["*state"] if op.state else []), 0, 0
    for p in signature.parameters:
        if p.type == "Tensor[]":
            values.append(f"in.subspan({number})")
        elif p.type in INPUTS:
            values.append(f"in[{number}]")
        else:
            values.append(value_back(op.record, p, number, scalar))
        number += p.type in INPUTS
        scalar += p.type in NUMBERS
    return ", ".join(values)


def state_name(op):
    return "".join(word.capitalize() for word in op.name.split("_")) + "State"


def outputs_of(op, signature):
    """C++ for the number of outputs."""
    if signature.result == "Tensor[]":
        return f"functors::count_{op.name}({call_arguments(signature)})"
    return str(signature.result.count(",") + 1)
