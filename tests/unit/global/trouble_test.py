"""trouble_test.py CARRIER PROGRAM: a every other rank reports a rank that is silent, that differs or that is gone."""

import re
import sys
import tempfile
import unittest

import ranks


def lines_of(what, count, seconds="1"):
    """By rank, what the program `trouble WHAT` says on `count` ranks; and the whole launch."""
    with tempfile.TemporaryDirectory() as folder:
        launch = ranks.run(CARRIER, count, [PROGRAM, what, folder], limit=100, TENON_RANK_SECONDS=seconds)
    said = {rank: [] for rank in range(count)}
    for rank, text in re.findall(r"^rank (\d+): (.*)$", launch[1], re.M):
        said[int(rank)].append(text)
    return said, launch


class Trouble(unittest.TestCase):
    def test_a_silent_rank_is_named_on_every_other_one(self):
        for count in (2, 3):
            said, launch = lines_of("silent", count)
            wanted = f"Rank {count - 1} has not called all_reduce of f32[1000] for 'second' within 1 s."
            for rank in range(count - 1):
                self.assertEqual(said[rank], ["ok", wanted, wanted], f"rank {rank} of {count}\n{launch}")

    def test_ranks_that_differ_are_both_named_on_every_rank(self):
        for count in (2, 3):
            said, launch = lines_of("differs", count)
            for rank in range(count):
                self.assertEqual(said[rank][0], "ok")
                for text in said[rank][1:3]:
                    self.assertRegex(text, r"^The ranks do not agree: rank \d calls .*, and rank \d calls .*\.$",
                                     f"rank {rank} of {count}\n{launch}")
                    self.assertIn("all_reduce of f32[1000] for 'second'", text)
                    self.assertIn("broadcast of f32[500] from rank 0 for 'other'", text)

    def test_ranks_that_run_different_programs_are_both_named_on_every_rank(self):
        for count in (2, 3):
            said, launch = lines_of("compiled", count, seconds="20")
            for rank in range(count):
                self.assertEqual(said[rank][0], "ok", launch)
                self.assertRegex(said[rank][1], r"^The ranks do not agree: rank \d calls .*, and rank \d calls .*\.$",
                                 f"rank {rank} of {count}\n{launch}")
                for part in ("all_reduce of f32[1000] for 'to_global'", "reduce_scatter of f32 for 'relu'"):
                    self.assertIn(part, said[rank][1])

    def test_a_rank_that_is_gone_hangs_nobody(self):
        for count in (2, 3):
            said, launch = lines_of("gone", count)
            self.assertEqual(said[count - 1], ["ok"])
            if CARRIER == "mpi":  # the launcher may end all ranks before they can tell
                self.assertNotEqual(launch[0], 0)
                continue
            for rank in range(count - 1):
                wanted = f"Rank {count - 1} is gone."
                self.assertEqual(said[rank], ["ok", wanted, wanted], f"rank {rank} of {count}\n{launch}")

    def test_a_rank_that_is_gone_is_the_error_of_what_was_begun(self):
        for count in (2, 3):
            said, launch = lines_of("ahead", count, seconds="5")
            self.assertEqual(said[count - 1], ["ok"], launch)
            if CARRIER == "mpi":
                self.assertNotEqual(launch[0], 0)
                continue
            for rank in range(count - 1):
                self.assertEqual(said[rank][0], "ok", launch)
                self.assertEqual(said[rank][1:], [f"backward: Rank {count - 1} is gone."], launch)

    def test_a_rank_that_only_gives_is_told_of_one_that_is_gone(self):
        for count in (2, 3):
            said, launch = lines_of("gives", count, seconds="5")
            self.assertEqual(said[count - 1], ["ok"], launch)
            if CARRIER == "mpi":
                self.assertNotEqual(launch[0], 0)
                continue
            self.assertEqual(said[0], ["ok", f"Rank {count - 1} is gone."], launch)
            if count == 3:
                self.assertEqual(said[1], ["ok", "ok"], launch)

    def test_a_rank_that_ends_does_not_wait_for_its_threads(self):
        said, launch = lines_of("leaves", 2, seconds="0")  # they would wait for ever
        for rank in range(2):
            self.assertEqual(said[rank][0], "ok", launch)


if __name__ == "__main__":
    CARRIER, PROGRAM = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
