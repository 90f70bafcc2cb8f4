"""Runs a command where there is a Vulkan device; says "skipped: no Vulkan device" and why elsewhere (exit status 77).

Usage: on_device.py COMMAND [ARGUMENT...]

REQUIRE_VULKAN=1 makes a missing device a failure.
"""
import ctypes
import os
import subprocess
import sys


class CreateInfo(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("next", ctypes.c_void_p), ("flags", ctypes.c_uint32),
                ("application", ctypes.c_void_p), ("layer_count", ctypes.c_uint32), ("layers", ctypes.c_void_p),
                ("extension_count", ctypes.c_uint32), ("extensions", ctypes.c_void_p)]


def why_none():
    try:
        loader = ctypes.CDLL("libvulkan.so.1")
    except OSError as error:
        return str(error)
    instance = ctypes.c_void_p()
    status = loader.vkCreateInstance(ctypes.byref(CreateInfo(type=1)), None, ctypes.byref(instance))
    if status != 0:
        return f"vkCreateInstance answers {status}"
    count = ctypes.c_uint32(0)
    status = loader.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
    return "" if status == 0 and count.value > 0 else "the Vulkan loader knows no device"


def main():
    reason = why_none()
    if not reason:
        return subprocess.run(sys.argv[1:]).returncode
    print(f"skipped: no Vulkan device ({reason})")
    return 1 if os.environ.get("REQUIRE_VULKAN") == "1" else 77


if __name__ == "__main__":
    sys.exit(main())
