"""Builds and runs the tests for changed files, the nearest first, until the time is over.

Usage: quick.py [--seconds N] [--jobs N] [--main BRANCH] BUILD_FOLDER [FILE OR FOLDER...]

Without files or folders it takes all files that differ from the commit at which the branch left main: in commits, in the
work tree, and new files. folders.py finds the tests for a file. Only the targets of a test are built before it runs.
Tests for which no time was left are named. The exit status is 0 if nothing failed, 1 if something failed or no test ran.
"""
import argparse
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import folders

ROOT = folders.ROOT


def git(*arguments):
    """The lines that git prints, or None if it fails."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return [line for line in done.stdout.split("\0" if "-z" in arguments else "\n") if line] if done.returncode == 0 else None


def fork_point(main):
    """The commit at which this branch left main; without a branch called main, the last commit."""
    for name in (main, f"origin/{main}"):
        found = git("merge-base", name, "HEAD")
        if found:
            return found[0]
    return "HEAD"


def changed_files(main):
    changed, new = git("diff", "--name-only", "-z", fork_point(main)), git("ls-files", "-z", "--others", "--exclude-standard")
    if changed is None or new is None:
        sys.exit("./dev quick: git does not say what was changed here; name the files: ./dev quick FILE...")
    return sorted({*changed, *new})


def named_file(name):
    """True for a named file, and for any file in a named folder."""
    if (ROOT / name).is_dir():
        return f"{name}/any"
    if not (ROOT / name).exists() and not git("ls-files", "--", name):
        print(f"./dev quick: there is no file '{name}', and git knows none.", file=sys.stderr)
        sys.exit(2)
    return name


def choose(files, tests, table):
    """The names of the tests: first those of every file, then the nearest of each changed folder, in turn."""
    lists = [folders.tests_of(path, tests, table) for path in files]
    lists = [list(names) for names in dict.fromkeys(map(tuple, lists))]
    in_turn = [name for names in itertools.zip_longest(*lists) for name in names if name]
    return list(dict.fromkeys(folders.matching(table.get(".", []), tests) + in_turn))


def seconds_of_last_runs(build):
    """By test, as ctest stores them."""
    try:
        lines = (build / "Testing" / "Temporary" / "CTestCostData.txt").read_text().splitlines()
    except OSError:
        return {}
    rows = [line.split() for line in itertools.takewhile(lambda line: line != "---", lines)]
    return {row[0]: float(row[2]) for row in rows if len(row) == 3}


def run_within(seconds, command):
    """Returns the exit status and output of a command, or None if the time was over and the command was ended."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=max(seconds, 1))
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate()
        return None


class Quick:
    def __init__(self, build, jobs, seconds):
        self.build, self.jobs, self.start, self.end = build, jobs, time.monotonic(), time.monotonic() + seconds
        self.built, self.passed, self.failed, self.skipped, self.left_out = set(), [], [], [], []

    def left(self):
        return self.end - time.monotonic()

    def make(self, targets):
        """Builds targets that are not built yet. Returns an empty string, "time", or the output of a failed build."""
        targets = [target for target in targets if target not in self.built]
        if not targets:
            return ""
        command = ["cmake", "--build", str(self.build), "-j", str(self.jobs), "--target", *targets]
        done = run_within(self.left(), command)
        if done is None:
            return "time"
        status, output = done
        if status != 0:
            lines = [line for line in output.splitlines() if not re.match(r"\[\d+/\d+\] [A-Z]", line)]
            return "\n".join(lines[-40:]) or "the build failed"
        self.built.update(targets)
        return ""

    def run(self, name):
        """The result of the test, and its output."""
        command = ["ctest", "--test-dir", str(self.build), "-R", f"^{re.escape(name)}$", "--output-on-failure", "--no-tests=error"]
        # This sets the length of the longest test (tests/unit/vm/random_programs_test.cpp).
        done = run_within(self.left(), ["env", "RANDOM_PROGRAMS=300", *command])
        if done is None:
            return "time", ""
        status, output = done
        if status != 0:
            return "failed", output
        return ("skipped" if re.search(r"\*\*\*Skipped", output) else "passed"), output

    def try_test(self, test, expected):
        """Returns False if nothing more can be built."""
        if self.left() < expected:
            self.left_out.append(test.name)
            return True
        before = time.monotonic()
        trouble = self.make(test.targets)
        building = time.monotonic() - before
        if trouble == "time" or self.left() < expected:
            self.left_out.append(test.name)
            return True
        if trouble:
            self.failed.append(test.name)
            print(f"  FAILED   {test.name}: its targets do not build ({', '.join(test.targets)})\n{trouble}")
            return False
        outcome, output = self.run(test.name)
        if outcome == "time":
            self.left_out.append(test.name)
            return True
        {"passed": self.passed, "failed": self.failed, "skipped": self.skipped}[outcome].append(test.name)
        took = f"{time.monotonic() - before - building:.1f} s" + (f", built in {building:.1f} s" if building >= 0.5 else "")
        print(f"  {'FAILED ' if outcome == 'failed' else outcome}  {test.name} ({took})", flush=True)
        if outcome == "failed":
            print(output)
        return True

    def report(self, untried):
        """`untried` are the tests after the one that could not be built."""
        if self.left_out:
            print(f"left out, for want of time: {', '.join(self.left_out)}")
        if untried:
            print(f"left out, until that builds: {', '.join(untried)}")
            self.left_out += untried
        print(f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped, {len(self.left_out)} left out, "
              f"in {time.monotonic() - self.start:.0f} s; ./dev test runs everything")
        return 1 if self.failed or not self.passed else 0


def main():
    parser = argparse.ArgumentParser(usage="quick.py [--seconds N] [--jobs N] [--main BRANCH] BUILD_FOLDER [FILE OR FOLDER...]")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--main", default="main")
    parser.add_argument("build", type=Path)
    parser.add_argument("files", nargs="*")
    options = parser.parse_intermixed_args()
    if not (options.build / "tests.txt").exists():
        sys.exit(f"./dev quick: there is no build in {options.build}, and the first one takes longer than three minutes: "
                 "./dev test, or cmake --preset release && cmake --build build/release")
    files = [named_file(name) for name in options.files] or changed_files(options.main)
    if not files:
        print("nothing was changed: no commit since main, nothing in the work tree, no new file")
        return 0
    tests, quick = folders.read_tests(options.build), Quick(options.build, options.jobs, options.seconds)
    chosen, expected = choose(files, tests, folders.read_table()), seconds_of_last_runs(options.build)
    touched = sorted({"/".join(path.split("/")[:-1][:2]) or "the root" for path in files})
    print(f"{len(files)} {'file' if len(files) == 1 else 'files'} in {', '.join(touched)}: {len(chosen)} tests look at them")
    for place, name in enumerate(chosen):
        if not quick.try_test(tests[name], expected.get(name, 0)):
            return quick.report(chosen[place + 1:])
    return quick.report([])


if __name__ == "__main__":
    sys.exit(main())
