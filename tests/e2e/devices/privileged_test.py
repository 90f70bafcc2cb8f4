"""A privileged process (set-user-id: AT_SECURE) ignores its environment and its user's folders.

Usage: privileged_test.py TOOL BROKEN_FOLDER.  Needs root, to make the program set-user-id.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

NOBODY = 65534


def skip(why):
    print("skipped: " + why)
    return 77


def main():
    tool, broken = sys.argv[1:3]
    if os.geteuid() != 0:
        return skip("only root can make a program set-user-id to another user")
    failures = []

    def claim(holds, what):
        if not holds:
            failures.append(what)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            return skip(f"{folder} is mounted nosuid")
        plain, privileged = folder / "plain", folder / "privileged"
        for copy in (plain, privileged):
            shutil.copy(tool, copy)
            copy.chmod(0o755)
        os.chown(privileged, NOBODY, NOBODY)
        privileged.chmod(0o4755)
        for place in ("config/tenon", "data/tenon/providers"):
            (folder / place).mkdir(parents=True)
        (folder / "config/tenon/tenon.toml").write_text('threads = "1"\n')
        shutil.copy(pathlib.Path(broken) / "libtenon_sound.so", folder / "data/tenon/providers")
        environment = {"HOME": name, "XDG_CONFIG_HOME": f"{name}/config", "XDG_DATA_HOME": f"{name}/data", "PATH": "/usr/bin:/bin",
                       "TENON_DEVICE": "nothing", "TENON_PLUGIN_PATH": broken, "TENON_VM": "sync"}

        def doctor(program):
            done = subprocess.run([program, "doctor", "--json"], capture_output=True, text=True, timeout=60, env=environment)
            return json.loads(done.stdout) if done.stdout.startswith("{") else done.stderr

        ordinary, report = doctor(plain), doctor(privileged)
        if isinstance(report, str):
            return skip(f"a set-user-id program does not start from this build folder: {report.strip()}")
        claim(not ordinary["privileged"] and any(c["path"].startswith(broken) for c in ordinary["candidates"]),
              "the same program, not privileged, listens to its environment")
        claim(any(c["path"].startswith(name) for c in ordinary["candidates"]), "and to its user's folders")
        claim({s["key"]: s["value"] for s in ordinary["settings"]}["threads"] == "1", "and to his config file")

        claim(report["privileged"], "a set-user-id program is privileged")
        levels = {s["key"]: (s["level"], s["where"]) for s in report["settings"]}
        claim(all(level != "environment" for level, where in levels.values()), f"nothing comes from the environment: {levels}")
        claim(all(not where.startswith(name) for level, where in levels.values()), f"or from a user's file: {levels}")
        claim(all(f["source"] in ("beside the library", "the system's folder") for f in report["folders"]), f"folders: {report['folders']}")
        claim(all(not c["path"].startswith((broken, name)) for c in report["candidates"]), "no plug-in from elsewhere")
        claim("nothing" not in report["default_device_error"], "TENON_DEVICE is not heard")
        text = subprocess.run([privileged, "doctor"], capture_output=True, text=True, timeout=60, env=environment).stdout
        claim("This process is privileged: environment and user folders are ignored." in text, text)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
