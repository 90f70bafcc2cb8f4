"""How a call of a composite is packed into one record: where each parameter is stored."""

from dataclasses import dataclass, field

from generator.model.arg_types import ABSENT
from generator.model.errors import OpListError

# Parameters that are fields of the attribute struct: type -> type of the field. If two signatures of an
# op give the same name to a list and a number, the list wins.
FIELDS = {"int": "int64_t", "bool": "int64_t", "int[]": "DimsAttribute", "int[1]": "DimsAttribute", "string": "TextAttribute",
          "dtype": "DType"}
NUMBERS = ("float", "Scalar")
INPUTS = ("Tensor", "Tensor|Scalar", "Tensor|float", "Tensor[]")


@dataclass
class Record:
    """The attribute struct of a composite (None if it needs none) and its fields: [(C++ type, name, "")]."""

    struct: str | None = None
    fields: list = field(default_factory=list)
    type_of: dict = field(default_factory=dict)  # name of a field -> its C++ type
    overloads: bool = False


def has_flag(p):
    """True if the record has a separate flag that says whether the parameter was given."""
    return p.optional and p.type not in ABSENT


def counted_lists(signature):
    """The lists of tensors whose lengths the record stores: all, if there are several."""
    listed = [p for p in signature.parameters if p.type == "Tensor[]"]
    return listed if len(listed) > 1 else []


def check_parameters(op, signature):
    listed = counted_lists(signature)
    if listed and op.form != "composite":
        raise OpListError(f"{op.name}: '{listed[1].name}' is a second list of tensors, which only a composite may have.")
    for p in signature.parameters:
        if p.type == "string" and p.optional:
            raise OpListError(f"{op.name}: '{p.name}' is a string that may be None, which a record cannot carry.")


def make_record(op):
    record = Record(overloads=len(op.signatures) > 1)
    if record.overloads:
        record.type_of["overload"] = "int64_t"
    for signature in op.signatures:
        check_parameters(op, signature)
        for p in signature.parameters:
            if p.type in FIELDS:
                cpp, known = FIELDS[p.type], record.type_of.get(p.name)
                if known not in (None, cpp) and {known, cpp} != {"int64_t", "DimsAttribute"}:
                    raise OpListError(f"{op.name}: '{p.name}' has two types, which one record cannot carry.")
                record.type_of[p.name] = "DimsAttribute" if "DimsAttribute" in (known, cpp) else cpp
            if has_flag(p):
                record.type_of[p.name + "_given"] = "int64_t"
        for p in counted_lists(signature):
            record.type_of[p.name + "_count"] = "int64_t"
    for name, cpp in record.type_of.items():
        record.fields.append((cpp, name, ""))
        if cpp == "DType":  # 4 bytes
            record.fields.append(("int32_t", name + "_reserved", ""))
    if record.fields:
        record.struct = "".join(word.capitalize() for word in op.name.split("_"))
    return record
