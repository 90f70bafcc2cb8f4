"""Reads the files that torch.save writes: the zip archives of PyTorch 1.6 and newer, and the format before them.

Both hold a pickle of the object and the elements of its storages. Of the pickle, tensors, parameters, dtypes, devices,
sizes and plain data are read (_pickles.py); any other class is an error that names it.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
from typing import Any, Callable

from tenon import _tenon
from tenon._pickles import Fault, Global, Reader
from tenon._states import FAULTS, stored_device, tensor_of
from tenon._tenon import Tensor

_DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool", "float8_e4m3fn",
           "float8_e5m2")
_STORAGES = {"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16", "LongStorage": "int64",
             "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool"}
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_TENSOR_CLASSES = ("torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer")


class _Storage:
    """Elements that tensors share. `dtype` is None if the tensors say it."""

    def __init__(self, key: str, dtype: Any, size: int) -> None:
        self.key, self.dtype, self.size = key, dtype, size


class _Objects:
    """Makes the objects that a pickle of PyTorch names. bytes_of(key) returns the elements of a storage."""

    def __init__(self, bytes_of: Callable[[str], bytes], device: Any) -> None:
        self._bytes_of, self._device = bytes_of, device
        self._flat: dict[tuple[str, str], Tensor] = {}
        self._globals: dict[tuple[str, str], Any] = {("torch", name): getattr(_tenon, name) for name in _DTYPES}
        for name in (*_STORAGES, "UntypedStorage"):
            self._globals["torch" if name in _STORAGES else "torch.storage", name] = Global(name)
        for name in _TENSOR_CLASSES:
            module, _, last = name.rpartition(".")
            self._globals[module, last] = Global(name)
        for module, last, make in (("torch", "Size", tuple), ("torch", "device", self._device_of),
                                   ("torch._utils", "_rebuild_tensor_v2", self._tensor_of_storage), ("torch._utils", "_rebuild_tensor_v3", self._tensor_of_bytes),
                                   ("torch._utils", "_rebuild_parameter", self._parameter), ("torch._utils", "_rebuild_parameter_with_state", self._parameter),
                                   ("torch._tensor", "_rebuild_from_type_v2", self._of_type)):
            self._globals[module, last] = Global(f"{module}.{last}", make)

    def find(self, module: str, name: str) -> Any:
        found = self._globals.get((module, name))
        if found is None:
            raise Fault(f"it contains {module}.{name}; only tensors and plain data are read, and no code is run")
        return found

    def find_stored(self, given: Any) -> _Storage:
        if type(given) is not tuple or len(given) not in (5, 6) or given[0] != "storage" or not isinstance(given[1], Global):
            raise Fault("it has a reference to something other than a storage")
        kind, key, _, size = given[1:5]
        if kind.name not in _STORAGES and kind.name != "UntypedStorage" or type(key) is not str or type(size) is not int:
            raise Fault(f"it has a malformed storage of the kind {kind.name}")
        if len(given) == 6 and given[5] is not None:
            raise Fault("it has a view of a storage, which only PyTorch before 0.4 wrote")
        return _Storage(key, getattr(_tenon, _STORAGES[kind.name]) if kind.name in _STORAGES else None, size)

    def _device_of(self, spelling: Any, index: Any = None) -> Any:
        return stored_device(spelling if index is None else f"{spelling}:{index}", self._device)

    def _of_type(self, function: Any, kind: Any, arguments: Any, _: Any) -> Any:
        if not isinstance(kind, Global) or kind.name not in _TENSOR_CLASSES:
            raise Fault("it contains a tensor of another class")
        if not isinstance(function, Global) or function.make in (None, self._of_type):
            raise Fault("it makes a tensor by other means than PyTorch")
        return function.make(*arguments)

    def _parameter(self, tensor: Any, requires_grad: bool, *_: Any) -> Any:
        from tenon.nn.parameter import Parameter
        if not isinstance(tensor, Tensor):
            raise Fault("a parameter is not made of a tensor")
        return Parameter(tensor.detach(), bool(requires_grad))

    def _tensor_of_storage(self, storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool = False, *_: Any) -> Tensor:
        if not isinstance(storage, _Storage) or storage.dtype is None:
            raise Fault("a tensor has no typed storage")
        return self._tensor(storage, storage.dtype, offset, size, stride, requires_grad)

    def _tensor_of_bytes(self, storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool, _: Any, dtype: Any, *__: Any) -> Tensor:
        if not isinstance(storage, _Storage) or not isinstance(dtype, _tenon.DType):
            raise Fault("a tensor has no storage or no dtype")
        return self._tensor(storage, dtype, offset, size, stride, requires_grad)

    def _tensor(self, storage: _Storage, dtype: Any, offset: int, size: Any, stride: Any, requires_grad: bool) -> Tensor:
        for numbers in (size, stride, (offset,)):
            if type(numbers) is not tuple or any(type(each) is not int or each < 0 for each in numbers):
                raise Fault(f"a tensor has the size {size!r}, the strides {stride!r} and the offset {offset!r}")
        if len(size) != len(stride):
            raise Fault(f"a tensor of size {size} has {len(stride)} strides")
        key = storage.key, dtype.name
        if key not in self._flat:
            elements, width = self._bytes_of(storage.key), dtype.bits // 8
            count = storage.size if storage.dtype is not None else storage.size // width
            if not 0 <= count * width <= len(elements):
                raise Fault(f"storage {storage.key} has {len(elements)} bytes, and {count} elements of {dtype.name} are expected")
            self._flat[key] = tensor_of(elements[:count * width], (count,), dtype, self._device)
        made = _strided(self._flat[key], offset, size, stride)
        return made.requires_grad_() if requires_grad else made


def _strided(flat: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...]) -> Tensor:
    """Returns the tensor of this size and these strides in a list of elements. It shares them if it is dense."""
    if 0 in size:
        return flat[:0].reshape(size)
    dims = [1 if step == 0 else extent for extent, step in zip(size, stride)]
    count, last = math.prod(dims), offset + sum((extent - 1) * step for extent, step in zip(dims, stride))
    if last >= flat.numel() or count > last + 1 - offset:
        raise Fault(f"a tensor of size {size} and strides {stride} at offset {offset} does not fit into a storage of {flat.numel()} elements")
    order = sorted((i for i, extent in enumerate(dims) if extent > 1), key=lambda i: -stride[i])
    if [stride[i] for i in order] == [math.prod(dims[j] for j in order[place + 1:]) for place, _ in enumerate(order)]:
        order += [i for i, extent in enumerate(dims) if extent == 1]
        part = flat if count == flat.numel() else flat[offset:offset + count]
        made = part.reshape([dims[i] for i in order]).permute([order.index(i) for i in range(len(dims))])
    else:
        places = _tenon.full((1,) * len(dims), offset, dtype=_tenon.i64, device=flat.device)
        for axis, (extent, step) in enumerate(zip(dims, stride)):
            along = _tenon.arange(extent, dtype=_tenon.i64, device=flat.device) * step
            places = places + along.reshape([-1 if i == axis else 1 for i in range(len(dims))])
        made = _tenon.take(flat, places)
    return made if list(size) == dims else made.expand(size)


def is_archive(path: str) -> bool:
    """True if a zip file is one of PyTorch, not one of NumPy."""
    try:
        with zipfile.ZipFile(path) as archive:
            return not any(name.endswith(".npy") for name in archive.namelist())
    except Exception:  # a damaged archive, which `load` describes
        return True


def _refused(path: str, error: Exception) -> Any:
    text = str(error) if isinstance(error, Fault) else f"{type(error).__name__}: {error}"
    return _tenon.InvalidArgument(f"load(): the file {path} cannot be read as one of PyTorch: {text}.")


class _Archive:
    """The records of a zip archive, which PyTorch does not compress. It may leave out their checksums."""

    def __init__(self, path: str, file: Any) -> None:
        self._file, self._size = file, os.path.getsize(path)
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
        except OSError as error:  # the place of the directory is wrong
            raise Fault(f"its directory cannot be read: {error}") from error
        tops = {entry.filename.partition("/")[0] for entry in entries}
        if len(tops) != 1:
            raise Fault("it is a zip archive of another kind")
        self._entries = {entry.filename.partition("/")[2]: entry for entry in entries}
        if "constants.pkl" in self._entries:
            raise Fault("it is a TorchScript archive, which contains code")

    def read(self, name: str) -> bytes:
        entry = self._entries.get(name)
        if entry is None:
            raise Fault(f"the record {name} is missing")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise Fault(f"the record {name} is compressed or encrypted")
        if entry.header_offset < 0:
            raise Fault(f"the record {name} lies before the file")
        self._file.seek(entry.header_offset)
        header = self._file.read(30)
        if len(header) != 30 or header[:4] != b"PK\3\4":
            raise Fault(f"the record {name} has no header")
        begin = entry.header_offset + 30 + sum(struct.unpack("<HH", header[26:]))
        if begin + entry.file_size > self._size:
            raise Fault(f"the record {name} is cut off")
        self._file.seek(begin)
        data: bytes = self._file.read(entry.file_size)
        return data

    def __contains__(self, name: str) -> bool:
        return name in self._entries


def load(path: str, device: Any) -> Any:
    """Returns the object in a zip archive of torch.save. Errors: InvalidArgument."""
    try:
        with open(path, "rb") as file:
            archive = _Archive(path, file)
            if "byteorder" in archive and archive.read("byteorder") != b"little":
                raise Fault("its numbers are big-endian")
            objects = _Objects(lambda key: archive.read(f"data/{key}"), device)
            return Reader(archive.read("data.pkl"), objects.find, objects.find_stored).load()
    except (*FAULTS, struct.error, zipfile.BadZipFile) as error:
        raise _refused(path, error) from error


def load_legacy(path: str, device: Any) -> Any:
    """Returns the object in a file of torch.save before PyTorch 1.6. Errors: InvalidArgument."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        storages: dict[str, bytes] = {}
        objects = _Objects(storages.__getitem__, device)
        reader = Reader(data, objects.find, objects.find_stored)
        if reader.load() != _LEGACY_MAGIC:
            raise Fault("it is a pickle, which may contain code; PyTorch's own files begin with a magic number")
        version, system = reader.load(), reader.load()
        if version != 1001 or type(system) is not dict or system.get("little_endian") is not True:
            raise Fault(f"it has version {version!r} of the format, or big-endian numbers")
        # The elements follow the object, so the first reading only finds them.
        begin, widths = reader.at, {}

        def note(given: Any) -> None:
            storage = objects.find_stored(given)
            widths[storage.key] = storage.dtype.bits // 8 if storage.dtype is not None else 1

        skipping = Reader(data, lambda module, name: _skipped(objects.find(module, name)), note)
        skipping.at = begin
        skipping.load()
        reader.at = skipping.at
        keys, at = reader.load(), reader.at
        for key in keys:
            count = int.from_bytes(data[at:at + 8], "little")
            end = at + 8 + count * widths[key]
            if end > len(data):
                raise Fault(f"storage {key} is cut off")
            storages[key], at = data[at + 8:end], end
        reader.at = begin
        return reader.load()
    except (*FAULTS, struct.error) as error:
        raise _refused(path, error) from error


def _skipped(found: Any) -> Any:
    """Returns a Global like `found` that makes nothing when it is called."""
    return Global(found.name, lambda *_: None) if isinstance(found, Global) and found.make is not None else found
