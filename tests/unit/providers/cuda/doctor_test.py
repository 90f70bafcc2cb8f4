"""The report of `tenon doctor` about the cuda provider on machines without a GPU, each played by a folder of libraries.

Usage: doctor_test.py TOOL PROVIDER_FOLDER FAKE_DRIVER_FOLDER
"""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from doctor import Doctor


def some_library():
    """A library that loads but is not a driver: the C library of this process."""
    return next(line.split()[-1] for line in open("/proc/self/maps") if "/libm.so" in line or "/libc.so" in line)


def main():
    tool, providers, fake = sys.argv[1:]
    doctor = Doctor(tool, providers, "cuda")
    with tempfile.TemporaryDirectory() as name:
        empty = pathlib.Path(name) / "empty"
        empty.mkdir()
        doctor.refused("no driver", "There is no NVIDIA driver here: libcuda.so.1", "Install an NVIDIA driver for CUDA",
                       LD_LIBRARY_PATH=str(empty))

        broken = pathlib.Path(name) / "broken"
        broken.mkdir()
        (broken / "libcuda.so.1").write_text("this is not a library\n" * 100)
        doctor.refused("a broken driver", "The library of the NVIDIA driver cannot be loaded", "invalid ELF header",
                       str(broken), LD_LIBRARY_PATH=str(broken))

        (broken / "libcuda.so.1").unlink()
        os.symlink(some_library(), broken / "libcuda.so.1")
        doctor.refused("another library under the driver's name", "has no function cuInit", LD_LIBRARY_PATH=str(broken))

    for what, words, variables in [
        ("an old driver", ("it knows CUDA 11.4, and 1", ".0 is needed"), {"FAKE_CUDA_VERSION": "11040"}),
        ("a driver that does not start", ("does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "started again"),
         {"FAKE_CUDA_INIT": "803"}),
        ("no device", ("no device",), {"FAKE_CUDA_INIT": "100"}),
        ("an empty list of devices", ("no device",), {"FAKE_CUDA_DEVICES": "0"}),
        ("an old device", ("compute capability 6.1, and 7.5 is the least",), {"FAKE_CUDA_CAPABILITY": "61"}),
    ]:
        doctor.claim(what, *words, LD_LIBRARY_PATH=fake, **variables)
    devices = doctor.report("the fake driver", default="cuda:0", LD_LIBRARY_PATH=fake)["devices"]
    works = [one["usable"] for one in devices if one["provider"] == "cuda"]
    if works != [True, True]:
        doctor.failures.append(f"the fake driver: two usable devices were expected: {works}")
    return doctor.end()


if __name__ == "__main__":
    sys.exit(main())
