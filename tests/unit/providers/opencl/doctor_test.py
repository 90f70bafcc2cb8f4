"""The report of `tenon doctor` about the opencl provider if OpenCL is missing, or has no driver, or a software device only.

Usage: doctor_test.py TOOL PROVIDER_FOLDER
"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from doctor import Doctor


def main():
    tool, providers = sys.argv[1:]
    doctor = Doctor(tool, providers, "opencl")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        settings = folder / "tenon.toml"
        settings.write_text('[provider.opencl]\nlibrary = "libOpenCL_absent.so.1"\n')
        settings.chmod(0o600)
        doctor.refused("no loader", "The ICD loader of OpenCL cannot be opened: libOpenCL_absent.so.1", "ocl-icd-libopencl1",
                       TENON_CONFIG=str(settings))
        settings.write_text('[provider.opencl]\nlibrary = "libc.so.6"\n')
        doctor.refused("no ICD loader", "libc.so.6 has no symbol clGetPlatformIDs", TENON_CONFIG=str(settings))
        doctor.refused("no driver", "found no OpenCL driver", "pocl-opencl-icd", OCL_ICD_VENDORS=str(folder) + "/")
    doctor.software_device_can_be_named()
    return doctor.end()


if __name__ == "__main__":
    sys.exit(main())
