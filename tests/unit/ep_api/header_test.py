"""The ABI header compiles alone, as C11 and as C++20, with every compiler here, all warnings on and none given.

Usage: header_test.py SOURCE_ROOT
"""
import os
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wundef", "-Wcast-qual",
            "-Werror"]
USE = """#include "ep_api/ep_api.h"
EP_PLUGIN_NOTE("alone", "1.0", 0)
int use(void);
int use(void) { return EP_DTYPE_f32 + EP_PRIMITIVE_unary + EP_UNARY_relu; }
"""


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
        for compiler, language, standard, extra in dialects():
            source = os.path.join(folder, "alone.c" if language == "c" else "alone.cpp")
            with open(source, "w") as file:
                file.write(USE)
            command = [compiler, "-x", language, "-std=" + standard, "-I", root, *WARNINGS, *extra, "-c", source,
                       "-o", source + ".o"]
            result = subprocess.run(command, capture_output=True, text=True)
            print(("ok  " if result.returncode == 0 else "FAIL"), compiler, standard)
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
