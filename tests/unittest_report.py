"""Runs the unittest cases of a script and writes a report for tally.py in the form of GoogleTest.

main() replaces unittest.main(). GTEST_OUTPUT says where the report goes (xml:PATH); without it there is no report.
"""
import os
import unittest
import xml.etree.ElementTree as ElementTree


class Recorder(unittest.TextTestResult):
    """Keeps how each test ended: "passed", "skipped" or "failed". A failure of a class counts as a test of its own."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.outcomes = {}

    def end_as(self, outcome, test):
        self.outcomes[getattr(test, "test_case", test).id()] = outcome

    def startTest(self, test):
        super().startTest(test)
        self.end_as("passed", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.end_as("skipped", test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.end_as("failed", test)

    def addError(self, test, error):
        super().addError(test, error)
        self.end_as("failed", test)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.end_as("failed", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.end_as("failed", test)


def write_report(path, outcomes):
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite")
    for name, outcome in outcomes.items():
        group, _, test = name.rpartition(".")
        case = ElementTree.SubElement(suite, "testcase", classname=group.rpartition(".")[2], name=test, status="run")
        case.set("result", "skipped" if outcome == "skipped" else "completed")
        if outcome != "passed":
            ElementTree.SubElement(case, "skipped" if outcome == "skipped" else "failure")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    ElementTree.ElementTree(root).write(path)


def main():
    runner = unittest.TextTestRunner(resultclass=Recorder)
    program = unittest.main(testRunner=runner, exit=False)
    kind, _, path = os.environ.get("GTEST_OUTPUT", "").partition(":")
    if kind == "xml":
        write_report(path, program.result.outcomes)
    raise SystemExit(not program.result.wasSuccessful())
