"""trouble_test.py PROGRAM: a rank that is silent, that differs or that is gone is told of on every other rank."""

import re
import subprocess
import sys
import unittest

import ranks


def lines_of(what, count):
    """By rank, what the program `trouble WHAT` says on `count` ranks."""
    run = subprocess.run(ranks.command(count, [PROGRAM, what]), env=ranks.environment() | {"TENON_RANK_SECONDS": "1"},
                         capture_output=True, text=True, timeout=60, check=False)
    said = {rank: [] for rank in range(count)}
    for rank, text in re.findall(r"^rank (\d+): (.*)$", run.stdout, re.M):
        said[int(rank)].append(text)
    return said, run


class Trouble(unittest.TestCase):
    def test_a_silent_rank_is_named_on_every_other_one(self):
        for count in (2, 3):
            said, run = lines_of("silent", count)
            wanted = (f"Rank {count - 1} has not come to all_reduce of f32[1000] for 'second' within 1 s.")
            for rank in range(count - 1):
                self.assertEqual(said[rank], ["ok", wanted, wanted], f"rank {rank} of {count}\n{run.stdout}{run.stderr}")

    def test_ranks_that_differ_are_both_named_on_every_rank(self):
        for count in (2, 3):
            said, run = lines_of("differs", count)
            for rank in range(count):
                self.assertEqual(said[rank][0], "ok")
                for text in said[rank][1:3]:
                    self.assertRegex(text, r"^The ranks do not agree: rank \d calls .*, and rank \d calls .*\.$",
                                     f"rank {rank} of {count}\n{run.stdout}{run.stderr}")
                    self.assertIn("all_reduce of f32[1000] for 'second'", text)
                    self.assertIn("broadcast of f32[500] from rank 0 for 'other'", text)

    def test_a_rank_that_is_gone_hangs_nobody(self):
        for count in (2, 3):
            said, run = lines_of("gone", count)  # the launcher may end all ranks, or they name the silent one
            self.assertEqual(said[count - 1], ["ok"])
            self.assertNotEqual(run.returncode, 0)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
