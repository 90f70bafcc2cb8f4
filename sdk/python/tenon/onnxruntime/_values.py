"""Values outside of a run: OrtValue, OrtDevice, and the types of elements."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy

import tenon
from tenon import _onnx, _tenon  # type: ignore[attr-defined]
from tenon.onnxruntime._refused import refuse, with_refusals
from tenon.onnxruntime.capi.onnxruntime_pybind11_state import _of_run

# ONNX's name and number of an element type, by Tenon's name of the dtype.
_TYPES = {dtype: (onnx, number) for dtype, onnx, number in _onnx._element_types()}
_DTYPES = {number: name for name, (_, number) in _TYPES.items()}
NUMPY_DTYPES = {f"tensor({_TYPES[name][0]})": numpy.dtype(numpys) for name, numpys in (
    ("f32", "f4"), ("f64", "f8"), ("f16", "f2"), ("i8", "i1"), ("i16", "i2"), ("i32", "i4"), ("i64", "i8"), ("u8", "u1"), ("u16", "u2"), ("u32", "u4"),
    ("u64", "u8"), ("bool", "?"))}

# Names of device types that ONNX Runtime knows, with the numbers of OrtDevice.device_type().
_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "gpu": 1, "dml": 1, "webgpu": 1, "npu": 2, "cann": 2}


def dtype_of(element_type: Any) -> _tenon.DType:
    """Returns the dtype that a NumPy type, or a number of onnx.TensorProto.DataType, names."""
    if isinstance(element_type, numbers.Integral):
        if int(element_type) not in _DTYPES:
            raise ValueError(f"the element type is {element_type}; it must be the number of an ONNX type of numbers.")
        found: _tenon.DType = getattr(_tenon, _DTYPES[int(element_type)])
        return found
    return tenon.empty(0, dtype=element_type).dtype


def numpy_dtype_of(element_type: Any) -> Any:
    """Returns the NumPy dtype for elements in memory: that of ml_dtypes, such as bfloat16, where NumPy itself has none.

    Errors: RuntimeError if neither has it.
    """
    dtype = dtype_of(element_type)
    name = _TYPES[dtype.name][0]
    if f"tensor({name})" in NUMPY_DTYPES:
        return NUMPY_DTYPES[f"tensor({name})"]
    try:
        import ml_dtypes  # type: ignore[import-not-found,import-untyped,unused-ignore]
        return numpy.dtype(getattr(ml_dtypes, name.replace("float8e", "float8_e")))
    except (ImportError, AttributeError):
        raise RuntimeError(f"No corresponding Numpy type for Tensor Type. {name}; the package ml_dtypes may have one.") from None


def array_of(tensor: _tenon.Tensor) -> Any:
    """Returns the elements as an array that may be written. It shares the memory of a tensor that the host can address.

    Errors: RuntimeError if NumPy lacks the dtype.
    """
    try:
        array = numpy.asarray(tensor)
    except TypeError:
        raise RuntimeError(f"No corresponding Numpy type for Tensor Type. {_TYPES.get(tensor.dtype.name, (tensor.dtype.name,))[0]}") from None
    return array if array.flags.writeable else array.copy()


def python_of(value: Any) -> Any:
    """Returns a result of a model as ONNX Runtime gives it: arrays, and lists and dicts of them."""
    if isinstance(value, _tenon.Tensor):
        return array_of(value)
    if isinstance(value, list):
        return [python_of(each) for each in value]
    return value


def tensor_over(array: Any) -> _tenon.Tensor:
    """Returns a tensor that shares the memory of an array, or a copy if it cannot: memory that is read-only."""
    try:
        borrowed: _tenon.Tensor = _tenon.from_numpy(array)
        return borrowed
    except (ValueError, TypeError, BufferError):
        copied: _tenon.Tensor = _tenon.tensor(array)
        return copied


class OrtDevice:
    """A device of values: OrtDevice.make("cuda", 0). Names are those of ONNX Runtime and of Tenon's providers."""

    def __init__(self, name: str, index: int) -> None:
        self._name, self._index = name, index

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Names a device. It need not exist until something is put there. Errors: Exception for an unknown type."""
        name = str(ort_device_name).lower()
        if name not in _DEVICE_TYPES and not any(each.provider == name for each in _tenon.devices()):
            raise Exception("Unsupported device type: " + str(ort_device_name))
        return OrtDevice(name, int(device_id))

    def device_id(self) -> int:
        return self._index

    def device_type(self) -> int:
        """0: cpu, 1: a GPU, 2: an NPU."""
        return _DEVICE_TYPES.get(self._name, 1)

    def device_mem_type(self) -> int:
        return 0

    def device_vendor_id(self) -> int:
        return 0x10DE if self._name == "cuda" else 0

    @property
    def _device(self) -> _tenon.Device:
        """Errors: RuntimeError if this machine has no such device."""
        try:
            return _tenon.Device(f"{self._name}:{self._index}")
        except _tenon.Error as error:
            found = ", ".join(each.spelling for each in _tenon.devices() if each.usable)
            raise RuntimeError(f"Can't allocate memory on {self._name}:{self._index}: there is no such device here. Devices: {found}.") from error


@with_refusals
class OrtValue:
    """A value in the memory of a device: a tensor, or a sequence or map on the host. The factory methods make it.

    `tensor` is the tenon.Tensor that it holds.
    """

    def __init__(self, value: Any, numpy_obj: Any = None, onnx_type: str = "") -> None:
        if isinstance(value, OrtValue):
            value = value._value
        self._value: Any = value
        self._numpy_obj, self._onnx_type = numpy_obj, onnx_type

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: Any, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        """Makes a value of an array of numbers. On the cpu it shares the memory of the array, unless that is read-only.

        Errors: RuntimeError for anything else than an array of numbers, and if there is no such device.
        """
        if not isinstance(numpy_obj, numpy.ndarray) or numpy_obj.dtype.kind in "USOMm":
            given = f"an array of {numpy_obj.dtype}" if isinstance(numpy_obj, numpy.ndarray) else type(numpy_obj).__name__
            raise RuntimeError(f"Creation of OrtValues is currently only supported from non-string numpy arrays; {given} was given.")
        device = OrtDevice.make(device_type, device_id, vendor_id)._device
        if device_type.lower() == "cpu":
            return cls(tensor_over(numpy_obj), numpy_obj)
        return cls(_tenon.tensor(numpy_obj, device=device))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Any, /, onnx_element_type: int) -> OrtValue:
        """Makes a value that reads the memory of an array as elements of another type of the same size, such as bfloat16."""
        return cls(tensor_over(data.view(numpy_dtype_of(onnx_element_type))), data)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1,
                                     memory_info: Any = None) -> OrtValue:
        """Makes a value whose elements are not set. element_type: a NumPy type, or a number such as
        onnx.TensorProto.BFLOAT16."""
        if memory_info is not None:
            refuse("OrtMemoryInfo")
        device = OrtDevice.make(device_type, device_id, vendor_id)._device
        return cls(tenon.empty([int(each) for each in shape], dtype=dtype_of(element_type), device=device))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """Makes a value that shares the memory of a tensor of any library, on any device."""
        return cls(_tenon.from_dlpack(data), data)

    @property
    def tensor(self) -> _tenon.Tensor:
        """The tensor. Errors: RuntimeError for a value of another kind."""
        if not isinstance(self._value, _tenon.Tensor):
            raise RuntimeError(f"the OrtValue holds {self.data_type()}, not a tensor of numbers.")
        tensor: _tenon.Tensor = self._value
        return tensor

    def numpy(self) -> Any:
        """Returns the elements as an array, which shares the memory on the cpu. Errors: RuntimeError for a value that is not a
        tensor, or if NumPy lacks the dtype."""
        return self._value if isinstance(self._value, numpy.ndarray) else array_of(self.tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        return numpy.array(array, dtype=dtype) if copy else array.astype(dtype or array.dtype, copy=False)

    def data_ptr(self) -> int:
        """Returns the address of the first element."""
        return int(self.tensor.data_ptr())

    def device_name(self) -> str:
        """Returns the type of the device: "cpu", "cuda", or the name of another provider."""
        return str(self._value.device).partition(":")[0] if isinstance(self._value, _tenon.Tensor) else "cpu"

    def shape(self) -> list[int]:
        """Returns the dims of a tensor."""
        return list((self._value if isinstance(self._value, numpy.ndarray) else self.tensor).shape)

    def data_type(self) -> str:
        """Returns the type as ONNX writes it: "tensor(int64)"."""
        if isinstance(self._value, _tenon.Tensor):
            return f"tensor({_TYPES.get(self._value.dtype.name, (self._value.dtype.name,))[0]})"
        return "tensor(string)" if isinstance(self._value, numpy.ndarray) else self._onnx_type

    def element_type(self) -> int:
        """Returns the number of the element type in onnx.TensorProto.DataType."""
        return 8 if isinstance(self._value, numpy.ndarray) else _TYPES[self.tensor.dtype.name][1]

    def tensor_size_in_bytes(self) -> int:
        """Returns the bytes of the elements of a tensor."""
        return int(self.tensor.numel() * self.tensor.element_size())

    def has_value(self) -> bool:
        """False for an empty optional."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """True for a tensor of numbers or strings."""
        return isinstance(self._value, (_tenon.Tensor, numpy.ndarray))

    def is_sparse_tensor(self) -> bool:
        """False."""
        return False

    def is_tensor_sequence(self) -> bool:
        """True for a sequence."""
        return isinstance(self._value, list)

    def update_inplace(self, data: Any) -> None:
        """Copies an array, or another OrtValue, into this value's memory.

        Errors: TypeError for anything else; RuntimeError if shape or dtype differ.
        """
        if not isinstance(data, (numpy.ndarray, OrtValue)):
            raise TypeError(f"update_inplace: data is {type(data).__name__}; it must be a numpy.ndarray or an OrtValue.")
        source, target = data.tensor if isinstance(data, OrtValue) else _tenon.tensor(data), self.tensor
        if source.shape != target.shape or source.dtype != target.dtype:
            raise RuntimeError(f"update_inplace: the input has {source.dtype.name}{list(source.shape)}, and the OrtValue has "
                               f"{target.dtype.name}{list(target.shape)}.")
        target.copy_(source)

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return self.tensor.__dlpack__(stream=stream, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.tensor.__dlpack_device__()
        return device

    to_dlpack = __dlpack__


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copies each value of `src` into the value of `dst` at the same place, also between devices."""
    if len(src) != len(dst):
        raise ValueError(f"copy_tensors: src has {len(src)} values and dst has {len(dst)}.")
    try:
        for source, target in zip(src, dst):
            target.update_inplace(source)
    except _tenon.Error as error:
        raise _of_run(error) from error
