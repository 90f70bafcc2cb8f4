"""tenon.save and tenon.load: training states, and tensors as .npy, .npz and safetensors files. None can contain code."""

import contextlib
import errno
import os

from tenon import _tenon
from tenon._tenon import Tensor

_SEPARATOR = "."
_STATE = "a state"


def _flat(value, name, tensors):
    """Adds the tensors of nested dicts to `tensors`, by path."""
    if isinstance(value, Tensor):
        tensors[name] = value.detach()
    elif isinstance(value, dict):
        for key, each in value.items():
            _flat(each, f"{name}{_SEPARATOR}{key}" if name else str(key), tensors)
    else:
        raise TypeError(f"save(): {repr(name) if name else 'the object'} is a {type(value).__name__}; only Tensors and dicts of Tensors by name are saved in this "
                        "format. A file with another ending, such as .pt, takes whole states.")


def _named(object):
    tensors = {}
    _flat(object, "", tensors)
    if not all(tensors):
        raise TypeError("save(): a single Tensor goes into a .npy or .pt file; this format holds Tensors by name.")
    return tensors


def _kind(path):
    kind = os.path.splitext(path)[1].lower()
    return kind if kind in (".npy", ".npz", ".safetensors", ".onnx") else _STATE


def _kind_of_content(path):
    """Returns the kind of a file whose name does not say it."""
    with open(path, "rb") as file:
        head = file.read(16)
    if head.startswith(b"\x93NUMPY"):
        return ".npy"
    if head.startswith(b"PK\3\4"):
        from tenon import _torch_files
        return ".pt" if _torch_files.is_archive(path) else ".npz"
    if head[8:9] == b"{":
        return _STATE
    if head.startswith(b"\x80"):
        return "legacy .pt"
    raise _tenon.InvalidArgument(f"load(): the file {path} is neither a state of tenon.save, nor a .npy, .npz, .safetensors or PyTorch file.")


def save(obj, f, *, metadata=None):
    """Writes a training state into a file, which replaces an older one when it is complete.

    The ending of the name chooses the format:

    - .npy: one Tensor.
    - .npz, .safetensors: a dict of Tensors by name, such as a state_dict. Names of nested dicts are joined with a point.
    - any other, such as .pt: a state. It is a Tensor, None, a bool, number, string, dtype, Device, Generator, NumPy
      array, bytes, or a dict, list, tuple or set of these, nested as you like. Tensors that have the same elements are
      stored once and share them when they are loaded. A state is a safetensors file whose text "tenon.state" holds
      the nesting as JSON.

    Args:
        obj: the object. For modules, optimisers and schedules, pass their state_dict().
        f: a path, or a binary file, which receives a state.
        metadata: a dict of texts by name, for .safetensors files only.

    Errors: TypeError for an object that the format does not hold; InvalidArgument if the file cannot be written.

        tenon.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, "last.pt")
        state = tenon.load("last.pt")
    """
    if hasattr(f, "write"):
        _save_into(obj, f)
        return
    path = os.fspath(f)
    kind = _kind(path)
    if kind == ".onnx":
        raise ValueError(f"save(): '{path}' names an ONNX model; use tenon.onnx.export(module, path).")
    if metadata and kind != ".safetensors":
        raise ValueError(f"save(): only .safetensors files have metadata, not '{path}'.")
    if kind == ".npy":
        if not isinstance(obj, Tensor):
            raise TypeError(f"save(): a .npy file holds one Tensor, not {type(obj).__name__}.")
        _tenon._save_npy(path, obj.detach())
    elif kind == ".safetensors":
        _tenon._save_safetensors(path, _named(obj), dict(metadata or {}))
    elif kind == ".npz":
        _save_npz(path, _named(obj))
    else:
        from tenon import _states
        _save(path, *_states.encoded(obj))


def _save(path, tensors, texts):
    try:
        _tenon._save_safetensors(path, tensors, texts)
    except _tenon.NotFound as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error


