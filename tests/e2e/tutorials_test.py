"""Runs the blocks of a tutorial in the order of the page, in an empty folder.

Usage: tutorials_test.py TUTORIAL.md SOURCE_ROOT [--package BUILD_FOLDER CMAKE CXX_COMPILER] [--python PYTHON]

A block is marked with its language and an optional file name. Only a file name: the block is written into that file.
`diff`: it is applied to the named folder. `sh`: bash runs it. `python`: the interpreter runs all blocks of the page as
one program, and mypy --strict must accept it if it is installed. `text`: the exact output of the block before it.
--package installs the build for $tenon. Other blocks are for readers.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "PYTHONPATH", "TENON_PLUGIN_PATH", "TENON_PROVIDERS",
        "TENON_THREADS")
BETWEEN = "---- the next block ----"


class Page:
    def __init__(self, args, work):
        self.args, self.work = args, work
        with open(args.tutorial) as file:
            self.blocks = BLOCK.findall(file.read())
        self.environment = {key: value for key, value in os.environ.items() if key in KEPT or key.startswith("OMPI_")}
        self.environment["checkout"] = os.path.abspath(args.source)

    def run(self, *command, **more):
        done = subprocess.run(command, cwd=self.work, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
        assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def install(self):
        build, cmake, compiler = self.args.package
        prefix = os.path.join(self.work, "..", "installed")
        self.run(cmake, "--install", build, "--prefix", prefix)
        self.environment.update(tenon=os.path.abspath(prefix), CXX=compiler, CMAKE_GENERATOR="Ninja")

    def python_outputs(self):
        """The output of each Python block, in one run of all of them."""
        texts = [text for language, name, text in self.blocks if language == "python" and not name]
        if not texts:
            return iter(())
        with open(os.path.join(self.work, "page.py"), "w") as file:
            file.write("\n".join(texts))
        checked = subprocess.run([self.args.python, "-m", "mypy", "--version"], capture_output=True)
        if checked.returncode == 0:
            self.environment["MYPYPATH"] = self.environment.get("PYTHONPATH", "")
            self.run(self.args.python, "-m", "mypy", "--strict", "page.py")
        else:
            print("  mypy is not installed, so types are not checked")
        printed = self.run(self.args.python, "-B", "-c", f"\nprint({BETWEEN!r}, flush=True)\n".join(texts))
        return iter(printed.split(BETWEEN + "\n"))

    def go(self):
        printed, outputs, ran = "", None, 0
        for number, (language, name, text) in enumerate(self.blocks, 1):
            where = f"block {number} ({language} {name})"
            if language == "diff":
                self.run("git", "apply", "--directory", name, "-", input=text)
            elif name:
                with open(os.path.join(self.work, name), "w") as file:
                    file.write(text)
            elif language == "sh":
                printed = self.run("bash", "-euo", "pipefail", "-c", text)
            elif language == "python":
                outputs = outputs or self.python_outputs()
                printed = next(outputs)
            elif language == "text":
                assert printed == text, f"{where}: the page says\n{text}and the block before it printed\n{printed}"
            else:
                continue
            ran += 1
            print("  ok  ", where)
        assert ran > 3, f"only {ran} blocks were run"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tutorial")
    parser.add_argument("source")
    parser.add_argument("--package", nargs=3)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = os.path.join(folder, "work")
        os.mkdir(work)
        page = Page(args, work)
        try:
            if args.package:
                page.install()
            page.go()
        except AssertionError as problem:
            print("  FAIL", problem)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
