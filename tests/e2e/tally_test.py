"""tests/tally.py counts passed, failed and skipped tests, misses no crash, and fails if a program ended early.

Usage: tally_test.py TALLY_SCRIPT
"""
import os
import subprocess
import sys
import tempfile

CTEST = """<testsuite>
  <testcase name="good" status="run" time="1.5"/>
  <testcase name="mixed" status="fail"><failure message=""/></testcase>
  <testcase name="crashed" status="fail"><failure message=""/></testcase>
  <testcase name="cut" status="fail"><failure message=""/></testcase>
  <testcase name="empty" status="run"/>
  <testcase name="script" status="run"/>
  <testcase name="bad_script" status="fail"><failure message=""/></testcase>
  <testcase name="skipped_script" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
  <testcase name="never_built" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>"""
PASSED = '<testcase name="{}" status="run" result="completed" classname="S"/>'
FAILED = '<testcase name="{}" status="run" result="completed" classname="S"><failure message="no"/></testcase>'
SKIPPED = '<testcase name="{}" status="run" result="skipped" classname="S"><skipped message="why"/></testcase>'
DISABLED = '<testcase name="{}" status="notrun" result="suppressed" classname="S"/>'
ONE = '<testsuite><testcase name="one" status="run" time="2.25"/></testsuite>'
SKIPPING_SCRIPT = """
import sys, unittest
sys.path.insert(0, {tests!r})
import unittest_report

class Some(unittest.TestCase):
    def test_passes(self):
        for part in range(3):
            with self.subTest(part=part): pass
    def test_skips_itself(self):
        self.skipTest("no device")
    def test_fails(self):
        for part in range(3):
            with self.subTest(part=part): self.assertNotEqual(part, {bad})

class Never(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("no compiler")
    def test_is_not_started(self):
        pass

unittest_report.main()
"""


def gtest(*cases):
    body = "".join(case.format(f"t{i}") for i, case in enumerate(cases))
    return f"<testsuites><testsuite>{body}</testsuite></testsuites>"


REPORTS = {
    "ctest": CTEST,
    "good": gtest(PASSED, PASSED, SKIPPED, DISABLED),
    "mixed": gtest(PASSED, FAILED),
    "crashed": gtest(PASSED, PASSED),  # a complete report, but the program failed afterwards (a leak at exit)
    "cut": "<testsuites><testsuite>",
    "empty": gtest(DISABLED),
}


class Tally:
    """The script, and a folder for invented build folders."""

    def __init__(self, script, work):
        self.script, self.work = script, work

    def folder(self, name, reports, exit_status=0, tests="one tests/unit/x"):
        path = os.path.join(self.work, name)
        os.makedirs(os.path.join(path, "results"))
        for report, text in reports.items():
            self.write(os.path.join(path, "results", report + ".xml"), text)
        self.write(os.path.join(path, "tests.txt"), tests + "\n")
        if exit_status is not None:
            self.write(os.path.join(path, "results", "run.txt"), f"ctest {exit_status}\ntested 7\nbuilt 5\n")
        return path

    @staticmethod
    def write(path, text):
        with open(path, "w") as file:
            file.write(text)

    def run(self, *folders, require=()):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("REQUIRE_")}
        environment |= {f"REQUIRE_{name}": "1" for name in require}
        result = subprocess.run([sys.executable, "-B", self.script, *folders], capture_output=True, text=True, env=environment)
        return result.returncode, result.stdout + result.stderr

    def expect(self, status, last_line, *folders, says=(), **options):
        got, text = self.run(*folders, **options)
        assert (got, text.splitlines()[-1]) == (status, last_line), text
        for words in says:
            assert words in text, (words, text)


def every_end_is_counted(tally):
    # passed: 2 of good, 1 of mixed, 2 of crashed, script; failed: 1 of mixed, crashed, cut, empty, bad_script, never_built
    failures = ("mixed: S.t1", "crashed: its tests passed, the program did not", "cut", "empty: it ran no test", "bad_script", "never_built")
    tally.expect(1, "6 passed, 6 failed, 2 skipped", tally.folder("full", REPORTS, exit_status=8),
                 says=[f"  failed: {name}\n" for name in failures])


