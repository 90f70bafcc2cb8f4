"""Finds the tests for a file: by folders.txt, by the mirror in tests/unit, and by the tests that the build registers.

Usage: folders.py BUILD_FOLDER FILE...

Prints the tests of the files, the nearest first, one per line: its ctest name, then the targets that it needs. A file is
named relative to the root of the repository and need not exist.
"""
import fnmatch
import sys
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Test(NamedTuple):
    name: str
    folder: str  # the folder that registers the test
    targets: tuple  # targets of the build


def read_tests(build):
    """The tests of a build folder by name, in the order in which they are registered; CMake writes tests.txt."""
    tests = {}
    for line in (Path(build) / "tests.txt").read_text().splitlines():
        name, folder, *targets = line.split()
        tests[name] = Test(name, folder, tuple(targets))
    return tests


def read_table(path=ROOT / "tests" / "folders.txt"):
    """The lines of folders.txt: a folder and names, which may contain `*`."""
    rows = [line.split() for line in Path(path).read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {folder: names for folder, *names in rows}


def folders_above(path):
    """The folders that contain `path`, the longest first."""
    return [str(parent) for parent in PurePosixPath(path).parents if str(parent) != "."]


def own_tests(path, tests):
    """The tests that the file's folder registers. For a file of the product, the tests of its mirror in tests/unit."""
    above = folders_above(path)
    if above and above[-1] not in ("tests", "benchmarks"):
        mirrored = [f"tests/unit/{folder}" for folder in above]
        mirrored += [f"tests/unit/{folder.partition('/')[2]}" for folder in above if "/" in folder]
        above = sorted(mirrored, key=lambda folder: -folder.count("/"))
    for folder in above:
        names = [test.name for test in tests.values() if test.folder == folder]
        if names:
            return names
    return []


def line_of(path, table):
    """The names in the line of `path` itself, or of the longest folder that contains it."""
    return next((table[name] for name in [path, *folders_above(path)] if name in table), [])


def matching(names, tests):
    """The tests of the build that `names` match."""
    return [test for name in names for test in tests if fnmatch.fnmatchcase(test, name)]


def tests_of(path, tests, table):
    """The names of the tests for `path`, the nearest first, without the tests of every file."""
    named = matching(line_of(path, table), tests)
    return [name for name in own_tests(path, tests) if name not in named] + list(dict.fromkeys(named))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    tests, table = read_tests(sys.argv[1]), read_table()
    found = dict.fromkeys(name for path in sys.argv[2:] for name in tests_of(path, tests, table))
    for name in found:
        print(name, *tests[name].targets)


if __name__ == "__main__":
    main()
