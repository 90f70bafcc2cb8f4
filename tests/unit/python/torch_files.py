"""Writes files as torch.save does, without PyTorch: pickles that name its functions, and the containers around them."""

import struct
import zipfile

MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001


class Named:
    """A class or function by its name."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Called:
    """A call of a function, which the reader makes."""

    def __init__(self, module, name, *arguments):
        self.function, self.arguments = Named(module, name), arguments


class Stored:
    """A storage of the pickle's container."""

    def __init__(self, kind, key, size):
        self.id = ("storage", Named("torch", kind), key, "cpu", size)


def tensor(kind, key, size, stride, offset=0, count=None, requires_grad=False):
    """A tensor in storage `key`, which has `count` elements."""
    extent = 1 + sum((n - 1) * step for n, step in zip(size, stride))
    return Called("torch._utils", "_rebuild_tensor_v2", Stored(kind, key, extent + offset if count is None else count), offset, tuple(size), tuple(stride),
                  requires_grad, Called("collections", "OrderedDict"))


def pickled(value):
    """A pickle of protocol 2."""
    return b"\x80\x02" + _code(value) + b"."


def _code(value):
    if value is None or isinstance(value, bool):
        return {None: b"N", True: b"\x88", False: b"\x89"}[value]
    if isinstance(value, int):
        size = value.bit_length() // 8 + 1
        return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
    if isinstance(value, (list, tuple)):
        return (b"](" if isinstance(value, list) else b"(") + b"".join(map(_code, value)) + (b"e" if isinstance(value, list) else b"t")
    if isinstance(value, dict):
        return b"}(" + b"".join(_code(key) + _code(each) for key, each in value.items()) + b"u"
    if isinstance(value, Named):
        return f"c{value.module}\n{value.name}\n".encode()
    if isinstance(value, Called):
        return _code(value.function) + _code(tuple(value.arguments)) + b"R"
    return _code(value.id) + b"Q"


def archive(path, pickle, storages, compression=zipfile.ZIP_STORED, **records):
    """Writes the format of PyTorch 1.6 and newer. storages: bytes by key."""
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in {"data.pkl": pickle, "byteorder": b"little", "version": b"3\n", **records}.items():
            file.writestr(f"archive/{name}", data)
        for key, data in storages.items():
            file.writestr(f"archive/data/{key}", data)


def legacy(path, pickle, storages, widths):
    """Writes the format before PyTorch 1.6. widths: the bytes of an element by key."""
    system = {"protocol_version": VERSION, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    parts = [pickled(MAGIC), pickled(VERSION), pickled(system), pickle, pickled(list(storages))]
    parts += [struct.pack("<q", len(data) // widths[key]) + data for key, data in storages.items()]
    path.write_bytes(b"".join(parts))
