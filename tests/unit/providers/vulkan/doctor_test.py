"""The report of `tenon doctor` about the vulkan provider if Vulkan is missing, broken, or has a software device only.

Usage: doctor_test.py TOOL PROVIDER_FOLDER
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from doctor import Doctor


def main():
    tool, providers = sys.argv[1:]
    doctor = Doctor(tool, providers, "vulkan")
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
            doctor.refused(what, *no_driver, VK_ICD_FILENAMES=str(path), VK_DRIVER_FILES=str(path))

        settings = folder / "tenon.toml"
        settings.write_text('[provider.vulkan]\nlibrary = "libvulkan_absent.so.1"\n')
        settings.chmod(0o600)
        doctor.refused("no loader", "The Vulkan loader cannot be opened: libvulkan_absent.so.1", "libvulkan1",
                       TENON_CONFIG=str(settings))
        settings.write_text('[provider.vulkan]\nvalidation = "maybe"\n')
        doctor.claim("a wrong setting", "The setting validation of provider vulkan is 'maybe'", TENON_CONFIG=str(settings))
    doctor.software_device_can_be_named()
    return doctor.end()


if __name__ == "__main__":
    sys.exit(main())
