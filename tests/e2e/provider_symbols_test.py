"""Every plug-in exports its query (ep_plugin_query_v0, or ep_collectives_query_v0 if it carries data) and the symbols that
its own libraries look up in it, needs no library of the host, and has the note. Every library of ours exports only names
of the namespace tenon. None of them exports or needs fmt, which is compiled into each.

Usage: provider_symbols_test.py FOLDER_OF_PLUGINS_OR_PLUGIN... [--libraries LIBRARY...]
"""
import glob
import os
import subprocess
import sys

ENTRIES = ("ep_plugin_query_v0", "ep_collectives_query_v0")
OURS = ("tenon::", "typeinfo for tenon::", "typeinfo name for tenon::", "vtable for tenon::")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needed(path):
    lines = output_of("readelf", "-d", path).splitlines()
    return [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]


def looked_up_by_libraries(path):
    """The symbols that the linked libraries of `path` look up elsewhere. They may find them in `path`."""
    names = set()
    for line in output_of("ldd", path).splitlines():
        name, _, place = line.strip().partition(" => ")
        if name in needed(path) and place:
            listed = output_of("nm", "-D", "--undefined-only", place.split(" (")[0]).splitlines()
            names |= {entry.split()[-1].split("@")[0] for entry in listed}
    return names


def problems_of_library(path):
    exported = [line.split(maxsplit=2)[2] for line in output_of("nm", "-DC", "--defined-only", path).splitlines()]
    for symbol in exported:
        if "fmt::" in symbol or not symbol.startswith(OURS):
            yield f"exports {symbol}; it may export names of tenon alone"
    for name in needed(path):
        if name.startswith("libfmt"):
            yield f"needs {name}, which users of the installed package do not have"
    if not exported:
        yield "exports nothing"


def problems_of_provider(path):
    exported = {line.split()[-1] for line in output_of("nm", "-D", "--defined-only", path).splitlines()}
    entry = next((entry for entry in ENTRIES if entry in exported), None)
    if entry is None:
        yield f"exports none of {', '.join(ENTRIES)}"
    for symbol in sorted(exported - {entry} - looked_up_by_libraries(path)):
        yield f"exports {symbol}, which no library that it links looks up; it may export {entry}"
    for name in needed(path):
        if "tenon" in name or name.startswith("libfmt"):
            yield f"needs a library of the host: {name}"
    for line in output_of("readelf", "-d", path).splitlines():
        if "(RPATH)" in line or "(RUNPATH)" in line:
            folder = line.split("[")[1].rstrip("]")
            if not folder.startswith("$ORIGIN"):
                yield f"searches the folder {folder}"
    for line in output_of("nm", "-D", "--undefined-only", path).splitlines():
        if "tenon" in line:
            yield f"wants {line.split()[-1]} from the program that loads it"
    if ".note.tenon" not in output_of("readelf", "-S", "-W", path):
        yield "has no section .note.tenon"


def main():
    arguments = sys.argv[1:]
    split = arguments.index("--libraries") if "--libraries" in arguments else len(arguments)
    libraries, paths = arguments[split + 1:], []
    for argument in arguments[:split]:
        paths += sorted(glob.glob(os.path.join(argument, "libtenon_*.so"))) if os.path.isdir(argument) else [argument]
    failures = 0
    for path in paths + libraries:
        found = list(problems_of_library(path) if path in libraries else problems_of_provider(path))
        failures += len(found)
        print(path, "ok" if not found else "")
        for problem in found:
            print("  " + problem)
    print(f"{len(paths)} providers, {len(libraries)} libraries, {failures} things wrong")
    return 1 if failures or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
