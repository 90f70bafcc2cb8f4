"""Matmul on the fake driver with cuBLASLt present, too old, or no library: right results, and a log that says why it is slow.

Usage: cublaslt_test.py TOOL PROVIDER_FOLDER FAKE_FOLDER
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from agreement_test import make_model


def main():
    tool, providers, fake = sys.argv[1:]
    failures = []

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "model.onnx"
        make_model(model)

        def compare(libraries, *words, **variables):
            environment = {**os.environ, **variables, "TENON_PLUGIN_PATH": providers, "LD_LIBRARY_PATH": str(libraries)}
            done = subprocess.run([tool, "compare", str(model), "--device", "cpu", "--device", "cuda:0"],
                                  capture_output=True, text=True, env=environment, timeout=240)
            text = done.stdout + done.stderr
            if done.returncode != 0:
                failures.append(f"exit code {done.returncode} with {variables}\n{text}")
            for word in words:
                if word not in text:
                    failures.append(f"'{word}' is missing with {libraries}, {variables}:\n{text}")
            return text

        if "slow" in compare(fake):
            failures.append("with cuBLASLt there is nothing to complain of")
        compare(fake, "plain kernel, which is slow", "libcublasLt.so.13 is cuBLASLt 11.8.3, and 12.0.0 is needed",
                FAKE_CUBLASLT_VERSION="110803")
        broken = folder / "broken"
        broken.mkdir()
        os.symlink(os.path.join(fake, "libcuda.so.1"), broken / "libcuda.so.1")
        for version in ("12", "13"):
            (broken / f"libcublasLt.so.{version}").write_text("this is no library\n" * 100)
        if not os.path.exists("/usr/local/cuda/lib64/libcublasLt.so.13"):
            compare(broken, "plain kernel, which is slow", "libcublasLt.so.13", "libcublasLt.so.12", "invalid ELF header")

    for failure in failures:
        print(failure)
    print(f"{len(failures)} things wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
