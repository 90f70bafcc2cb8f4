"""Runs a command where there is a CUDA device; says "skipped: no CUDA device" and why elsewhere (exit status 77).

Usage: on_device.py [--require-cuda] COMMAND [ARGUMENT...]

With --require-cuda, or REQUIRE_CUDA=1, a missing device is a failure.
"""
import ctypes
import os
import subprocess
import sys


def why_none():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return str(error)
    status = driver.cuInit(0)
    count = ctypes.c_int(0)
    if status == 0:
        status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status != 0:
        return f"the driver answers {status}"
    return "" if count.value > 0 else "the driver knows no device"


def main():
    arguments = sys.argv[1:]
    required = os.environ.get("REQUIRE_CUDA", "") not in ("", "0")
    if arguments and arguments[0] == "--require-cuda":
        required = True
        arguments = arguments[1:]
    if not arguments:
        print(__doc__)
        return 2
    reason = why_none()
    if not reason:
        return subprocess.run(arguments).returncode
    print(f"skipped: no CUDA device ({reason})")
    return 1 if required else 77


if __name__ == "__main__":
    sys.exit(main())
