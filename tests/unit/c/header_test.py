"""tenon_c.h compiles alone in C11 and C++, and the library exports exactly its functions.

Usage: header_test.py HEADER LIBRARY
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FUNCTION = re.compile(r"TENON_C_API[^;]*?\b(tenon_\w+)\(", re.DOTALL)


def compiles(header, folder):
    """The failures of the compilers that this machine has, one text each."""
    failures = []
    for suffix, language, compilers in [("c", "-std=c11", ["gcc", "clang"]), ("cpp", "-std=c++17", ["g++", "clang++"])]:
        source = folder / f"alone.{suffix}"
        source.write_text(f'#include "{header}"\nint main(void) {{\n'
                          "  tenon_model_options options = TENON_INIT(tenon_model_options);\n"
                          "  return options.size != sizeof options || options.eager;\n}\n")
        for compiler in filter(shutil.which, compilers):
            done = subprocess.run([compiler, language, "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-pedantic",
                                   "-Werror", "-fsyntax-only", str(source)], capture_output=True, text=True)
            print(f"{compiler} {language}: {'ok' if done.returncode == 0 else 'failed'}")
            if done.returncode:
                failures.append(done.stderr)
    return failures


def main():
    header, library = map(pathlib.Path, sys.argv[1:])
    declared = set(FUNCTION.findall(header.read_text()))
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in listed.splitlines() if line.split()[-2] != "A"}
    failures = [f"{name} is declared, but the library does not export it" for name in sorted(declared - exported)]
    failures += [f"{name} is exported, but the header does not declare it" for name in sorted(exported - declared)]
    with tempfile.TemporaryDirectory() as folder:
        failures += compiles(header, pathlib.Path(folder))
    for failure in failures:
        print(failure)
    print(f"{len(declared)} functions, {len(failures)} things wrong")
    return 1 if failures or len(declared) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
