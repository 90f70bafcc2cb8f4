"""nccl_test.py SOURCE_ROOT TENON_CONFORM NCCL PIPES CUDA: the kit passes the plug-in that joins by tickets, on the fake NCCL
and the fake driver, and says what it needs besides.
"""

import os
import sys
import unittest


class Nccl(unittest.TestCase):
    def conform(self, count, *arguments, **settings):
        return ranks.run("nccl", count, [KIT, NCCL, *arguments], limit=120, **settings)

    def test_it_passes_on_one_two_and_three_ranks(self):
        for count in (1, 2, 3):
            code, out, err = self.conform(count, "--beside", PIPES, "--devices", CUDA)
            self.assertEqual(code, 0, f"{count} ranks: {out}{err}")
            self.assertRegex(out, rf"{count} ranks: on rank 0 {6 if count == 1 else 10} passed, 0 failed")

    def test_the_kit_says_which_plug_ins_are_missing(self):
        code, out, _ = self.conform(1)
        self.assertEqual(code, 1)
        self.assertIn("FAILED world/joins: It finds no ranks and takes memory of devices: it needs two more plug-ins (rule", out)

    def test_an_old_nccl_is_refused_with_its_version(self):
        code, out, _ = self.conform(1, "--beside", PIPES, "--devices", CUDA, FAKE_NCCL_VERSION="21003")
        self.assertEqual(code, 1)
        self.assertIn("NCCL 2.10.3 is too old: 2.14 is needed (rule", out)


if __name__ == "__main__":
    ROOT, KIT, NCCL, PIPES, CUDA = sys.argv[1:6]
    sys.path.insert(0, os.path.join(ROOT, "tests/unit/global"))
    import ranks

    del sys.argv[1:]
    unittest.main()
