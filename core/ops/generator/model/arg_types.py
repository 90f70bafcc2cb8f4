"""The types of parameters: what each accepts, how C++ spells it, how the dynamic call reads it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ArgType:
    """A parameter type: the kinds of value it accepts, its C++ spelling and how the dynamic call reads one."""

    accepts: frozenset
    cpp: str
    read: str  # member of ArgumentList
    shown: str  # the name in messages


def arg_type(accepts, cpp, read, shown):
    return ArgType(frozenset(accepts.split()), cpp, read, shown)


TYPES = {
    "Tensor": arg_type("tensor", "const Tensor&", "tensor", "Tensor"),
    "Tensor!": arg_type("tensor", "Tensor&", "mutable_tensor", "Tensor"),
    "Tensor|Scalar": arg_type("tensor bool int float", "const Tensor&", "tensor_or_number", "Tensor or a number"),
    "Tensor|float": arg_type("tensor int float", "const Tensor&", "tensor_or_double", "Tensor or a number"),
    "Tensor[]": arg_type("tensors empty", "const TensorList&", "tensors", "list of Tensors"),
    "Scalar": arg_type("bool int float", "Scalar", "scalar", "Scalar"),
    "int": arg_type("int", "int64_t", "integer", "int"),
    "float": arg_type("int float", "double", "number", "float"),
    "bool": arg_type("bool", "bool", "boolean", "bool"),
    "int[]": arg_type("ints empty", "IntList", "ints", "list of ints"),
    "int[1]": arg_type("int ints empty", "IntList", "ints", "int or list of ints"),
    "dtype": arg_type("dtype", "DType", "dtype", "dtype"),
    "device": arg_type("device", "Device", "device", "device"),
    "generator": arg_type("generator", "Generator*", "generator", "Generator"),
    "string": arg_type("string", "std::string_view", "text", "str"),
}
# Types with a C++ value that means absent; the others become std::optional.
ABSENT = {"Tensor": "Tensor()", "dtype": "DType::none", "device": "Device()", "generator": "nullptr", "int[]": "IntList()", "int[1]": "IntList()"}
