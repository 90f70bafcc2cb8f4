"""Sums the results of one or more build folders and prints `N passed, N failed[, N skipped]` as its last line.

Usage: tally.py BUILD_FOLDER...

ctest writes results/ctest.xml, and each GoogleTest program results/<test>.xml. A GoogleTest program counts as the tests
in it, plus one failure if ctest saw it fail in another way (a crash, a sanitizer's report at exit, a time limit); any
other test counts as one. A folder without results, because it did not build or no test was found, counts as one failure.
The exit status is 0 if something passed and nothing failed.
"""
import os
import sys
import xml.etree.ElementTree as ElementTree


def count_gtest(path):
    """(passed, names of the failed, skipped) of one GoogleTest report, or None if it is missing or cut off."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    passed, failed, skipped = 0, [], 0
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is not None or case.get("result") == "skipped":
            skipped += 1
        elif case.get("status") == "run":
            passed += 1
    return passed, failed, skipped


def count_folder(folder):
    """(passed, names of the failed, skipped) of one build folder."""
    results = os.path.join(folder, "results")
    try:
        root = ElementTree.parse(os.path.join(results, "ctest.xml")).getroot()
    except (OSError, ElementTree.ParseError):
        return 0, ["did not build, or ran no test"], 0
    passed, failed, skipped = 0, [], 0
    for case in root.iter("testcase"):
        name = case.get("name")
        skip, bad = case.find("skipped") is not None, case.get("status") != "run"
        counts = count_gtest(os.path.join(results, name + ".xml"))
        if counts is not None and not skip:
            passed += counts[0]
            failed += [f"{name}: {inner}" for inner in counts[1]]
            skipped += counts[2]
            if bad and not counts[1]:
                failed.append(f"{name}: its tests passed, the program did not")
        elif skip and case.get("status") == "notrun" and case.find("skipped").get("message", "").startswith("SKIP"):
            skipped += 1
        elif bad:
            failed.append(name)
        else:
            passed += 1
    return passed, failed, skipped


def main():
    passed, failed, skipped = 0, 0, 0
    for folder in sys.argv[1:]:
        here = count_folder(folder)
        print(f"{os.path.basename(folder)}: {here[0]} passed, {len(here[1])} failed, {here[2]} skipped")
        for name in here[1]:
            print(f"  failed: {name}")
        passed, failed, skipped = passed + here[0], failed + len(here[1]), skipped + here[2]
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
