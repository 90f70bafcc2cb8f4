"""Sums the results of one or more build folders and prints `N passed, N failed[, N skipped]` as its last line.

Usage: tally.py BUILD_FOLDER...

ctest writes results/ctest.xml. Each GoogleTest program and each Python script of unittest cases writes
results/<test>.xml. ./dev writes results/run.txt: the exit status of ctest, and the seconds of the build and of the tests.
A test with its own report counts as the tests in the report, plus one failure if ctest saw another failure (a crash, a
sanitizer's report at exit, a time limit). Any other test counts as one. Five more things are failures: a folder without
results or tests, a report without tests, a failed ctest whose tests all passed, a GoogleTest program that ended before
its last test (it left its file <test>.running), and an optional provider that is required and in no build. Skipped tests
are counted separately, without a limit.

The exit status is 0 if something passed and nothing failed.
"""
import os
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from dataclasses import dataclass, field

import folders

# The devices of these providers need packages or hardware that may be missing. REQUIRE_CUDA=1, REQUIRE_VULKAN=1 and
# REQUIRE_OPENCL=1 say that they are present.
OPTIONAL = ("cuda", "vulkan", "opencl")


@dataclass
class Counts:
    passed: int = 0
    failed: list = field(default_factory=list)  # the names of the failed tests
    skipped: int = 0
    seconds: float = 0

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.seconds += other.seconds

    def total(self):
        return self.passed + len(self.failed) + self.skipped

    def __str__(self):
        return f"{self.passed} passed, {len(self.failed)} failed" + (f", {self.skipped} skipped" if self.skipped else "")


def read_xml(path):
    """The root of a report, or None if it is missing or cut off."""
    try:
        return ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return None


def count_report(root):
    """The counts in the report of one GoogleTest program or Python script."""
    counts = Counts()
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            counts.failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is not None or case.get("result") == "skipped":
            counts.skipped += 1
        elif case.get("status") == "run":
            counts.passed += 1
    return counts


def count_test(case, results, running):
    """The counts of one line of ctest's report. A test that skipped as a whole counts as one. `running` is a file that
    exists if a GoogleTest program did not end its last test."""
    name, skip = case.get("name"), case.find("skipped")
    bad, seconds = case.get("status") != "run", float(case.get("time") or 0)
    if skip is not None and case.get("status") == "notrun" and skip.get("message", "").startswith("SKIP"):
        return Counts(skipped=1, seconds=seconds)
    if not bad and os.path.exists(running):
        return Counts(failed=[f"{name}: it ended before its last test"], seconds=seconds)
    report = read_xml(os.path.join(results, name + ".xml"))
    if report is None:
        return Counts(passed=0 if bad else 1, failed=[name] if bad else [], seconds=seconds)
    counts = count_report(report)
    counts.seconds = seconds
    if bad and not counts.failed:
        counts.failed.append("its tests passed, the program did not")
    elif counts.total() == 0:
        counts.failed.append("it ran no test")
    counts.failed = [f"{name}: {inner}" for inner in counts.failed]
    return counts


def read_run(folder):
    """The file that ./dev writes about the run: exit status of ctest, seconds of the build and of the tests."""
    try:
        with open(os.path.join(folder, "results", "run.txt")) as file:
            return {key: int(value) for key, value in (line.split() for line in file)}
    except OSError:
        return {}


def read_tests(folder):
    return folders.read_tests(folder) if os.path.exists(os.path.join(folder, "tests.txt")) else {}


def count_folder(folder):
    """The counts of one build folder by test. A failure of the whole run is under ""."""
    results = os.path.join(folder, "results")
    root, run = read_xml(os.path.join(results, "ctest.xml")), read_run(folder)
    if root is None:
        return {"": Counts(failed=["did not build, or ran no test"])}
    folder_of = {name: test.folder for name, test in read_tests(folder).items()}
    counts = {}
    for case in root.iter("testcase"):
        name = case.get("name")
        counts[name] = count_test(case, results, os.path.join(folder, folder_of.get(name, ""), name + ".running"))
    if not counts:
        counts[""] = Counts(failed=["ctest ran no test"])
    elif "ctest" not in run:
        counts[""] = Counts(failed=["ctest did not end, or results/run.txt is missing"])
    elif run["ctest"] != 0 and not any(one.failed for one in counts.values()):
        counts[""] = Counts(failed=[f"ctest exited with {run['ctest']} although no test failed"])
    return counts


def missing_providers(builds):
    """A sentence for each optional provider that must be here and that no build has."""
    return [f"REQUIRE_{name.upper()}=1, but no build has the provider {name}" for name in OPTIONAL
            if os.environ.get(f"REQUIRE_{name.upper()}") == "1" and
            not any(os.path.exists(os.path.join(folder, "lib", "tenon", f"libtenon_{name}.so")) for folder in builds)]


def print_parts(folder, counts):
    """Seconds and counts of each folder of tests, the longest first. Tests run in parallel, so the sum exceeds the whole."""
    parts, known = defaultdict(Counts), read_tests(folder)
    for name, here in counts.items():
        parts[known[name].folder if name in known else "elsewhere"].add(here)
    for part, here in sorted(parts.items(), key=lambda item: -item[1].seconds):
        print(f"  {here.seconds:7.1f} s  {part}: {here}")


def main():
    builds = sys.argv[1:]
    if not builds:
        sys.exit(__doc__)
    all_counts = Counts(failed=missing_providers(builds))
    for name in all_counts.failed:
        print(f"  failed: {name}")
    for folder in builds:
        counts, run = count_folder(folder), read_run(folder)
        here = Counts()
        for one in counts.values():
            here.add(one)
        print_parts(folder, counts)
        took = f"; built in {run.get('built', 0)} s, tested in {run.get('tested', 0)} s" if run else ""
        print(f"{os.path.basename(folder)}: {here}{took}")
        for name in here.failed:
            print(f"  failed: {name}")
        all_counts.add(here)
    print(all_counts)
    return 0 if all_counts.passed and not all_counts.failed else 1


if __name__ == "__main__":
    sys.exit(main())
