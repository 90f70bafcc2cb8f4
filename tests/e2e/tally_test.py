"""tests/tally.py counts what passed, failed and was skipped, and misses no crash.

Usage: tally_test.py TALLY_SCRIPT
"""
import os
import subprocess
import sys
import tempfile

CTEST = """<testsuite>
  <testcase name="good" status="run"/>
  <testcase name="mixed" status="fail"><failure message=""/></testcase>
  <testcase name="crashed" status="fail"><failure message=""/></testcase>
  <testcase name="cut" status="fail"><failure message=""/></testcase>
  <testcase name="script" status="run"/>
  <testcase name="bad_script" status="fail"><failure message=""/></testcase>
  <testcase name="skipped_script" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
  <testcase name="never_built" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>"""
PASSED = '<testcase name="{}" status="run" result="completed" classname="S"/>'
FAILED = '<testcase name="{}" status="run" result="completed" classname="S"><failure message="no"/></testcase>'
SKIPPED = '<testcase name="{}" status="run" result="skipped" classname="S"><skipped message="why"/></testcase>'
DISABLED = '<testcase name="{}" status="notrun" result="suppressed" classname="S"/>'


def gtest(*cases):
    body = "".join(case.format(f"t{i}") for i, case in enumerate(cases))
    return f"<testsuites><testsuite>{body}</testsuite></testsuites>"


REPORTS = {
    "ctest": CTEST,
    "good": gtest(PASSED, PASSED, SKIPPED, DISABLED),
    "mixed": gtest(PASSED, FAILED),
    "crashed": gtest(PASSED, PASSED),  # the report is whole, the program failed after it (a leak at exit)
    "cut": "<testsuites><testsuite>",
}


def tally(script, *folders):
    result = subprocess.run([sys.executable, script, *folders], capture_output=True, text=True)
    return result.returncode, result.stdout


def main():
    script = sys.argv[1]
    with tempfile.TemporaryDirectory() as work:
        full, clean = os.path.join(work, "full"), os.path.join(work, "clean")
        for folder, reports in ((full, REPORTS), (clean, {"ctest": '<testsuite><testcase name="one" status="run"/></testsuite>'})):
            os.makedirs(os.path.join(folder, "results"))
            for name, text in reports.items():
                with open(os.path.join(folder, "results", name + ".xml"), "w") as file:
                    file.write(text)
        # passed: 2 of good, 1 of mixed, 2 of crashed, script; failed: 1 of mixed, crashed, cut, bad_script, never_built
        status, text = tally(script, full)
        assert text.splitlines()[-1] == "6 passed, 5 failed, 2 skipped", text
        assert status == 1
        for name in ("mixed: S.t1", "crashed: its tests passed, the program did not", "cut", "bad_script", "never_built"):
            assert f"  failed: {name}\n" in text, (name, text)
        status, text = tally(script, clean)
        assert (status, text.splitlines()[-1]) == (0, "1 passed, 0 failed"), text
        status, text = tally(script, clean, os.path.join(work, "never configured"))
        assert (status, text.splitlines()[-1]) == (1, "1 passed, 1 failed"), text
    print("the tally counts right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