def a_run_that_did_not_happen_is_a_failure(tally):
    clean = tally.folder("clean", {"ctest": ONE})
    tally.expect(0, "1 passed, 0 failed", clean)
    tally.expect(1, "1 passed, 1 failed", clean, os.path.join(tally.work, "never configured"))
    tally.expect(1, "1 passed, 1 failed", clean, tally.folder("no tests", {"ctest": "<testsuite></testsuite>"}),
                 says=["  failed: ctest ran no test\n"])
    tally.expect(1, "1 passed, 1 failed", tally.folder("exited", {"ctest": ONE}, exit_status=8),
                 says=["  failed: ctest exited with 8 although no test failed\n"])
    tally.expect(1, "1 passed, 1 failed", tally.folder("cut off", {"ctest": ONE}, exit_status=None),
                 says=["  failed: ctest did not end, or results/run.txt is missing\n"])


def each_part_states_its_seconds(tally):
    tally.expect(0, "1 passed, 0 failed", tally.folder("parts", {"ctest": ONE}),
                 says=["2.2 s  tests/unit/x: 1 passed, 0 failed\n", "parts: 1 passed, 0 failed; built in 5 s, tested in 7 s\n"])


def a_program_that_ended_before_its_last_test_is_a_failure(tally):
    here = tally.folder("early", {"ctest": ONE})
    tally.expect(0, "1 passed, 0 failed", here)
    os.makedirs(os.path.join(here, "tests/unit/x"))
    Tally.write(os.path.join(here, "tests/unit/x/one.running"), "0")
    tally.expect(1, "0 passed, 1 failed", here, says=["  failed: one: it ended before its last test\n"])


def a_required_provider_that_no_build_has_is_a_failure(tally):
    here, other = tally.folder("with", {"ctest": ONE}), os.path.join(tally.work, "clean")
    tally.expect(1, "2 passed, 1 failed", other, here, require=["CUDA"],
                 says=["  failed: REQUIRE_CUDA=1, but no build has the provider cuda\n"])
    os.makedirs(os.path.join(here, "lib", "tenon"))
    Tally.write(os.path.join(here, "lib", "tenon", "libtenon_cuda.so"), "")
    tally.expect(0, "2 passed, 0 failed", other, here, require=["CUDA"])


def python_tests_that_skip_themselves_are_counted_as_skipped(tally):
    script, tests = os.path.join(tally.work, "skipping.py"), os.path.dirname(os.path.abspath(tally.script))
    for bad, status, last_line in ((9, 0, "2 passed, 0 failed, 2 skipped"), (1, 1, "1 passed, 1 failed, 2 skipped")):
        folder = tally.folder(f"python{bad}", {"ctest": ONE})
        tally.write(script, SKIPPING_SCRIPT.format(tests=tests, bad=bad))
        environment = {**os.environ, "GTEST_OUTPUT": "xml:" + os.path.join(folder, "results", "one.xml")}
        done = subprocess.run([sys.executable, "-B", script], env=environment, capture_output=True)
        assert done.returncode == status, done.stderr
        tally.expect(status, last_line, folder)


def main():
    claims = (every_end_is_counted, a_run_that_did_not_happen_is_a_failure, each_part_states_its_seconds,
              a_program_that_ended_before_its_last_test_is_a_failure, a_required_provider_that_no_build_has_is_a_failure,
              python_tests_that_skip_themselves_are_counted_as_skipped)
    with tempfile.TemporaryDirectory() as work:
        tally = Tally(sys.argv[1], work)
        for claim in claims:
            claim(tally)
            print("holds:", claim.__name__.replace("_", " "))
    return 0


if __name__ == "__main__":
    sys.exit(main())
