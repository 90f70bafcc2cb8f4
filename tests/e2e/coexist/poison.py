"""Writes a C source with a weak definition of every weak oneDNN symbol that a shared library exports. Functions trap, data
is 0x5a.

Usage: poison.py LIBRARY OUTPUT.c
"""
import subprocess
import sys

def main():
    library, output = sys.argv[1:3]
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.splitlines()
    names = {name: kind for _, kind, name in (line.split() for line in lines) if "dnnl" in name and kind in "WVu"}
    if not any(kind == "W" for kind in names.values()):
        sys.exit(f"{library} exports no weak function of oneDNN's")
    with open(output, "w") as file:
        file.write("__attribute__((visibility(\"default\"))) int coexist_run(void) { return 0; }\n")
        for name, kind in sorted(names.items()):
            head = '__attribute__((weak, visibility("default")))'
            if kind == "W":
                file.write(f"{head} void {name}(void) {{ __builtin_trap(); }}\n")
            else:
                file.write(f"{head} char {name}[4096] = {{[0 ... 4095] = 0x5a}};\n")
    print(f"{len(names)} weak symbols of {library}")


if __name__ == "__main__":
    main()
