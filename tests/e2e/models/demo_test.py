"""The demo classifies every picture of its folder, reports a file that is not a picture, and refuses wrong arguments.

Usage: demo_test.py PROGRAM DEMO_FOLDER DEVICE

The expected answers are the table in DEMO_FOLDER/images/README.md.
"""

import pathlib
import re
import subprocess
import sys


def main():
    program, folder, device = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    failures = []

    def claim(holds, what, done):
        if not holds:
            failures.append(f"{what}; it ended with {done.returncode} and said:\n{done.stdout}{done.stderr}")

    def run(*arguments):
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120)

    usual = ("--device", device, "--model", folder / "shapes.onnx")
    table = re.findall(r"^\| (\w+) \| .* \| (\w+) \|$", (folder / "images" / "README.md").read_text(), re.MULTILINE)
    expected = {f"{name}.png": answer for name, answer in table if name != "file"}
    pictures = sorted((folder / "images").glob("*.png"))
    if {picture.name for picture in pictures} != set(expected):
        failures.append("images/ and the table in its README.md name different pictures")

    done = run(*usual, *pictures)
    seen = {
        name: (answer, float(chance))
        for name, answer, chance in re.findall(r"(\S+\.png) +(\w+) +([\d.]+) %", done.stdout)
    }
    claim(done.returncode == 0 and len(seen) == len(pictures), "the demo should answer for each picture", done)
    for name, answer in expected.items():
        claim(seen.get(name, ("", 0))[0] == answer and seen[name][1] > 95, f"{name} should surely be a {answer}", done)
    claim("broken by the" not in done.stderr, "the validation layer, where it is on, should be silent", done)
    for word in ("device", "time", "report"):
        claim(f"\n{word}\n" in done.stdout, f"the demo should print its {word}", done)

    done = run(*usual, pictures[0], folder / "demo.cpp", "no_such.png")
    claim(done.returncode == 1 and pictures[0].name in done.stdout, "a bad file should not hide the good ones", done)
    claim("demo.cpp is not a picture" in done.stderr, "a text file should be called no picture", done)
    claim("cannot open no_such.png: No such file" in done.stderr, "a missing file should be named", done)

    claim(run().returncode == 2, "no picture should be an error of usage", run())
    done = run("--device", "no_such_device", "--model", folder / "shapes.onnx", pictures[0])
    claim(done.returncode == 1 and "no_such_device" in done.stderr, "an unknown device should be named", done)
    done = run("--device", device, "--model", pictures[0], pictures[0])
    claim(done.returncode == 1 and done.stderr, "a picture is not a model", done)

    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
