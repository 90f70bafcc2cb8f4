"""The report of `tenon doctor` about the vulkan provider if Vulkan is missing, broken, or has a software device only.

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
        environment = {**os.environ, "TENON_PLUGIN_PATH": providers, "TENON_PROVIDERS": "vulkan,cpu", **variables}
        return subprocess.run([tool, *arguments], capture_output=True, text=True, env=environment, timeout=120)

    def claim(what, *words, **variables):
        report = json.loads(run("doctor", "--json", **variables).stdout)
        if report["default_device"] != "cpu:0":
            failures.append(f"{what}: the default device is {report['default_device']}, not cpu:0")
        found = [one for one in report["candidates"] if one["provider"] == "vulkan"]
        text = json.dumps(found)
        for word in words:
            if word not in text:
                failures.append(f"{what}: '{word}' is missing in: {text}")
        return found[0]

    def refused(what, *words, **variables):
        found = claim(what, *words, **variables)
        for field in ("sentence", "remedy"):
            first = found[field].split("\n  while ")[0]  # the loader adds its context
            if len(first) == 0 or "\n" in first:
                failures.append(f"{what}: the {field} is '{found[field]}'")
        asked = run("devices", **variables)
        if "cpu:0" not in asked.stdout:
            failures.append(f"{what}: the cpu should still be there: {asked.stdout}{asked.stderr}")

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        broken = folder / "broken.json"
        broken.write_text("this is not a manifest {")
        nowhere = folder / "nowhere.json"
        nowhere.write_text(json.dumps({"file_format_version": "1.0.0",
                                       "ICD": {"library_path": str(folder / "libabsent.so"), "api_version": "1.3.0"}}))
        no_driver = ("found no driver that works (vkCreateInstance answered VK_ERROR_", "mesa-vulkan-drivers")
        for what, path in (("a broken manifest", broken), ("a driver that is not there", nowhere),
                           ("a manifest that is not there", folder / "absent.json")):
            refused(what, *no_driver, VK_ICD_FILENAMES=str(path), VK_DRIVER_FILES=str(path))

        settings = folder / "tenon.toml"
        settings.write_text('[provider.vulkan]\nlibrary = "libvulkan_absent.so.1"\n')
        settings.chmod(0o600)
        refused("no loader", "The Vulkan loader cannot be opened: libvulkan_absent.so.1", "libvulkan1",
                TENON_CONFIG=str(settings))
        settings.write_text('[provider.vulkan]\nvalidation = "maybe"\n')
        claim("a wrong setting", "The setting validation of provider vulkan is 'maybe'", TENON_CONFIG=str(settings))

    claim("this machine")
    rows = [line.split() for line in run("devices").stdout.splitlines() if line.startswith("vulkan:0 ")]
    if rows and rows[0][1] == "software":
        named = run("devices", TENON_DEVICE="vulkan:0")
        if named.returncode != 0 or "default" not in [line for line in named.stdout.splitlines() if "vulkan:0" in line][0]:
            failures.append(f"a software device can be named: {named.stdout}{named.stderr}")

    for failure in failures:
        print(failure)
    print(f"{len(failures)} things wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
