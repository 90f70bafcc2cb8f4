"""Writes seeds at the stated limits of the readers. A reader must refuse an input one step beyond.

usage: limit_seeds.py note SOUND_PROVIDER FOLDER
       limit_seeds.py onnx FOLDER
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from protobuf_wire import field

MIB = 1 << 20
PT_LOAD, PT_DYNAMIC, PT_NOTE = 1, 2, 4
HEADER = struct.calcsize("<16sHHIQQQIHHHHHH")
SEGMENT = struct.calcsize("<IIQQQQQQ")
VERSION = 12 + 8 + 48  # offset: the note's header, its owner's name, and the position in ep_plugin_note


def program_headers(file):
    offset, count = struct.unpack_from("<Q", file, 32)[0], struct.unpack_from("<H", file, 56)[0]
    for index in range(count):
        kind, _, place, _, _, size = struct.unpack_from("<IIQQQQ", file, offset + index * SEGMENT)
        yield kind, place, size


def own_note(file):
    """The bytes of a provider's note in its file, without other notes."""
    for kind, place, size in program_headers(file):
        end = place + size
        while kind == PT_NOTE and place + 12 <= end:
            names, descs, _ = struct.unpack_from("<III", file, place)
            length = 12 + (names + 3) // 4 * 4 + (descs + 3) // 4 * 4
            if file[place + 12:place + 16] != b"GNU\0":
                return file[place:place + length]
            place += length
    sys.exit("the provider holds no note of its own")


def elf(file, segments, bodies, spare=0):
    """An ELF file with the identity of `file`, program headers (kind, position in the bodies, size) and the bodies."""
    start = HEADER + len(segments) * SEGMENT + spare
    start += -start % 16
    header = bytearray(file[:HEADER])
    struct.pack_into("<Q", header, 32, HEADER)
    struct.pack_into("<H", header, 56, len(segments))
    table = bytearray()
    for kind, place, size in segments:
        whole = kind == PT_LOAD
        at = 0 if whole else start + place
        size = start + len(bodies) if whole else size
        table += struct.pack("<IIQQQQQQ", kind, 0, at, at, at, size, size, 4)
    return bytes(header + table).ljust(start, b"\0") + bodies


def note_seeds(provider):
    with open(provider, "rb") as opened:
        file = opened.read()
    note = own_note(file)
    foreign = struct.pack("<III", 4, 65536 - 16, 1) + b"GNU\0"
    longest = bytearray(note)
    longest[VERSION:VERSION + 31] = b"1" * 31
    return {
        # The most program headers. After the table there is room for one more.
        "headers": elf(file, [(PT_LOAD, 0, 0), (PT_NOTE, 0, len(note))] + [(0, 0, 0)] * 1022, note,
                       spare=2 * SEGMENT),
        # The version has its greatest length.
        "version": elf(file, [(PT_LOAD, 0, 0), (PT_NOTE, 0, len(note))], bytes(longest)),
        # Sixteen times the same 64 KiB of a foreign note: the largest number of bytes of notes.
        "notes": elf(file, [(PT_LOAD, 0, 0)] + [(PT_NOTE, 0, 65536)] * 16, foreign.ljust(65536 + 64, b"\0")),
        # Like the seed above; the bytes of the notes are also a dynamic section.
        "shared": elf(file, [(PT_LOAD, 0, 0)] + [(PT_NOTE, 0, 65536)] * 16 + [(PT_DYNAMIC, 0, 65536)],
                      foreign.ljust(65536 + 64, b"\0")),
        # The largest dynamic section, whose end mark is at its beginning.
        "dynamic": elf(file, [(PT_LOAD, 0, 0), (PT_NOTE, MIB + 64, len(note)), (PT_DYNAMIC, 0, MIB)],
                       bytes(MIB + 64) + note),
    }


def value_info(number, name, type_proto):
    return field(number, field(1, name) + field(2, type_proto))


def onnx_model(graph):
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def onnx_seeds():
    flat = field(1, field(1, 1) + field(2, field(1, field(1, 1))))
    identity = field(1, field(1, "x") + field(2, "y") + field(4, "Identity"))
    deep = b""
    for _ in range(30):  # two messages each: a sequence and the type of its elements
        deep = field(4, field(1, deep))
    return {
        "depth": onnx_model(identity + field(2, "g") + value_info(11, "x", deep) + value_info(12, "y", flat)),
        # Attributes of two bytes in the file and some hundred in memory, just below the limit for a file of this size. A
        # list that grows doubles its memory, so lists of a power of two come nearest to the limit.
        "memory": onnx_model(field(1, field(4, "Identity") + field(5, b"") * 1024) * 128),
    }


def main():
    kind, *rest = sys.argv[1:]
    folder = rest[-1]
    os.makedirs(folder, exist_ok=True)
    for name, data in (note_seeds(rest[0]) if kind == "note" else onnx_seeds()).items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
