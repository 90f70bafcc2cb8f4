"""Rust and Go bind tenon_c.h by their own tools, and run a model with the numbers of the tool.

Usage: bindings_test.py HEADER LIBRARY_FOLDER PLUGIN_FOLDER TOOL MODEL

Rust needs rustc and bindgen, Go needs go and a C compiler. A language without its tools is skipped; exits with 77 if
both are.
"""
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def rust(header, libraries, folder):
    """Builds the program in Rust."""
    subprocess.run(["bindgen", str(header), "--no-layout-tests", "--allowlist-function", "tenon_.*", "--allowlist-type", "tenon_.*",
                    "--allowlist-var", "TENON_.*", "-o", str(folder / "tenon_c.rs")], check=True)
    shutil.copy(HERE / "run_model.rs", folder)
    subprocess.run(["rustc", "-O", "-L", str(libraries), "-l", "dylib=tenon-c", "-C", f"link-arg=-Wl,-rpath-link,{libraries}",
                    "-o", str(folder / "run_rust"), str(folder / "run_model.rs")], check=True)
    return folder / "run_rust"


def go(header, libraries, folder):
    """Builds the program in Go."""
    include = folder / "include" / "tenon"
    include.mkdir(parents=True)
    shutil.copy(header, include)
    flags = {"CGO_ENABLED": "1", "CGO_CFLAGS": f"-I{include.parent}", "GOFLAGS": "-mod=mod", "GOCACHE": str(folder / "cache"),
             "GOPATH": str(folder / "path"), "CGO_LDFLAGS": f"-L{libraries} -ltenon-c -Wl,-rpath-link,{libraries}"}
    subprocess.run(["go", "build", "-o", str(folder / "run_go"), str(HERE / "run_model.go")], check=True,
                   env={**os.environ, **flags})
    return folder / "run_go"


def write_ones(path, dims):
    """Writes an .npy file of ones."""
    elements = math.prod(dims)
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(dims)}, }}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<f", 1.0) * elements)


def read_floats(path):
    """The f32 elements of an .npy file."""
    data = pathlib.Path(path).read_bytes()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return [value for (value,) in struct.iter_unpack("<f", data[start:])]


def expected(tool, plugins, model, folder):
    """The first output of the model for ones, as the tool computes it. An open size is 1."""
    environment = {**os.environ, "TENON_PLUGIN_PATH": plugins, "TENON_DEVICE": "cpu"}

    def run(*command):
        return json.loads(subprocess.run([tool, *command, "--json"], capture_output=True, text=True, check=True,
                                         env=environment).stdout)

    [given] = run("check", model)["inputs"]
    words = re.search(r"\[(.*)\]", given["type"]).group(1).split(", ")
    write_ones(folder / "ones.npy", [int(word) if word.isdigit() else 1 for word in words])
    done = run("run", model, "--input", f"{given['name']}={folder / 'ones.npy'}", "--output", str(folder / "out"))
    return read_floats(done["outputs"][0]["file"])


def main():
    header, libraries, plugins, tool, model = sys.argv[1:]
    tried = failed = 0
    for language, build, needs in [("Rust", rust, ["rustc", "bindgen"]), ("Go", go, ["go", "cc"])]:
        missing = [name for name in needs if shutil.which(name) is None]
        if missing:
            print(f"{language} is skipped: there is no {' and no '.join(missing)}")
            continue
        tried += 1
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            program = build(pathlib.Path(header), libraries, folder)
            environment = {**os.environ, "TENON_PLUGIN_PATH": plugins, "TENON_DEVICE": "cpu", "LD_LIBRARY_PATH": libraries}
            done = subprocess.run([program, model], capture_output=True, text=True, env=environment)
            values = [float(word) for word in done.stdout.split()]
            wanted = expected(tool, plugins, model, folder)
            right = len(values) == len(wanted) > 0 and all(abs(a - b) < 2e-5 for a, b in zip(values, wanted))
            refused = subprocess.run([program, "absent.onnx"], capture_output=True, text=True, env=environment)
            right = right and refused.returncode == 1 and "absent.onnx" in refused.stderr
            failed += not right
            print(f"{language}: {'ok' if right else f'printed {done.stdout}{done.stderr}, and {wanted} was expected'}")
    return 1 if failed else 0 if tried else 77


if __name__ == "__main__":
    sys.exit(main())
