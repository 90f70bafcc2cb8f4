"""The report of `tenon doctor` about the cuda provider on machines without a GPU, each played by a folder of libraries.

Usage: doctor_test.py TOOL PROVIDER_FOLDER FAKE_DRIVER_FOLDER
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def some_library():
    """A library that loads but is not a driver: the C library of this process."""
    return next(line.split()[-1] for line in open("/proc/self/maps") if "/libm.so" in line or "/libc.so" in line)


def main():
    tool, providers, fake = sys.argv[1:]
    failures = []

    def cuda(libraries, **variables):
        environment = {**os.environ, **variables, "TENON_PLUGIN_PATH": providers, "TENON_PROVIDERS": "cuda,cpu"}
        environment["LD_LIBRARY_PATH"] = str(libraries)
        done = subprocess.run([tool, "doctor", "--json"], capture_output=True, text=True, env=environment, timeout=120)
        report = json.loads(done.stdout)
        if report["default_device"] == "":
            failures.append(f"the cpu should still be there: {variables}")
        found = [one for one in report["candidates"] if one["provider"] == "cuda"]
        devices = [one for one in report["devices"] if one["provider"] == "cuda"]
        return {"sentence": found[0]["sentence"], "remedy": found[0]["remedy"], "devices": devices}

    def claim(found, *words, what):
        text = found["sentence"] + " " + found["remedy"] + json.dumps(found["devices"])
        for word in words:
            if word not in text:
                failures.append(f"{what}: '{word}' is missing in: {text}")

    with tempfile.TemporaryDirectory() as name:
        empty = pathlib.Path(name) / "empty"
        empty.mkdir()
        claim(cuda(empty), "There is no NVIDIA driver here: libcuda.so.1", "Install an NVIDIA driver for CUDA", what="no driver")

        broken = pathlib.Path(name) / "broken"
        broken.mkdir()
        (broken / "libcuda.so.1").write_text("this is not a library\n" * 100)
        claim(cuda(broken), "The library of the NVIDIA driver cannot be loaded", "invalid ELF header", str(broken), what="a broken driver")

        (broken / "libcuda.so.1").unlink()
        os.symlink(some_library(), broken / "libcuda.so.1")
        claim(cuda(broken), "has no function cuInit", what="another library under the driver's name")

    claim(cuda(fake, FAKE_CUDA_VERSION="11040"), "it knows CUDA 11.4, and 1", ".0 is needed", what="an old driver")
    claim(cuda(fake, FAKE_CUDA_INIT="803"), "does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "started again", what="a driver that does not start")
    claim(cuda(fake, FAKE_CUDA_INIT="100"), "no device", what="no device")
    claim(cuda(fake, FAKE_CUDA_DEVICES="0"), "no device", what="an empty list of devices")
    claim(cuda(fake, FAKE_CUDA_CAPABILITY="61"), "compute capability 6.1, and 7.5 is the least", what="an old device")
    works = cuda(fake)
    if [one["usable"] for one in works["devices"]] != [True, True]:
        failures.append(f"the fake driver: two usable devices were expected: {works}")

    for failure in failures:
        print(failure)
    print(f"{len(failures)} things wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
