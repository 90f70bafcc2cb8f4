"""The frozen minors in ep_api/abi: writes one, and compares one with today's header.

A minor's folder holds ep_api/ (the header and its tables), sample.c, layout.txt (the golden facts), types.abi (abidw of
the anchor library), <machine>/libtenon_sample.so, and toolchain.txt (what built the last two).
"""
import hashlib
import os
import platform
import re
import shutil
import tempfile

import anchor
import header
import layout
import trial

MANIFEST = "manifest.txt"
SIZES = "frozen_sizes.def"
SAMPLE_FLAGS = ["-std=c11", "-O2", "-fPIC", "-shared", "-s", "-fvisibility=hidden", "-Wl,--build-id=none", "-Wl,-z,defs",
                "-Wl,-z,noseparate-code", "-Wl,-z,max-page-size=4096"]


def name_of(minor):
    return f"trial-{minor - trial.FIRST + 1}" if minor >= trial.FIRST else f"0.{minor}"


def folder_of(root, minor):
    return os.path.join(root, "ep_api", "abi", name_of(minor))


def minors(root):
    """The frozen minors, released ones first."""
    found = []
    for entry in os.listdir(os.path.join(root, "ep_api", "abi")):
        match = re.fullmatch(r"(trial-|0\.)(\d+)", entry)
        if match:
            found.append(int(match.group(2)) + (trial.FIRST - 1 if match.group(1) == "trial-" else 0))
    return sorted(found)


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def golden(root, minor):
    return layout.from_text(read(os.path.join(folder_of(root, minor), "layout.txt")))


def reference_compiler():
    return layout.Compiler("gcc", "C11", platform.machine())


def toolchain():
    versions = [header.checked([tool, "--version"]).splitlines()[0] for tool in ("gcc", "abidw", "ld")]
    return "\n".join([platform.machine(), *versions]) + "\n"


def compile_sample(folder, minor, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    header.checked(["gcc", *SAMPLE_FLAGS, f"-DEP_ABI_TARGET_MINOR={minor}", "-I", ".", "sample.c",
                    "-Wl,--as-needed", "-lm", "-o", os.path.abspath(target)], cwd=folder)


def write_minor(sources, minor, folder):
    """Freezes `minor` of the header and the sample in `sources` into `folder`, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "ep_api"))
    for name in header.FILES:
        shutil.copyfile(os.path.join(sources, "ep_api", name), os.path.join(folder, "ep_api", name))
    shutil.copyfile(os.path.join(sources, "sample.c"), os.path.join(folder, "sample.c"))
    write_derived(folder, minor, folder)


def write_derived(sources, minor, folder):
    """Makes the golden facts, the dump and the sample binary from the frozen sources."""
    projection = header.Projection(sources, minor, "gcc")
    write(os.path.join(folder, "layout.txt"), layout.to_text(layout.facts(projection, reference_compiler()), minor))
    with tempfile.TemporaryDirectory() as work:
        dumped = anchor.dump(anchor.build(projection, work, "gcc"))
    problems = anchor.unseen(projection, dumped)
    if problems:
        raise RuntimeError("\n".join(problems))
    write(os.path.join(folder, "types.abi"), dumped)
    compile_sample(sources, minor, os.path.join(folder, platform.machine(), "libtenon_sample.so"))
    write(os.path.join(folder, "toolchain.txt"), toolchain())


def sizes_text(root):
    """The rows of frozen_sizes.def: the size of each struct that may grow, at each frozen minor."""
    lines = ["// How large each struct that may grow was at each frozen minor. Written by ./dev freeze.",
             "// EP_FROZEN_SIZE(struct, minor, bytes)"]
    for minor in minors(root):
        for name, value in golden(root, minor).items():
            if value.startswith("growing struct"):
                lines.append(f"EP_FROZEN_SIZE({name}, {minor:#x}, {layout.size_of(value)})")
    return "\n".join(lines) + "\n"


def manifest_text(root):
    """One line per frozen file: its SHA-256 and its path."""
    base, lines = os.path.join(root, "ep_api"), []
    files = [SIZES]
    for minor in minors(root):
        for folder, _, names in os.walk(os.path.join(base, "abi", name_of(minor))):
            files += [os.path.relpath(os.path.join(folder, name), base) for name in names]
    for path in sorted(files):
        with open(os.path.join(base, path), "rb") as file:
            lines.append(f"{hashlib.sha256(file.read()).hexdigest()}  {path}")
    return "\n".join(lines) + "\n"


def problems_of(root_of_header, minor, root, compilers, debug="-g", abidiff=True):
    """One sentence for each difference between the frozen `minor` and the header in `root_of_header`, projected to it."""
    projection, sentences = header.Projection(root_of_header, minor), []
    for compiler in compilers:
        found = layout.facts(projection, compiler)
        sentences += [f"{compiler.name}: {one}" for one in layout.differences(golden(root, minor), found, minor)]
    if abidiff:
        sentences += abidiff_problems(projection, os.path.join(folder_of(root, minor), "types.abi"), debug)
    return sentences


def abidiff_problems(projection, frozen_dump, debug="-g"):
    with tempfile.TemporaryDirectory() as work:
        library = anchor.build(projection, work, debug=debug)
        blind = anchor.unseen(projection, anchor.dump(library))
        return blind or [f"abidiff: {line}" for line in anchor.differences(frozen_dump, library)]
