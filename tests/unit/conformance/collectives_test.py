"""collectives_test.py SOURCE_ROOT TENON_CONFORM PIPES [MPI]: the kit passes sound plug-ins that carry data between
processes, and finds every violation of tests/fakes/pipes/violations.def on two ranks, by its rule.

The rules that ep_api/COLLECTIVES.md gives to the kit are those that somebody breaks.
"""

import os
import re
import sys
import unittest

ROW = re.compile(r'^VIOLATION\((\w+),\s*"(J\d\d)",\s*"([^"]*)",\s*"([^"]*)"\)$', re.MULTILINE)
FAILURE = re.compile(r"^rank \d: FAILED (\S+): .*\(rule (J\d\d)\)", re.MULTILINE)
RULE = re.compile(r"^\| (J\d\d) \| (.*) \| ([^|]*) \|$", re.MULTILINE)


class Collectives(unittest.TestCase):
    def conform(self, carrier, count, *arguments):
        return ranks.run(carrier, count, [KIT, PLUGINS[carrier], *arguments], limit=120)

    def expect_to_pass(self, carrier):
        for count in (1, 2, 3):
            code, out, err = self.conform(carrier, count)
            self.assertEqual(code, 0, f"{carrier} on {count}: {out}{err}")
            self.assertRegex(out, rf"{count} ranks: on rank 0 \d+ passed, 0 failed, {5 if count == 1 else 0} skipped")

    def test_the_fake_passes(self):
        self.expect_to_pass("pipes")

    def test_mpi_passes(self):
        if "mpi" not in PLUGINS:
            self.skipTest("the plug-in for MPI was not built")
        reason = on_device.skip("mpi")
        if reason and os.environ.get("REQUIRE_MPI") != "1":
            self.skipTest(reason)
        self.expect_to_pass("mpi")

    def test_each_violation_is_found_by_its_rule(self):
        for name, rule, test, what in VIOLATIONS:
            _, out, err = self.conform("pipes", 2, "--time-limit", "5", "--set", f"break={name}")
            found = FAILURE.findall(out)  # later findings may follow from the first
            self.assertEqual(found[:1], [(test, rule)], f"{name} ({what}): {out}{err}")

    def test_the_rules_of_the_kit_are_those_that_somebody_breaks(self):
        by_kit = {rule for rule, _, by in RULE.findall(TABLE) if "kit" in by}
        self.assertGreater(len(by_kit), 8)
        self.assertEqual(by_kit, {rule for _, rule, _, _ in VIOLATIONS})


if __name__ == "__main__":
    ROOT, KIT = sys.argv[1:3]
    PLUGINS = dict(zip(("pipes", "mpi"), sys.argv[3:]))
    sys.path[:0] = [os.path.join(ROOT, "tests/unit", folder) for folder in ("global", "providers")]
    import on_device
    import ranks

    with open(os.path.join(ROOT, "tests/fakes/pipes/violations.def"), encoding="utf-8") as file:
        VIOLATIONS = ROW.findall(file.read())
    with open(os.path.join(ROOT, "ep_api/COLLECTIVES.md"), encoding="utf-8") as file:
        TABLE = file.read()
    del sys.argv[1:]
    unittest.main()