def _save_into(obj, file):
    import shutil
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state")
        save(obj, path)
        with open(path, "rb") as written:
            shutil.copyfileobj(written, file)


def _save_npz(path, tensors):
    import zipfile
    with _whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, tensor in tensors.items():
            archive.writestr(name + ".npy", _tenon._npy_to_bytes(tensor))


@contextlib.contextmanager
def _whole_file(path):
    """Opens a binary file that replaces `path` only if the block succeeds."""
    try:
        writer = _tenon._FileWriter(path)
    except _tenon.NotFound as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
    try:
        with open(writer.fileno(), "wb", closefd=False) as file:
            yield file
        writer.finish()
    except OSError as error:
        raise _tenon.InvalidArgument(f"The file {path} cannot be written: {error.strerror}.") from error
    finally:
        del writer  # deletes an unfinished file


def load(f, map_location=None, *, weights_only=True, mmap=None, device=None, metadata=False):
    """Reads a file that save wrote, or a .pt or .pth file of PyTorch. Returns the Tensor (.npy), the dict of Tensors by
    name (.npz, .safetensors), or the state. Loading never runs code from the file.

    A PyTorch file may hold tensors, parameters, numbers, strings, None, bytes, dtypes, devices, sizes, and dicts, lists,
    tuples and sets of these. Files with other classes, such as whole modules, are refused.

    Args:
        f: a path, or a binary file.
        map_location, device: where the tensors are created; None takes the default device. It also replaces devices
            that the file contains.
        weights_only, mmap: accepted as in PyTorch; they do not change the result.
        metadata: True returns a pair: the tensors, and a dict of the texts of a .safetensors file.

    Errors: FileNotFoundError; InvalidArgument, a ValueError and RuntimeError, for a damaged file or another format.
    """
    device = _one_device(map_location, device)
    if hasattr(f, "read"):
        made, texts = _load_from(f, device)
    else:
        path = os.fspath(f)
        kind = _kind(path)
        made, texts = _loaded(path, _kind_of_content(path) if kind == _STATE else kind, device)
    return (made, texts) if metadata else made


def _one_device(map_location, device):
    if map_location is None:
        return device
    if device is not None:
        raise TypeError("load(): map_location and device mean the same; give one of them.")
    if callable(map_location) or isinstance(map_location, dict):
        raise TypeError(f"load(): map_location must be a device such as 'cpu', not a {type(map_location).__name__}.")
    return str(map_location)


def _loaded(path, kind, device):
    """Returns the content of a file, and its texts."""
    if kind == ".onnx":
        raise ValueError(f"load(): '{path}' is an ONNX model; use tenon.onnx.load(path).")
    if kind.endswith(".pt"):
        from tenon import _torch_files
        return (_torch_files.load if kind == ".pt" else _torch_files.load_legacy)(path, device), {}
    with _naming(path):
        if kind == ".npy":
            return _tenon._load_npy(path, device), {}
        if kind == ".npz":
            return _load_npz(path, device), {}
        tensors, texts = _tenon._load_safetensors(path, device)
    if kind == ".safetensors":
        return tensors, texts
    from tenon import _states
    return _states.decoded(path, tensors, texts, device), {}


@contextlib.contextmanager
def _naming(path):
    """Adds the path to the errors of a damaged file."""
    try:
        yield
    except _tenon.InvalidArgument as error:
        raise _tenon.InvalidArgument(f"load(): the file {path} cannot be read. {error}") from error


def _load_from(file, device):
    import shutil
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state")
        with open(path, "wb") as copy:
            shutil.copyfileobj(file, copy)
        return _loaded(path, _kind_of_content(path), device)


def _load_npz(path, device):
    import zipfile
    tensors = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith(".npy"):
                    tensors[entry.filename[:-len(".npy")]] = _tenon._npy_from_bytes(archive.read(entry), device)
    except zipfile.BadZipFile as error:
        raise _tenon.InvalidArgument(str(error)) from error
    return tensors
