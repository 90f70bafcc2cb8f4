"""Plants a defect in each top folder in turn, in a separate checkout, and checks that ./dev quick finds it.

Usage: plants.py CHECKOUT [TOP_FOLDER...]

CHECKOUT is a work tree of this repository (git worktree add CHECKOUT) without changes. It is built first if it has no
build. ./dev test does not run this script, because each plant may take three minutes.
"""
import os
import pathlib
import subprocess
import sys
import time
from typing import NamedTuple


class Plant(NamedTuple):
    folder: str  # a top folder of the tree
    right: str  # occurs once in one file below it
    wrong: str


PLANTS = (
    Plant("tests", "if report is None:", "if report is None or bad:"),
    Plant("sdk", "{DType::u16, \"<u2\"},", "{DType::u16, \"<i2\"},"),
    Plant("providers", "++i) sum += std::exp(src[i] - most);", "++i) sum += std::exp(src[i] + most);"),
    Plant("benchmarks", "--i) op();", "--i) op(), op();"),
    Plant("loader", "return length < size ? std::string(field, length) : std::string();", "return std::string(field, length);"),
    Plant("core", "constexpr int64_t kWhole = 1000;", "constexpr int64_t kWhole = 999;"),
    Plant("primitives", "if (axis < -limit || axis >= limit) {", "if (axis < -limit || axis > limit) {"),
    Plant("ep_api", "#define EP_STATUS_FAULT 2 ", "#define EP_STATUS_FAULT 12 "),
)


def run(checkout, *command):
    environment = {key: value for key, value in os.environ.items() if key != "GTEST_OUTPUT"}
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, env=environment)


def file_with(checkout, plant):
    found = run(checkout, "git", "grep", "-lF", "-e", plant.right, "--", plant.folder, ":!ep_api/abi").stdout.split()
    found = [path for path in found if not path.endswith("quick/plants.py")]
    if len(found) != 1 or (checkout / found[0]).read_text().count(plant.right) != 1:
        sys.exit(f"'{plant.right}' should stand once in {plant.folder}; it stands in {found or 'no file'}")
    return checkout / found[0]


def build(checkout):
    built = run(checkout, "cmake", "--build", "build/release", "-j", str(os.cpu_count()), "--target", "all", "tenon_tests", "bench_instructions")
    if built.returncode != 0:
        sys.exit(built.stdout[-4000:])


def prepare(checkout):
    if run(checkout, "git", "status", "--porcelain").stdout:
        sys.exit(f"{checkout} has changes of its own; plants.py needs a work tree without any")
    if not (checkout / "build/release/tests.txt").exists():
        (checkout / "build").mkdir(exist_ok=True)
        run(checkout, "cmake", "--preset", "release")
    build(checkout)


def finds(checkout, plant):
    """True if quick finds the defect within its promised time. Removes the defect again."""
    path = file_with(checkout, plant)
    right = path.read_text()
    path.write_text(right.replace(plant.right, plant.wrong))
    start = time.monotonic()
    try:
        done = run(checkout, "./dev", "quick", str(path.relative_to(checkout)))
        took = time.monotonic() - start
    finally:
        path.write_text(right)
    found = [line.split()[1].rstrip(":") for line in done.stdout.splitlines() if line.startswith("  FAILED ")]
    print(f"{'found ' if found else 'MISSED'}  {plant.folder}: {path.relative_to(checkout)}, in {took:.0f} s"
          f"{' by ' + ', '.join(found) if found else ''}; {done.stdout.splitlines()[-1] if done.stdout else done.stderr}", flush=True)
    return bool(found) and took < 200  # three minutes, and the time to end a test


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    checkout, wanted = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    if unknown := set(wanted) - {plant.folder for plant in PLANTS}:
        sys.exit(f"no defect is planted in {', '.join(sorted(unknown))}")
    prepare(checkout)
    missed = []
    for plant in PLANTS:
        if wanted and plant.folder not in wanted:
            continue
        if not finds(checkout, plant):
            missed.append(plant.folder)
        build(checkout)  # compiles without the defect
    if missed:
        print(f"missed or too slow: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
