"""Today's ep_api.h, projected to each frozen minor, equals the frozen one, and the frozen one is sound.

Usage: gate_test.py SOURCE_ROOT
"""
import os
import pathlib
import re
import sys
import tempfile
import unittest

import anchor
import frozen
import header
import layout
import trial

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import unittest_report

ROOT = os.path.abspath(sys.argv.pop(1))
REMEDY = ("\nNothing frozen may change. An addition stands at the end of its struct, inside #if EP_ABI_TARGET_MINOR >= N. "
          "While the version is 0.x, ./dev freeze --again makes a deliberate break.")


class Gate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        trial.overlay(ROOT, cls.folder.name)
        cls.trials = trial.freeze(ROOT, os.path.join(cls.folder.name, "frozen"))
        cls.frozen = {**frozen.folders(ROOT), **cls.trials}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def header_of(self, minor):
        return self.folder.name if minor >= trial.FIRST else ROOT

    def check_layout(self, compiler):
        if compiler.why_not:
            print(f"skipped: {compiler.name}: {compiler.why_not}")
            self.skipTest(compiler.why_not)
        for minor, folder in self.frozen.items():
            problems = frozen.problems_of(self.header_of(minor), minor, folder, [compiler], abidiff=False)
            if problems:
                self.fail("\n".join([f"minor {minor:#x}:", *problems]) + REMEDY)

    def need_abigail(self):
        if anchor.why_not():
            print(f"skipped: {anchor.why_not()}")
            self.skipTest(anchor.why_not())

    def test_abidiff_without_suppressions_sees_no_difference(self):
        self.need_abigail()
        for minor, folder in self.frozen.items():
            problems = frozen.problems_of(self.header_of(minor), minor, folder, [])
            if problems:
                self.fail("\n".join([f"minor {minor:#x}:", *problems]) + REMEDY)

    def test_a_build_without_debug_information_fails_with_its_own_message(self):
        self.need_abigail()
        problems = frozen.problems_of(ROOT, trial.FIRST, self.trials[trial.FIRST], [], debug="-g0")
        self.assertEqual(len(problems), 1, problems)
        self.assertIn("no debug information (DWARF)", problems[0])
        self.assertIn("-g", problems[0])

    def test_without_debug_information_abidiff_would_miss_a_changed_signature(self):
        self.need_abigail()
        with tempfile.TemporaryDirectory() as work:
            trial.plain(ROOT, work)
            before = {debug: anchor.dump(anchor.build(header.Projection(work, trial.FIRST), work, debug=debug))
                      for debug in ("-g", "-g0")}
            path = os.path.join(work, "ep_api/ep_api.h")
            frozen.write(path, frozen.read(path).replace("int64_t delta);", "int32_t delta);"))
            seen = {}
            for debug, dumped in before.items():
                library = anchor.build(header.Projection(work, trial.FIRST), work, debug=debug)
                seen[debug] = anchor.differences(dumped, library)
        self.assertTrue(any("device_memory_report" in line for line in seen["-g"]), seen["-g"])
        self.assertEqual(seen["-g0"], [])

    def test_every_type_of_the_header_is_anchored(self):
        self.need_abigail()
        for minor, folder in self.frozen.items():
            projection = header.Projection(self.header_of(minor), minor)
            dumped = frozen.types(folder, minor)
            self.assertEqual(anchor.unseen(projection, dumped), [])
            for name in projection.opaque:
                self.assertIn(f"name='{name}'", dumped)

    def test_the_parser_misses_no_type_of_the_source(self):
        text = frozen.read(os.path.join(ROOT, "ep_api/ep_api.h"))
        declared = set(re.findall(r"^typedef (?:struct|union) (\w+)", text, re.MULTILINE))
        declared |= set(re.findall(r"^}? ?(?:typedef \w+ |struct )?(ep_\w+)(?: {|;)", text, re.MULTILINE))
        projection = header.Projection(ROOT, header.defined_number(ROOT, "EP_ABI_LATEST_MINOR"))
        self.assertGreater(len(declared), 40)
        self.assertEqual(declared - {*projection.structs, *projection.opaque, *projection.typedefs}, set())

    def test_a_later_minor_only_appends(self):
        released = [frozen.golden(folder) for folder in frozen.folders(ROOT).values()]
        trials = [frozen.golden(folder) for folder in self.trials.values()]
        for older, newer in [*zip(released, released[1:]), trials]:
            self.assertEqual(layout.breaks(older, newer), [])

    def test_every_struct_that_may_grow_grew_in_the_second_trial_minor(self):
        first, second = (frozen.golden(folder) for folder in self.trials.values())
        growing = [name for name, value in first.items() if value.startswith("growing struct")]
        self.assertEqual(sorted(growing), sorted(trial.MEMBERS))
        for name in growing:
            self.assertGreater(layout.size_of(second[name]), layout.size_of(first[name]), name)

    def test_nothing_frozen_was_touched_by_hand(self):
        self.assertEqual(frozen.read(os.path.join(ROOT, "ep_api/abi", frozen.MANIFEST)), frozen.manifest_text(ROOT),
                         "ep_api/abi is written by ./dev freeze alone.")
        self.assertEqual(frozen.read(os.path.join(ROOT, "ep_api", frozen.SIZES)), frozen.sizes_text(ROOT))

    def test_freezing_the_frozen_sources_again_gives_the_same_bytes(self):
        for minor, folder in frozen.folders(ROOT).items():
            if frozen.read(os.path.join(folder, "toolchain.txt")) != frozen.toolchain():
                print(f"skipped: 0.{minor} was frozen with another tool chain than this machine's")
                self.skipTest("another tool chain")
            with tempfile.TemporaryDirectory() as work:
                again = os.path.join(work, "again")
                frozen.write_minor(folder, minor, again)
                frozen.add_binary(again, minor)
                for parent, _, names in os.walk(folder):
                    for name in names:
                        path = os.path.relpath(os.path.join(parent, name), folder)
                        with open(os.path.join(folder, path), "rb") as one, open(os.path.join(again, path), "rb") as other:
                            self.assertEqual(one.read(), other.read(), f"0.{minor}/{path}")

    def test_the_frozen_binaries_are_small(self):
        total = 0
        for folder in frozen.folders(ROOT).values():
            for parent, _, names in os.walk(folder):
                total += sum(os.path.getsize(os.path.join(parent, name)) for name in names if name.endswith(".so"))
        self.assertTrue(0 < total < 100_000, total)


def add_layout_tests():
    for compiler in layout.all_compilers():
        name = compiler.name.replace(" ", "_").replace("+", "p")
        setattr(Gate, f"test_layout_{name}", lambda self, compiler=compiler: self.check_layout(compiler))


if __name__ == "__main__":
    add_layout_tests()
    unittest_report.main()
