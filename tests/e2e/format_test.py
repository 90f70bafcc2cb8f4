"""Every source is formatted like clang-format 14 formats it with .clang-format. `./dev format` formats all.

Usage: format_test.py SOURCE_ROOT

Skipped without that version, because each version formats a little differently.
"""
import re
import subprocess
import sys

SKIPPED = 77
VERSION = 14


def main():
    root = sys.argv[1]
    try:
        banner = subprocess.run(["clang-format", "--version"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        banner = "none"
    if not re.search(rf"version {VERSION}\.", banner):
        print(f"skipped: needs clang-format {VERSION}, found: {banner.strip()}")
        return SKIPPED
    listed = subprocess.run(["./dev", "format", "--list"], cwd=root, capture_output=True, text=True, check=True)
    files = listed.stdout.split()
    if not files:
        print("./dev format --list names no file")
        return 1
    checked = subprocess.run(["clang-format", "--dry-run", "--Werror", *files], cwd=root, capture_output=True, text=True)
    differing = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", checked.stderr, re.MULTILINE)))
    for path in differing:
        print(f"{path} differs from what clang-format {VERSION} writes: ./dev format")
    print(f"{len(files)} files, {len(differing)} differ")
    return 1 if checked.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
