"""The report of `tenon doctor` about the opencl provider if OpenCL is missing, or has no driver, or a software device only.

Usage: doctor_test.py TOOL PROVIDER_FOLDER
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    tool, providers = sys.argv[1:]
    failures = []

    def run(*arguments, **variables):
        environment = {**os.environ, "TENON_PLUGIN_PATH": providers, "TENON_PROVIDERS": "opencl,cpu", **variables}
        return subprocess.run([tool, *arguments], capture_output=True, text=True, env=environment, timeout=120)

    def refused(what, *words, **variables):
        report = json.loads(run("doctor", "--json", **variables).stdout)
        if report["default_device"] != "cpu:0":
            failures.append(f"{what}: the default device is {report['default_device']}, not cpu:0")
        found = [one for one in report["candidates"] if one["provider"] == "opencl"]
        text = json.dumps(found)
        failures.extend(f"{what}: '{word}' is missing in: {text}" for word in words if word not in text)
        if not found[0]["remedy"]:
            failures.append(f"{what}: there is no remedy")
        asked = run("devices", **variables)
        if "cpu:0" not in asked.stdout:
            failures.append(f"{what}: the cpu should still be there: {asked.stdout}{asked.stderr}")

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        settings = folder / "tenon.toml"
        settings.write_text('[provider.opencl]\nlibrary = "libOpenCL_absent.so.1"\n')
        settings.chmod(0o600)
        refused("no loader", "The ICD loader of OpenCL cannot be opened: libOpenCL_absent.so.1", "ocl-icd-libopencl1",
                TENON_CONFIG=str(settings))
        settings.write_text('[provider.opencl]\nlibrary = "libc.so.6"\n')
        refused("no ICD loader", "libc.so.6 has no symbol clGetPlatformIDs", TENON_CONFIG=str(settings))
        refused("no driver", "found no OpenCL driver", "pocl-opencl-icd", OCL_ICD_VENDORS=str(folder) + "/")

    rows = [line.split() for line in run("devices").stdout.splitlines() if line.startswith("opencl:0 ")]
    if rows and rows[0][1] == "software":
        named = run("devices", TENON_DEVICE="opencl:0")
        if named.returncode != 0 or "default" not in [line for line in named.stdout.splitlines() if "opencl:0" in line][0]:
            failures.append(f"a software device can be named: {named.stdout}{named.stderr}")

    for failure in failures:
        print(failure)
    print(f"{len(failures)} things wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
