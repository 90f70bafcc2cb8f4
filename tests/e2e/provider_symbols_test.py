"""Every provider exports ep_plugin_query_v0 alone, needs no library of the host, and carries the note.

Usage: provider_symbols_test.py FOLDER_OF_PLUGINS_OR_PLUGIN...
"""
import glob
import os
import subprocess
import sys

ENTRY = "ep_plugin_query_v0"


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def problems(path):
    exported = [line.split()[-1] for line in output_of("nm", "-D", "--defined-only", path).splitlines()]
    if exported != [ENTRY]:
        yield f"exports {', '.join(exported) or 'nothing'}; it may export {ENTRY} alone"
    for line in output_of("readelf", "-d", path).splitlines():
        if "(NEEDED)" in line and "tenon" in line:
            yield f"needs a library of the host: {line.split('[')[1].rstrip(']')}"
        if "(RPATH)" in line or "(RUNPATH)" in line:
            folder = line.split("[")[1].rstrip("]")
            if not folder.startswith("$ORIGIN"):
                yield f"searches the folder {folder}"
    for line in output_of("nm", "-D", "--undefined-only", path).splitlines():
        if "tenon" in line:
            yield f"wants {line.split()[-1]} from whoever loads it"
    if ".note.tenon" not in output_of("readelf", "-S", "-W", path):
        yield "has no section .note.tenon"


def main():
    paths = []
    for argument in sys.argv[1:]:
        paths += sorted(glob.glob(os.path.join(argument, "libtenon_*.so"))) if os.path.isdir(argument) else [argument]
    failures = 0
    for path in paths:
        found = list(problems(path))
        failures += len(found)
        print(path, "ok" if not found else "")
        for problem in found:
            print("  " + problem)
    print(f"{len(paths)} providers, {failures} things wrong")
    return 1 if failures or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
