"""Runs a command if there is a device, or MPI. Else prints "skipped: no CUDA device" (no Vulkan device, no OpenCL device,
no MPI) and why (exit status 77).

Usage: on_device.py cuda|vulkan|opencl|mpi [--validation] COMMAND [ARGUMENT...]

--validation needs the Khronos validation layer of Vulkan too. REQUIRE_CUDA=1 (REQUIRE_VULKAN=1, REQUIRE_OPENCL=1,
REQUIRE_MPI=1) makes a missing device a failure.
"""
import ctypes
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../global"))
import ranks


def load(library):
    try:
        return ctypes.CDLL(library), ""
    except OSError as error:
        return None, str(error)


def why_no_cuda():
    driver, reason = load("libcuda.so.1")
    if driver is None:
        return reason
    count = ctypes.c_int(0)
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status != 0:
        return f"the driver answers {status}"
    return "" if count.value > 0 else "the driver knows no device"


class CreateInfo(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("next", ctypes.c_void_p), ("flags", ctypes.c_uint32),
                ("application", ctypes.c_void_p), ("layer_count", ctypes.c_uint32), ("layers", ctypes.c_void_p),
                ("extension_count", ctypes.c_uint32), ("extensions", ctypes.c_void_p)]


class Layer(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 256), ("specification", ctypes.c_uint32), ("version", ctypes.c_uint32),
                ("description", ctypes.c_char * 256)]


def has_validation(loader):
    count = ctypes.c_uint32(0)
    loader.vkEnumerateInstanceLayerProperties(ctypes.byref(count), None)
    layers = (Layer * count.value)()
    loader.vkEnumerateInstanceLayerProperties(ctypes.byref(count), layers)
    return any(layer.name == b"VK_LAYER_KHRONOS_validation" for layer in layers)


def why_no_vulkan(validation=None):
    loader, reason = load("libvulkan.so.1")
    if loader is None:
        return reason
    if validation and not has_validation(loader):
        return "no layer VK_LAYER_KHRONOS_validation"
    instance = ctypes.c_void_p()
    status = loader.vkCreateInstance(ctypes.byref(CreateInfo(type=1)), None, ctypes.byref(instance))
    if status != 0:
        return f"vkCreateInstance answers {status}"
    count = ctypes.c_uint32(0)
    status = loader.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
    return "" if status == 0 and count.value > 0 else "the Vulkan loader knows no device"


def ask_opencl():
    loader, reason = load("libOpenCL.so.1")
    if loader is None:
        return reason
    platforms = (ctypes.c_void_p * 16)()
    count = ctypes.c_uint32(0)
    status = loader.clGetPlatformIDs(16, platforms, ctypes.byref(count))
    if status != 0:
        return f"clGetPlatformIDs answers {status}"
    every_type = ctypes.c_uint64(0xFFFFFFFF)
    for platform in platforms[: count.value]:
        devices = ctypes.c_uint32(0)
        if loader.clGetDeviceIDs(ctypes.c_void_p(platform), every_type, 0, None, ctypes.byref(devices)) == 0:
            return ""
    return "no driver of OpenCL has a device"


def end_of(done, who):
    """A sentence about a process that failed, with the last line that it printed to stderr."""
    words = done.stderr.strip().splitlines()
    return f"{who} ended with {done.returncode}: {words[-1] if words else 'it printed nothing'}"


def why_no_opencl():
    """Asks in a child process, because drivers are vendors' code. PoCL ends a process that cannot read /sys."""
    asked = subprocess.run([sys.executable, "-B", __file__, "--ask-opencl"], capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else end_of(asked, "a process that asked for devices")


def why_no_mpi():
    """Starts one rank, since MPI's launcher ends if it cannot read the processors in /sys."""
    try:
        started = subprocess.run(["mpirun", "-n", "1", "true"], env=ranks.environment("mpi"), capture_output=True, text=True)
    except OSError as error:
        return str(error)
    return "" if started.returncode == 0 else end_of(started, "mpirun")


WHY_NOT = {"cuda": why_no_cuda, "vulkan": why_no_vulkan, "opencl": why_no_opencl, "mpi": why_no_mpi}
NAMES = {"cuda": "CUDA device", "vulkan": "Vulkan device", "opencl": "OpenCL device", "mpi": "MPI"}


def skip(kind, *options):
    """The words "skipped: no ..." if the machine has no such device; else an empty string."""
    reason = WHY_NOT[kind](*options)
    return f"skipped: no {NAMES[kind]} ({reason})" if reason else ""


def main():
    if sys.argv[1:] == ["--ask-opencl"]:
        print(ask_opencl())
        return 0
    kind, command = sys.argv[1], sys.argv[2:]
    options = [command.pop(0)] if command[0] == "--validation" else []
    reason = skip(kind, *options)
    if not reason:
        return subprocess.run(command).returncode
    print(reason)
    return 1 if os.environ.get(f"REQUIRE_{kind.upper()}") == "1" else 77


if __name__ == "__main__":
    sys.exit(main())
