"""The ABI header, and the one with its names, compile alone, as C11 and as C++20, with every compiler here, all warnings on and none given.

Usage: header_test.py SOURCE_ROOT
"""
import itertools
import os
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wundef", "-Wcast-qual",
            "-Werror"]
USES = {"ep_api.h": """#include "ep_api/ep_api.h"
EP_PLUGIN_NOTE("alone", "1.0", 0)
int use(void);
int use(void) { return EP_DTYPE_f32 + EP_PRIMITIVE_unary + EP_UNARY_relu; }
""", "ep_names.h": """#include "ep_api/ep_names.h"
int use(void);
int use(void) { return ep_primitive_name(EP_PRIMITIVE_matmul)[0] + ep_dtype_name(EP_DTYPE_f32)[0] + ep_unary_name(1)[0]; }
"""}


def dialects():
    for compiler, name in (("gcc", "c"), ("clang", "c"), ("g++", "c++"), ("clang++", "c++")):
        if shutil.which(compiler) is None:
            print(f"SKIP {compiler} is not installed")
            continue
        standards = ["c11", "c17"] if name == "c" else ["c++20", "c++17"]
        for standard in standards:
            yield compiler, name, standard, ["-Wstrict-prototypes", "-Wmissing-prototypes"] if name == "c" else []


def main():
    root = sys.argv[1]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for (compiler, language, standard, extra), (header, use) in itertools.product(dialects(), USES.items()):
            source = os.path.join(folder, "alone.c" if language == "c" else "alone.cpp")
            with open(source, "w") as file:
                file.write(use)
            command = [compiler, "-x", language, "-std=" + standard, "-I", root, *WARNINGS, *extra, "-c", source,
                       "-o", source + ".o"]
            result = subprocess.run(command, capture_output=True, text=True)
            print(("ok  " if result.returncode == 0 else "FAIL"), compiler, standard, header)
            if result.returncode != 0:
                failures += 1
                print(result.stderr)
    includes = [line.split()[1] for line in open(os.path.join(root, "ep_api/ep_api.h")) if line.startswith("#include")]
    allowed = {"<stddef.h>", "<stdint.h>", '"dtypes.def"', '"primitives.def"', '"scalar_ops.def"'}
    for include in includes:
        if include not in allowed:
            failures += 1
            print("FAIL ep_api.h includes", include)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
