"""tenon.save and tenon.load: tensors as .npy, .npz and safetensors files. None of these can contain code."""

import contextlib
import errno
import os

from tenon import _tenon
from tenon._tenon import Tensor

_SEPARATOR = "."


def _flat(value, name, tensors):
    """Adds the tensors of nested dicts to `tensors`, by path."""
    if isinstance(value, Tensor):
        tensors[name] = value.detach()
    elif isinstance(value, dict):
        for key, each in value.items():
            _flat(each, f"{name}{_SEPARATOR}{key}" if name else str(key), tensors)
    else:
        raise TypeError(f"save(): '{name or 'the object'}' is a {type(value).__name__}; only Tensors and dicts of Tensors by name are saved.")


def _named(object):
    tensors = {}
    _flat(object, "", tensors)
    if not all(tensors):
        raise TypeError("save(): a single Tensor goes into a .npy file; other files hold Tensors by name.")
    return tensors


def _kind(path):
    kind = os.path.splitext(path)[1].lower()
    if kind not in (".npy", ".npz", ".safetensors"):
        raise ValueError(f"'{path}' must end in .npy, .npz or .safetensors, which selects the format.")
    return kind


def save(object, path, *, metadata=None):
    """Writes a Tensor (.npy), or a dict of Tensors by name such as a state_dict (.npz, .safetensors).

    Args:
        object: the Tensor or the dict. The names of nested dicts are joined with a point.
        path: its ending chooses the format.
        metadata: a dict of texts by name, for safetensors files only.

    Errors: ValueError for another ending; TypeError for other objects.
    """
    path = os.fspath(path)
    kind = _kind(path)
    if metadata and kind != ".safetensors":
        raise ValueError(f"save(): a {kind} file has no metadata.")
    if kind == ".npy":
        if not isinstance(object, Tensor):
            raise TypeError(f"save(): a .npy file holds one Tensor, not {type(object).__name__}.")
        _tenon._save_npy(path, object.detach())
    elif kind == ".safetensors":
        _tenon._save_safetensors(path, _named(object), dict(metadata or {}))
    else:
        _save_npz(path, _named(object))


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


def load(path, *, device=None, metadata=False):
    """Reads a file that save wrote. Returns a Tensor (.npy) or a dict of Tensors by name.

    Args:
        device: where the tensors are created; None takes the default device.
        metadata: True returns a pair: the tensors, and a dict of the file's texts.
    """
    path = os.fspath(path)
    kind = _kind(path)
    if kind == ".npy":
        made = _tenon._load_npy(path, device)
        return (made, {}) if metadata else made
    if kind == ".safetensors":
        tensors, texts = _tenon._load_safetensors(path, device)
        return (tensors, texts) if metadata else tensors
    import zipfile
    tensors = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.filename.endswith(".npy"):
                tensors[entry.filename[:-len(".npy")]] = _tenon._npy_from_bytes(archive.read(entry), device)
    return (tensors, {}) if metadata else tensors
