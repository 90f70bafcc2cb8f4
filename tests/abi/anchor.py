"""The anchor library exports every type of a projection, because abidw and abidiff see only types that an exported symbol
uses. The list of anchors comes from the parsed header.
"""
import os
import re
import shutil
import subprocess
import tempfile

import header

TOOLS = ("abidw", "abidiff")
DUMP = ["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed"]


def why_not():
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    return f"{' and '.join(missing)} not installed (Debian: abigail-tools)" if missing else ""


def source(projection):
    lines = ['#include "ep_api/ep_api.h"']
    lines += [f"EP_EXPORT {name} anchor_{name};" for name in [*projection.structs, *projection.typedefs]]
    lines += [f"EP_EXPORT {name}* anchor_{name};" for name in projection.opaque]
    for name, text in projection.functions.items():
        returned, parameters = re.fullmatch(r"(.*?) \((.*)\)", text).groups()
        listed = ", ".join(f"{one} p{place}" for place, one in enumerate(parameters.split(", ")))
        used = " ".join(f"(void)p{place};" for place in range(parameters.count(", ") + 1))
        lines.append(f"EP_EXPORT {returned} {name}({listed}) {{ {used} return 0; }}")
    return "\n".join(lines) + "\n"


def build(projection, folder, compiler="cc", debug="-g"):
    """Compiles the anchor library; returns its path."""
    path = os.path.join(os.path.abspath(folder), "libanchor.so")
    command = [compiler, "-x", "c", "-std=c11", debug, "-O0", "-fPIC", "-shared", "-nostdlib", "-ffreestanding",
               f"-DEP_ABI_TARGET_MINOR={projection.minor}", "-I", ".", "-", "-o", path]
    header.checked(command, input=source(projection), cwd=projection.root)
    return path


def dump(library):
    return header.checked([*DUMP, library])


def unseen(projection, dumped):
    """One sentence for each type that the dump of an anchor library does not describe."""
    described = set(re.findall(r"<(?:class|union)-decl name='(\w+)'[^>]* size-in-bits=", dumped))
    missing = [name for name in projection.structs if name not in described]
    if len(missing) == len(projection.structs):
        return ["The anchor library has no debug information (DWARF): abidiff would compare names of symbols and nothing "
                "else. Compile it with -g."]
    return [f"The anchor library's debug information does not describe {name}." for name in missing]


def differences(frozen_dump, library):
    """Returns abidiff's report, without any suppression, about a frozen dump and an anchor library; empty if they
    agree."""
    with tempfile.NamedTemporaryFile("w", suffix=".abi") as file:
        file.write(frozen_dump)
        file.flush()
        result = subprocess.run(["abidiff", "--no-default-suppression", "--harmless", "--no-architecture", "--no-show-locs",
                                 file.name, library], capture_output=True, text=True)
    if result.returncode & 3:
        raise RuntimeError(f"abidiff failed with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout.splitlines() if result.returncode else []
