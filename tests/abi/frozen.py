"""Frozen minors: writes one, and compares one with today's header.

A minor's folder holds ep_api/ (the header and its tables), sample.c, layout.txt (the golden facts),
<machine>/libtenon_sample.so, and toolchain.txt (what built the sample). ep_api/abi has one folder per released minor;
tests write the folders of the trial minors (trial.py).
"""
import functools
import hashlib
import os
import platform
import re
import shutil
import tempfile

import anchor
import header
import layout

MANIFEST = "manifest.txt"
SIZES = "frozen_sizes.def"
SAMPLE_FLAGS = ["-std=c11", "-O2", "-fPIC", "-shared", "-s", "-fvisibility=hidden", "-Wl,--build-id=none", "-Wl,-z,defs",
                "-Wl,-z,noseparate-code", "-Wl,-z,max-page-size=4096"]


def folder_of(root, minor):
    return os.path.join(root, "ep_api", "abi", f"0.{minor}")


def folders(root):
    """{minor: folder} of the released minors, the oldest first."""
    entries = (re.fullmatch(r"0\.(\d+)", entry) for entry in os.listdir(os.path.join(root, "ep_api", "abi")))
    return {minor: folder_of(root, minor) for minor in sorted(int(entry.group(1)) for entry in entries if entry)}


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def golden(folder):
    return layout.from_text(read(os.path.join(folder, "layout.txt")))


@functools.cache
def types(folder, minor):
    """abidw's text about the types of a frozen header."""
    with tempfile.TemporaryDirectory() as work:
        return anchor.dump(anchor.build(header.Projection(folder, minor), work))


def reference_compiler():
    """gcc for this machine if it is installed, otherwise the first compiler that is."""
    compilers = [layout.Compiler("gcc", "C11", platform.machine()), *layout.all_compilers()]
    return next(one for one in compilers if not one.why_not)


def toolchain():
    versions = [header.checked([tool, "--version"]).splitlines()[0] for tool in ("gcc", "ld")]
    return "\n".join([platform.machine(), *versions]) + "\n"


def compile_sample(folder, minor, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    header.checked(["gcc", *SAMPLE_FLAGS, f"-DEP_ABI_TARGET_MINOR={minor}", "-I", ".", "sample.c",
                    "-Wl,--as-needed", "-lm", "-o", os.path.abspath(target)], cwd=folder)


def facts(sources, minor):
    return layout.facts(header.Projection(sources, minor), reference_compiler())


def write_minor(sources, minor, folder):
    """Freezes `minor` of the header and the sample in `sources` into `folder`, which is emptied first. The binary is
    missing (add_binary)."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "ep_api"))
    for name in header.FILES:
        shutil.copyfile(os.path.join(sources, "ep_api", name), os.path.join(folder, "ep_api", name))
    shutil.copyfile(os.path.join(sources, "sample.c"), os.path.join(folder, "sample.c"))
    write(os.path.join(folder, "layout.txt"), layout.to_text(facts(folder, minor), minor))


def add_binary(folder, minor):
    """Builds the sample of a folder that `write_minor` wrote."""
    compile_sample(folder, minor, os.path.join(folder, platform.machine(), "libtenon_sample.so"))
    write(os.path.join(folder, "toolchain.txt"), toolchain())


def sizes_text(root):
    """The rows of frozen_sizes.def: the size of each struct that may grow, at each frozen minor."""
    lines = ["// How large each struct that may grow was at each frozen minor. Written by ./dev freeze.",
             "// EP_FROZEN_SIZE(struct, minor, bytes)"]
    for minor, folder in folders(root).items():
        lines += size_rows(golden(folder), minor)
    return "\n".join(lines) + "\n"


def size_rows(found, minor):
    return [f"EP_FROZEN_SIZE({name}, {minor:#x}, {layout.size_of(value)})" for name, value in found.items()
            if value.startswith("growing struct")]


def manifest_text(root):
    """One line per frozen file: its SHA-256 and its path."""
    base, lines = os.path.join(root, "ep_api"), []
    files = [SIZES]
    for folder in folders(root).values():
        for parent, _, names in os.walk(folder):
            files += [os.path.relpath(os.path.join(parent, name), base) for name in names]
    for path in sorted(files):
        with open(os.path.join(base, path), "rb") as file:
            lines.append(f"{hashlib.sha256(file.read()).hexdigest()}  {path}")
    return "\n".join(lines) + "\n"


def problems_of(root_of_header, minor, folder, compilers, debug="-g", abidiff=True):
    """One sentence for each difference between `minor`, frozen in `folder`, and the header in `root_of_header`, projected
    to it."""
    projection, sentences = header.Projection(root_of_header, minor), []
    for compiler in compilers:
        found = layout.facts(projection, compiler)
        sentences += [f"{compiler.name}: {one}" for one in layout.differences(golden(folder), found, minor)]
    if abidiff:
        sentences += abidiff_problems(projection, types(folder, minor), debug)
    return sentences


def abidiff_problems(projection, frozen_dump, debug="-g"):
    with tempfile.TemporaryDirectory() as work:
        library = anchor.build(projection, work, debug=debug)
        blind = anchor.unseen(projection, anchor.dump(library))
        return blind or [f"abidiff: {line}" for line in anchor.differences(frozen_dump, library)]
