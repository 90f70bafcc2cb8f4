"""The golden facts of a projection: sizes, offsets, alignments and constants as a compiler sees them, and signatures.

A golden is a text of one fact per line, `name = value`, equal for each language, compiler and machine we build for.
"""
import os
import platform
import shutil
import struct
import subprocess
import tempfile

import header

LANGUAGES = {"C11": ("c", "-std=c11"), "C++20": ("c++", "-std=c++20")}
MACHINES = ("x86_64", "aarch64")
SECTION = ".tenon_abi"


class Compiler:
    """One compiler for one language and machine. `why_not` is the reason why it cannot be used here, if there is
    one."""

    def __init__(self, kind, language, machine):
        self.kind, self.language, self.machine = kind, language, machine
        here = platform.machine() == machine
        program = {"C11": kind, "C++20": {"gcc": "g++", "clang": "clang++"}[kind]}[language]
        if kind == "gcc" and not here:
            program = f"{machine}-linux-gnu-{program}"
        word, standard = LANGUAGES[language]
        self.command = [program, "-x", word, standard, "-ffreestanding"]
        if kind == "clang" and not here:
            self.command += ["--target=" + machine + "-linux-gnu"]
        self.name = f"{kind} {language} {machine}"
        self.why_not = "" if shutil.which(program) else f"{program} is not installed"


def all_compilers():
    return [Compiler(kind, language, machine) for machine in MACHINES for kind in ("gcc", "clang") for language in LANGUAGES]


def expressions(projection):
    """The questions to the compiler: [(fact, key, expression)]."""
    asked = []
    for one in projection.structs.values():
        asked.append((one.name, "size", f"sizeof({one.name})"))
        asked.append((one.name, "align", f"TENON_ALIGN({one.name})"))
        for member in one.members:
            name = f"{one.name}.{member.path}"
            asked.append((name, "offset", f"offsetof({one.name}, {member.path})"))
            asked.append((name, "size", f"sizeof((({one.name}*)0)->{member.path})"))
    for name in projection.typedefs:
        asked.append((name, "size", f"sizeof({name})"))
    for name in projection.constants:
        asked.append((name, "", f"(unsigned long long)({name})"))
    return asked


def measure(projection, compiler):
    """The values of `expressions`, read from the object file. Nothing runs, so a cross compiler is enough."""
    asked = expressions(projection)
    source = '#include "ep_api/ep_api.h"\n'
    source += "#ifdef __cplusplus\n#define TENON_ALIGN alignof\n#else\n#define TENON_ALIGN _Alignof\n#endif\n"
    source += f'__attribute__((section("{SECTION}"), used)) static const unsigned long long values[] = {{\n'
    source += "".join(f"  {expression},\n" for _, _, expression in asked) + "};\n"
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "values.o")
        command = [*compiler.command, f"-DEP_ABI_TARGET_MINOR={projection.minor}", "-I", ".", "-c", "-", "-o", target]
        result = subprocess.run(command, input=source, capture_output=True, text=True, cwd=projection.root)
        if result.returncode != 0:
            raise RuntimeError(f"{compiler.name} cannot compile the header at minor {projection.minor}:\n{result.stderr}")
        content = read_section(target, SECTION)
    values = struct.unpack(f"<{len(content) // 8}Q", content)
    return {(name, key): value for (name, key, _), value in zip(asked, values, strict=True)}


def read_section(path, name):
    with open(path, "rb") as file:
        data = file.read()
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", data, table + index * size) for index in range(count)]
    for section in sections:
        at = sections[names][4] + section[0]
        if data[at : data.index(b"\0", at)].decode() == name:
            return data[section[4] : section[4] + section[5]]
    raise RuntimeError(f"{path} has no section {name}")


def facts(projection, compiler):
    """{fact: value} in the order of the header."""
    seen = measure(projection, compiler)
    found = {}
    for one in projection.structs.values():
        word = f"{'growing ' if one.growable else ''}{one.word}"
        found[one.name] = f"{word}, size {seen[one.name, 'size']}, align {seen[one.name, 'align']}"
        for member in one.members:
            name = f"{one.name}.{member.path}"
            found[name] = f"offset {seen[name, 'offset']}, size {seen[name, 'size']}, {member.type}"
    for name in projection.opaque:
        found[name] = "opaque struct"
    for name, text in projection.typedefs.items():
        found[name] = f"size {seen[name, 'size']}, {text}"
    found.update(projection.functions)
    for name in projection.constants:
        value = seen[name, ""]
        found[name] = str(value - (1 << 64) if value >> 63 else value)
    found.update(projection.texts)
    for name, parameters in projection.macros.items():
        found[name] = f"macro{parameters}"
    for name, text in projection.rows.items():
        found[name] = text
    return found


def to_text(found, minor):
    first = f"# What a program sees of ep_api at minor {minor}. Written by ./dev freeze.\n"
    return first + "".join(f"{name} = {value}\n" for name, value in found.items())


def from_text(text):
    return dict(line.split(" = ", 1) for line in text.splitlines() if not line.startswith("#"))


def differences(frozen, found, minor):
    """One sentence per fact of `minor` that differs from the frozen one."""
    sentences = []
    for name, value in frozen.items():
        if name not in found:
            sentences.append(f"{name} is gone; it was frozen as: {value}.")
        elif found[name] != value:
            sentences.append(f"{name} is now: {found[name]}; it was frozen as: {value}.")
    for name, value in found.items():
        if name not in frozen:
            sentences.append(f"{name} ({value}) is not in the frozen minor {minor}; what a later minor adds stands inside "
                             f"#if EP_ABI_TARGET_MINOR >= N.")
    return sentences


def breaks(older, newer):
    """One sentence per fact in which the golden `newer` changes `older` instead of only appending to it."""
    sentences = []
    own = {"EP_ABI_TARGET_MINOR", "EP_ABI_MINOR"}
    for name, value in older.items():
        if name not in newer:
            sentences.append(f"{name} is gone from the later minor.")
        elif newer[name] != value and name not in own and not grew(value, newer[name]):
            sentences.append(f"{name} was: {value}; in the later minor it is: {newer[name]}.")
    for name in newer:
        owner = name.partition(".")[0]
        if name in older or owner not in older or "." not in name or older[owner].startswith("union"):
            continue
        if offset_of(newer[name]) < size_of(older[owner]):
            sentences.append(f"{name} was added inside {owner}, before its former end at {size_of(older[owner])}.")
    return sentences


def grew(old, new):
    kinds = old.split(", ")[0], new.split(", ")[0]
    same_align = old.rpartition(", ")[2] == new.rpartition(", ")[2]
    return kinds == ("growing struct",) * 2 and same_align and size_of(new) > size_of(old)


def size_of(value):
    return int(value.split("size ")[1].split(",")[0])


def offset_of(value):
    return int(value.split("offset ")[1].split(",")[0])
