"""Loads plug-ins of one minor into hosts of another, in both directions.

Usage: minors_test.py SOURCE_ROOT HOST_FOLDER

HOST_FOLDER holds abi_host_trial-1, abi_host_trial-2 and abi_host_release (tests/abi/host.cpp built for each). The plug-ins
are the frozen binaries of releases, both trial minors as if frozen, and the sample of today built for each minor.
"""
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

import frozen
import header
import trial

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import unittest_report

ROOT, HOSTS = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
MACHINE = platform.machine()
# Results of a host of the second minor with a plug-in that has the additions, and with one that has none.
FILLED = {"trial_cost": 66, "trial_bytes": 77, "trial_units": 55, "trial_greet": 42, "trial_echo": 42}
ABSENT = dict.fromkeys(FILLED, 0)


class Minors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.release = header.defined_number(ROOT, "EP_ABI_LATEST_MINOR")
        cls.minors = {"trial-1": trial.FIRST, "trial-2": trial.SECOND, "release": cls.release}
        for name, minor in cls.minors.items():
            sources = os.path.join(cls.folder.name, "sources", name)
            trial.overlay(ROOT, sources)
            frozen.compile_sample(sources, minor, cls.plugin("today", name))
        trials = trial.freeze(ROOT, cls.folder.name)
        for minor, folder in trials.items():
            frozen.add_binary(folder, minor)
        cls.frozen = {**frozen.folders(ROOT), **trials}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def plugin(cls, age, name):
        return os.path.join(cls.folder.name, age, name, "libtenon_sample.so")

    def frozen_plugin(self, minor):
        path = os.path.join(self.frozen[minor], MACHINE, "libtenon_sample.so")
        if not os.path.exists(path):
            print(f"skipped: no binary was frozen for {MACHINE}")
            self.skipTest(f"no binary was frozen for {MACHINE}")
        return path

    def run_host(self, host, plugin):
        result = subprocess.run([os.path.join(HOSTS, "abi_host_" + host), plugin], capture_output=True, text=True)
        seen = dict(line.partition(" ")[::2] for line in result.stdout.splitlines())
        return result.returncode, seen, result.stdout + result.stderr

    def works(self, host, plugin, minor):
        status, seen, text = self.run_host(host, plugin)
        self.assertEqual(status, 0, text)
        self.assertIn("worked", seen)
        self.assertEqual((int(seen["host_minor"]), int(seen["plugin_minor"])), (self.minors[host], minor))
        smaller = min(self.minors[host], minor)
        if smaller >= trial.FIRST:
            golden = frozen.golden(self.frozen[smaller])
            for key, struct in (("info_size", "ep_device_info"), ("support_size", "ep_support_info"),
                                ("primitive_size", "ep_primitive_info")):
                self.assertEqual(seen[key], golden[struct].split("size ")[1].split(",")[0], f"{struct}: the smaller of both is filled")
        return {key: int(value) for key, value in seen.items() if key.startswith("trial_")}

    def test_the_old_sample_under_the_new_host(self):
        self.assertEqual(self.works("trial-2", self.frozen_plugin(trial.FIRST), trial.FIRST), ABSENT)

    def test_the_new_sample_under_the_old_host(self):
        self.assertEqual(self.works("trial-1", self.frozen_plugin(trial.SECOND), trial.SECOND), {})

    def test_each_sample_under_the_host_of_its_minor(self):
        self.assertEqual(self.works("trial-1", self.frozen_plugin(trial.FIRST), trial.FIRST), {})
        self.assertEqual(self.works("trial-2", self.frozen_plugin(trial.SECOND), trial.SECOND), FILLED)

    def test_the_sample_of_today_built_for_either_minor_under_either_host(self):
        self.assertEqual(self.works("trial-1", self.plugin("today", "trial-1"), trial.FIRST), {})
        self.assertEqual(self.works("trial-1", self.plugin("today", "trial-2"), trial.SECOND), {})
        self.assertEqual(self.works("trial-2", self.plugin("today", "trial-1"), trial.FIRST), ABSENT)
        self.assertEqual(self.works("trial-2", self.plugin("today", "trial-2"), trial.SECOND), FILLED)

    def test_what_echoes_has_asked_the_newer_hosts_new_service(self):
        """21 is returned doubled only if the plug-in called the slot that the second minor appended to ep_host."""
        self.assertEqual(self.works("trial-2", self.frozen_plugin(trial.SECOND), trial.SECOND)["trial_echo"], 2 * 21)

    def test_a_release_takes_plugins_of_its_own_minor_and_no_trial(self):
        self.works("release", self.plugin("today", "release"), self.release)
        for minor in (trial.FIRST, trial.SECOND):
            status, seen, text = self.run_host("release", self.frozen_plugin(minor))
            self.assertEqual(status, 3, text)
            self.assertIn(f"it was built for ABI 0.{minor}, this host speaks 0.{self.release} (rule N02).", seen["refused"])

    def test_no_trial_host_takes_a_plugin_of_a_release(self):
        for host in ("trial-1", "trial-2"):
            status, seen, text = self.run_host(host, self.plugin("today", "release"))
            self.assertEqual(status, 3, text)
            self.assertIn(f"it was built for ABI 0.{self.release}", seen["refused"])

    def test_frozen_releases_load_under_the_host_of_today(self):
        for minor in frozen.folders(ROOT):
            status, _, text = self.run_host("release", self.frozen_plugin(minor))
            self.assertEqual(status, 0 if minor == self.release else 3, text)


if __name__ == "__main__":
    if shutil.which("gcc") is None:
        print("skipped: gcc is not installed")
        sys.exit(77)
    unittest_report.main()
