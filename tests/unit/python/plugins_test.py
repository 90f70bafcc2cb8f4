"""A plug-in that comes as a Python package is listed after `pip install`, and gone after `pip uninstall`.

usage: plugins_test.py LIBTENON_SAMPLE.so

The package is made of the plug-in of this build, by the pyproject.toml that `tenon new-provider` writes; pip needs no network."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import venv
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

PLUGIN = pathlib.Path(sys.argv.pop(1)).resolve()
PROJECT = pathlib.Path(__file__).resolve().parents[3] / "sdk/app/examples/provider/pyproject.toml"
LIST = "import tenon; print(*(device.spelling for device in tenon.devices()))"
SOURCES = """import tenon
for each in tenon._tenon._report()["candidates"]:
    print(each["provider"], each["source"], each["sentence"], sep=": ")"""


def make_wheel(folder):
    """The wheel that pip builds from the project and local files."""
    text = PROJECT.read_text()
    name, version, place = (re.search(rf'^{key} = "(.*?)"', text, re.MULTILINE)[1] for key in ("name", "version", "wheel.install-dir"))
    stem = f"{name.replace('-', '_')}-{version}"
    path = pathlib.Path(folder) / f"{stem}-py3-none-{sysconfig.get_platform().replace('-', '_')}.whl"
    files = {f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
             f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-any\n"}
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(PLUGIN, f"{place}/{PLUGIN.name}")
        for file, content in files.items():
            wheel.writestr(file, content)
        listed = [*files, f"{place}/{PLUGIN.name}", f"{stem}.dist-info/RECORD"]
        wheel.writestr(listed[-1], "".join(f"{file},,\n" for file in listed))
    return name, path


@unittest.skipUnless(importlib.util.find_spec("pip"), "pip is not installed")
class PlugIns(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.addCleanup(self.holder.cleanup)
        self.folder = pathlib.Path(self.holder.name)
        self.environment = {**os.environ, "TENON_PROVIDERS": "cpu,sample", "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run_python(self, python, *words, **options):
        done = subprocess.run([str(python), *words], capture_output=True, text=True, env=self.environment, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_come_and_go_with_their_package(self):
        venv.create(self.folder / "venv", with_pip=False, symlinks=True)
        python = self.folder / "venv/bin/python"
        name, wheel = make_wheel(self.folder)
        pip = ("-m", "pip", "--python", str(python), "--quiet")
        self.assertEqual(self.run_python(python, "-B", "-c", LIST), "cpu:0\n")
        self.run_python(sys.executable, *pip, "install", "--no-index", "--no-deps", str(wheel))
        self.assertEqual(self.run_python(python, "-B", "-c", LIST).split(), ["cpu:0", "sample:0"])
        self.assertIn("sample: a package: ", self.run_python(python, "-B", "-c", SOURCES))
        computed = self.run_python(python, "-B", "-c", "import tenon; x = tenon.tensor([-1.0, 2.0], device='sample'); print((x.relu() * 3).tolist(), x.device)")
        self.assertEqual(computed, "[0.0, 6.0] sample:0\n")
        self.run_python(sys.executable, *pip, "uninstall", "--yes", name)
        self.assertEqual(self.run_python(python, "-B", "-c", LIST), "cpu:0\n")

    def place(self):
        """A folder of packages with one plug-in, which is in Python's path."""
        packages = self.folder / "packages"
        (packages / "tenon_plugins").mkdir(parents=True)
        shutil.copy(PLUGIN, packages / "tenon_plugins")
        return packages

    def test_that_others_can_write_are_not_loaded(self):
        packages = self.place()
        self.environment["PYTHONPATH"] += f":{packages}"
        self.assertEqual(self.run_python(sys.executable, "-B", "-c", LIST).split(), ["cpu:0", "sample:0"])
        (packages / "tenon_plugins").chmod(0o777)
        self.assertEqual(self.run_python(sys.executable, "-B", "-c", LIST), "cpu:0\n")
        self.assertIn("can be written by anyone", self.run_python(sys.executable, "-B", "-c", SOURCES))

    def test_in_the_current_folder_are_not_found(self):
        self.assertEqual(self.run_python(sys.executable, "-B", "-c", LIST, cwd=self.place()), "cpu:0\n")


if __name__ == "__main__":
    unittest_report.main()
