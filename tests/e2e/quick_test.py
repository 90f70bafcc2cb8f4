"""./dev quick finds what was changed and runs the tests that folders.txt names, the nearest first, within its time.

Usage: quick_test.py SOURCE_ROOT BUILD_FOLDER
"""
import fnmatch
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TABLE = """# words
.      lines
core   near far*
tests  tally
"""
TESTS = """lines tests/e2e
far_one tests/e2e library program
near tests/e2e library
unit_vm tests/unit/vm unit_vm
tally tests/e2e
"""
# The stubs replace cmake and ctest. Each logs its call and behaves as a file with its name says.
CMAKE = """#!/bin/sh
while [ "$1" != --target ]; do shift; done; shift
echo "build $*" >> "$STUBS/log"
for target in "$@"; do if [ -e "$STUBS/broken_$target" ]; then echo "[1/2] Building it"; echo "error: $target"; exit 1; fi; done
if [ -e "$STUBS/slow" ]; then sleep 60 & wait; fi
"""
CTEST = """#!/bin/sh
while [ "$1" != -R ]; do shift; done
name=$(echo "$2" | tr -d '^$\\\\'); echo "run $name" >> "$STUBS/log"
if [ -e "$STUBS/failing_$name" ]; then echo "what $name says"; exit 8; fi
if [ -e "$STUBS/skipping_$name" ]; then echo "1/1 Test #1: $name ...***Skipped   0.01 sec"; fi
"""


def claim(holds, what):
    if not holds:
        raise AssertionError(what)


