"""Copies the headers of the installation: the named headers, and every header of Tenon that they include.

Usage: stage_headers.py --out FOLDER --root FOLDER... --rename FROM=TO... HEADER...

The name of a header is its path below a root (the repository, or the folder of generated headers). The header gets the
same path below OUT/tenon, unless --rename gives another one. In its text `#include "core/..."` becomes
`#include "tenon/core/..."`, so that a program needs one include folder and may have a core/ of its own. An unchanged
file keeps its time.
"""
import argparse
import os
import re
import sys

INCLUDE = re.compile(r'^(\s*#\s*include\s*)"([^"]+)"', re.MULTILINE)


def find(path, roots):
    for root in roots:
        full = os.path.join(root, path)
        if os.path.isfile(full):
            return full
    return None


def stage(path, roots, renames, out, done):
    """Copies `path` and every header that it includes. Returns its include name in the installation."""
    target = "tenon/" + renames.get(path, path)
    if path in done:
        return target
    done[path] = target
    source = find(path, roots)
    if source is None:
        sys.exit(f"stage_headers: there is no header {path} below any of {', '.join(roots)}")
    text = open(source).read()

    def installed(match):
        if find(match.group(2), roots):
            return f'{match.group(1)}"{stage(match.group(2), roots, renames, out, done)}"'
        beside = os.path.join(os.path.dirname(path), match.group(2))
        if find(beside, roots) is None:
            sys.exit(f'stage_headers: {path} includes "{match.group(2)}", which no root has')
        stage(beside, roots, renames, out, done)
        return match.group(0)

    text = INCLUDE.sub(installed, text)
    full = os.path.join(out, target)
    if not os.path.exists(full) or open(full).read() != text:
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w") as file:
            file.write(text)
    return target


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--root", action="append", required=True)
    parser.add_argument("--rename", action="append", default=[])
    parser.add_argument("headers", nargs="+")
    arguments = parser.parse_args()
    renames = dict(pair.split("=", 1) for pair in arguments.rename)
    done = {}
    for header in arguments.headers:
        stage(header, arguments.root, renames, arguments.out, done)
    kept = {os.path.join(arguments.out, target) for target in done.values()}
    for folder, _, files in os.walk(arguments.out):
        for name in files:
            if os.path.join(folder, name) not in kept:
                os.remove(os.path.join(folder, name))


if __name__ == "__main__":
    main()
