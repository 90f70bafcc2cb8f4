"""Sums the results of one or more build folders and prints `N passed, N failed[, N skipped]` as its last line.

Usage: tally.py [--counts FILE] [--pin] BUILD_FOLDER...

ctest writes results/ctest.xml. Each GoogleTest program and each Python script of unittest cases writes
results/<test>.xml. ./dev writes results/run.txt: the exit status of ctest, and the seconds of the build and of the tests.
A test with its own report counts as the tests in the report, plus one failure if ctest saw another failure (a crash, a
sanitizer's report at exit, a time limit). Any other test counts as one. Three more things are failures: a folder without
results or tests, a report without tests, and a failed ctest whose tests all passed.

counts.txt pins the number of tests in each test of each build; fewer is a failure. Skipped tests are counted separately,
without a limit. Tests of an optional provider may be missing if the build has no such provider. --pin writes counts.txt
from what ran (./dev counts).

The exit status is 0 if something passed and nothing failed.
"""
import argparse
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


def count_test(case, results):
    """The counts of one line of ctest's report. A test that skipped as a whole counts as one."""
    name, skip = case.get("name"), case.find("skipped")
    bad, seconds = case.get("status") != "run", float(case.get("time") or 0)
    if skip is not None and case.get("status") == "notrun" and skip.get("message", "").startswith("SKIP"):
        return Counts(skipped=1, seconds=seconds)
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


def count_folder(folder):
    """The counts of one build folder by test. A failure of the whole run is under ""."""
    results = os.path.join(folder, "results")
    root, run = read_xml(os.path.join(results, "ctest.xml")), read_run(folder)
    if root is None:
        return {"": Counts(failed=["did not build, or ran no test"])}
    counts = {case.get("name"): count_test(case, results) for case in root.iter("testcase")}
    if not counts:
        counts[""] = Counts(failed=["ctest ran no test"])
    elif "ctest" not in run:
        counts[""] = Counts(failed=["ctest did not end, or results/run.txt is missing"])
    elif run["ctest"] != 0 and not any(one.failed for one in counts.values()):
        counts[""] = Counts(failed=[f"ctest exited with {run['ctest']} although no test failed"])
    return counts


def read_counts(path):
    """counts.txt: (build, test) to the number of tests and the optional provider, or ""."""
    pinned = {}
    with open(path) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                build, test, number, *provider = line.split()
                pinned[build, test] = int(number), "".join(provider)
    return pinned


def may_be_missing(folder, provider):
    library = os.path.join(folder, "lib", "tenon", f"libtenon_{provider}.so")
    return bool(provider) and os.environ.get(f"REQUIRE_{provider.upper()}") != "1" and not os.path.exists(library)


def too_few(folder, counts, pinned):
    """A sentence for each test of the build folder that holds fewer tests than are pinned."""
    sentences, missing = [], defaultdict(int)
    for (build, test), (number, provider) in pinned.items():
        if build != os.path.basename(folder):
            continue
        here = counts.get(test)
        if here is None and may_be_missing(folder, provider):
            missing[provider] += number
        elif here is None:
            sentences.append(f"{test}: it is not there, and {number} of its tests are pinned in tests/counts.txt")
        elif here.total() < number and not (here.skipped and here.total() == here.skipped):
            sentences.append(f"{test}: it has {here.total()} tests, and {number} are pinned in tests/counts.txt")
    for provider, number in missing.items():
        print(f"  left out: {number} tests of {provider}, which this build does not have")
    return sentences


def optional_provider(test):
    """The provider of OPTIONAL without which the build does not contain this test, or ""."""
    return next((name for name in OPTIONAL if test.folder.endswith(f"providers/{name}") or f"tenon_{name}" in test.targets), "")


def pin(path, builds):
    """Writes counts.txt: new lines for tests that ran in these builds, the former lines for all other tests."""
    pinned = read_counts(path) if os.path.exists(path) else {}
    for folder in builds:
        build, known, counts = os.path.basename(folder), folders.read_tests(folder), count_folder(folder)
        if failed := [name for one in counts.values() for name in one.failed]:
            print(f"counts are pinned after a run without failures; in {folder} failed: {', '.join(failed)}", file=sys.stderr)
            return 1
        for key in [key for key in pinned if key[0] == build and key[1] not in counts and not may_be_missing(folder, pinned[key][1])]:
            del pinned[key]
        for name, here in counts.items():
            if name and not (here.skipped == here.total() and (build, name) in pinned):
                pinned[build, name] = here.total(), optional_provider(known[name])
    with open(path, "w") as file:
        file.write("# How many tests each test of each build holds; fewer is a failure (tally.py). `./dev counts` writes it after\n"
                   "# `./dev test`. A third word names the provider without which the test is not there.\n")
        for (build, name), (number, provider) in sorted(pinned.items()):
            file.write(f"{build} {name} {number} {provider}".rstrip() + "\n")
    print(f"{sum(number for number, _ in pinned.values())} tests are pinned in {path}")
    return 0


def print_parts(folder, counts):
    """Seconds and counts of each folder of tests, the longest first. Tests run in parallel, so the sum exceeds the whole."""
    parts, known = defaultdict(Counts), {}
    if os.path.exists(os.path.join(folder, "tests.txt")):
        known = folders.read_tests(folder)
    for name, here in counts.items():
        parts[known[name].folder if name in known else "elsewhere"].add(here)
    for part, here in sorted(parts.items(), key=lambda item: -item[1].seconds):
        print(f"  {here.seconds:7.1f} s  {part}: {here}")


def main():
    parser = argparse.ArgumentParser(usage="tally.py [--counts FILE] [--pin] BUILD_FOLDER...")
    parser.add_argument("--counts", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "counts.txt"))
    parser.add_argument("--pin", action="store_true")
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args()
    if options.pin:
        return pin(options.counts, options.folders)
    pinned, all_counts = read_counts(options.counts), Counts()
    for folder in options.folders:
        counts, run = count_folder(folder), read_run(folder)
        sentences = too_few(folder, counts, pinned)
        here = Counts(failed=sentences)
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