class Checkout:
    """A repository with the scripts, a table of its own, and an invented build folder."""

    def __init__(self, sources, work):
        self.root, self.build, self.stubs = work / "root", work / "root" / "build", work / "stubs"
        (self.root / "tests").mkdir(parents=True)
        for script in ("folders.py", "quick.py"):
            shutil.copy(sources / "tests" / script, self.root / "tests" / script)
        self.write("tests/folders.txt", TABLE)
        self.write("build/tests.txt", TESTS)
        self.write(".gitignore", "build\n")
        for name in ("core/vm/queue.cpp", "core/room.h", "README.md"):
            self.write(name, "text\n")
        self.stubs.mkdir()
        for name, text in (("cmake", CMAKE), ("ctest", CTEST)):
            (self.stubs / name).write_text(text)
            (self.stubs / name).chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.commit()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *arguments):
        who = ["-c", "user.name=one", "-c", "user.email=one@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *arguments], cwd=self.root, check=True, capture_output=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "text")

    def stub(self, *names):
        for old in self.stubs.glob("*_*"):
            old.unlink()
        for old in ("slow", "log"):
            (self.stubs / old).unlink(missing_ok=True)
        for name in names:
            (self.stubs / name).touch()

    def quick(self, code, *arguments, stubs=()):
        """The printed text, and the logged calls as lines."""
        self.stub(*stubs)
        environment = {**os.environ, "PATH": f"{self.stubs}:{os.environ['PATH']}", "STUBS": str(self.stubs)}
        done = subprocess.run([sys.executable, "-B", "tests/quick.py", "build", *arguments], cwd=self.root, text=True,
                              capture_output=True, env=environment, timeout=50)
        claim(done.returncode == code, f"{arguments}: exit status {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
        log = self.stubs / "log"
        return done.stdout + done.stderr, log.read_text().splitlines() if log.exists() else []


def without_a_change_it_runs_nothing(here):
    text, did = here.quick(0)
    claim(text.startswith("nothing was changed") and did == [], text)


def tests_run_from_the_nearest_each_after_its_targets(here):
    here.write("core/vm/queue.cpp", "other text\n")
    text, did = here.quick(0)
    claim(did == ["run lines", "build unit_vm", "run unit_vm", "build library", "run near", "build program", "run far_one"], f"{did}")
    claim("1 file in core/vm: 4 tests look at them" in text and "4 passed, 0 failed, 0 skipped, 0 left out" in text, text)
    here.git("checkout", "core")
    here.write("tests/folders.txt", TABLE.replace("far*", "unit_vm"))
    did = here.quick(0, "core/vm")[1]
    claim([line for line in did if line.startswith("run")] == ["run lines", "run near", "run unit_vm"], f"a line places its folder's own tests: {did}")
    here.git("checkout", "tests")


def every_kind_of_change_counts(here):
    for change in (lambda: here.write("core/new.cpp", "text"), lambda: (here.root / "core" / "room.h").unlink()):
        change()
        claim("run near" in here.quick(0)[1], "a new or a removed file is a change")
        here.git("stash", "-u")
    here.git("checkout", "-q", "-b", "branch")
    here.write("core/room.h", "more\n")
    here.commit()
    claim("run near" in here.quick(0)[1], "a commit since main is a change")
    here.git("checkout", "-q", "main")
    claim(here.quick(0, "core/vm")[1] == here.quick(0, "core/vm/queue.cpp")[1], "a folder that is named stands for its files")
    claim(here.quick(0, "README.md")[1] == ["run lines"], "a file of the root is looked at by the tests of every file")
    claim("there is no file 'core/rom.h'" in here.quick(2, "core/rom.h")[0], "a file that does not exist is refused")


def what_fails_is_said(here):
    text, did = here.quick(1, "core/room.h", stubs=["failing_near"])
    claim("FAILED   near" in text and "what near says" in text and did[-1] == "run far_one", text)
    text, did = here.quick(1, "core/room.h", stubs=["broken_library"])
    claim("its targets do not build (library)\nerror: library\n" in text and "left out, until that builds: far_one" in text, text)
    text, did = here.quick(0, "core/room.h", stubs=["skipping_near"])
    claim("skipped  near" in text and "2 passed, 0 failed, 1 skipped" in text, text)


def the_time_is_kept_and_what_is_left_out_is_named(here):
    text, did = here.quick(0, "--seconds", "2", "core/room.h", stubs=["slow"])
    claim("left out, for want of time: near, far_one" in text and "1 passed, 0 failed, 0 skipped, 2 left out" in text, text)
    here.write("build/Testing/Temporary/CTestCostData.txt", "near 3 500\nfar_one 2 0.5\n---\nnear\n")
    text, did = here.quick(0, "core/room.h")
    claim("run near" not in did and "run far_one" in did and "want of time: near\n" in text, text)
    text, did = here.quick(1, "--seconds", "0", "core/room.h")
    claim(did == [] and "0 passed" in text, "a run without a test is not a success")


def the_table_knows_the_tree(sources, build):
    sys.path.insert(0, str(sources / "tests"))
    import folders
    tests, table = folders.read_tests(build), folders.read_table()
    optional = ("cuda_*", "vulkan_*", "conform_vulkan", "e2e_instructions")
    for folder, names in table.items():
        claim((sources / folder).exists(), f"folders.txt names {folder}, which is not there")
        for name in names:
            known = folders.matching([name], tests) or any(fnmatch.fnmatchcase(name, pattern) for pattern in optional)
            claim(known, f"folders.txt names the test {name} for {folder}; ctest does not know it")
    listed = subprocess.run(["git", "-C", str(sources), "ls-files", "*.cpp", "*.h", "*.c", "*.cu", "*.py", "*.def"],
                            capture_output=True, text=True)
    def left_out(path):  # true if the tests of the path need something that this machine may lack
        rows = [folder for folder in table if path == folder or path.startswith(folder + "/")]
        names = table[max(rows, key=len)] if rows else []
        return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in optional)

    for path in listed.stdout.split():
        claim(folders.tests_of(path, tests, table) or left_out(path), f"no test looks at {path}: give its folder a line in tests/folders.txt")


def main():
    sources, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    the_table_knows_the_tree(sources, build)
    with tempfile.TemporaryDirectory() as work:
        here = Checkout(sources, pathlib.Path(work))
        for holds in (without_a_change_it_runs_nothing, tests_run_from_the_nearest_each_after_its_targets,
                      every_kind_of_change_counts, what_fails_is_said, the_time_is_kept_and_what_is_left_out_is_named):
            holds(here)
            print("holds:", holds.__name__.replace("_", " "))
    return 0


if __name__ == "__main__":
    sys.exit(main())
