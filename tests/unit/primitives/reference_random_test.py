"""Compares random with Philox in Python, bit for bit, and with the distributions."""
import itertools
import pathlib
import sys
import unittest

import numpy as np
from scipy import stats

import philox
import reference_driver as driver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

REFERENCE = None
STARTS = [(0, 0), (7, 3), (0x123456789ABCDEF0, 0xFEDCBA9876543210), (2 ** 64 - 1, 2 ** 64 - 2), (5, 2 ** 32 - 1)]


def generate(distribution, dtype, shape, seed, offset):
    return REFERENCE.run("random", f"distribution={distribution}", [("dst", dtype, shape)], [], [("u64", seed), ("u64", offset)])


class Random(unittest.TestCase):
    def test_philox_gives_the_known_answers(self):
        """kat_vectors of Random123, philox4x32 with 10 rounds."""
        known = [([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
                 ([philox.MASK] * 4, [philox.MASK] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
                 ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])]
        for counter, key, want in known:
            self.assertEqual(philox.philox4x32(counter, key), want)

    def test_uniform_numbers_are_the_words_of_philox(self):
        for (seed, offset), dtype in itertools.product(STARTS, ("f32", "f64", "f16", "bf16")):
            got = generate("uniform", dtype, (3, 7), seed, offset)
            np.testing.assert_array_equal(np.float64(got).ravel(), philox.uniform(dtype, seed, offset, 21))

    def test_bits_are_the_words_of_philox(self):
        for seed, offset in STARTS:
            words = np.array(philox.words(seed, offset, 24), np.uint64)
            for dtype in ("i32", "u32"):
                got = generate("bits", dtype, (3, 7), seed, offset)
                self.assertEqual(got.astype(np.uint32).ravel().tolist(), words[:21].tolist())
            for dtype in ("i64", "u64"):
                got = generate("bits", dtype, (11,), seed, offset)
                self.assertEqual(got.astype(np.uint64).tolist(), (words[0:22:2] << np.uint64(32) | words[1:22:2]).tolist())

    def test_normal_numbers_have_the_bits_of_the_formula(self):
        for (seed, offset), dtype in itertools.product(STARTS, ("f32", "f16", "bf16")):
            want = philox.normal(seed, offset, 4003)
            got = generate("normal", dtype, (4003,), seed, offset)
            want = driver.from_storage(dtype, driver.to_storage(dtype, want.astype(np.float64)), want.shape)
            np.testing.assert_array_equal(got, want)

    def test_seed_and_offset_may_lie_in_memory(self):
        for seed, offset in STARTS:
            pair = np.array([seed, offset], np.uint64).astype(np.int64)
            for distribution in ("uniform", "normal"):
                got = REFERENCE.run("random", f"distribution={distribution}", [("dst", "f32", (9,))], [("src", "i64", pair)])
                np.testing.assert_array_equal(got, generate(distribution, "f32", (9,), seed, offset))

    def test_an_offset_skips_whole_blocks(self):
        for distribution in ("uniform", "normal"):
            whole = generate(distribution, "f32", (40,), 9, 100)
            np.testing.assert_array_equal(generate(distribution, "f32", (20,), 9, 105), whole[20:])

    def test_numbers_have_their_distribution(self):
        flat, bell = generate("uniform", "f32", (40000,), 1, 2), generate("normal", "f32", (40000,), 1, 2)
        self.assertGreater(stats.kstest(flat, "uniform").pvalue, 0.01)
        self.assertGreater(stats.kstest(bell, "norm").pvalue, 0.01)
        self.assertLess(abs(np.corrcoef(bell[0::2], bell[1::2])[0, 1]), 0.02)


def tearDownModule():
    REFERENCE.close()


if __name__ == "__main__":
    REFERENCE = driver.Reference(sys.argv.pop(1))
    unittest_report.main()
