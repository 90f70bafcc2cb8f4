"""The top of the tree is what README.md's picture says, and each folder that stands for a thing opens with a README.

Usage: tree_test.py SOURCE_ROOT
"""
import os
import re
import subprocess
import sys

FILES = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "dev", ".clang-format", ".clang-tidy", ".gitignore",
         ".gitattributes"}
HIDDEN = {".ci"}
LONGEST_README = 40
MAY_BE_LONGER = {"README.md", "ep_api/README.md"}


def main():
    root = sys.argv[1]
    failures = []
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    files = [path for path in listed.stdout.splitlines() if os.path.isfile(os.path.join(root, path))]
    picture = set(re.findall(r"^([a-z_]+)/ ", open(os.path.join(root, "README.md")).read(), re.MULTILINE))
    folders = {path.split("/")[0] for path in files if "/" in path} - HIDDEN
    for folder in sorted(folders - picture):
        failures.append(f"{folder}/ stands at the top and is not in the picture of README.md")
    for folder in sorted(picture - folders):
        failures.append(f"{folder}/ is in the picture of README.md and not in the tree")
    for path in sorted(path for path in files if "/" not in path and path not in FILES):
        failures.append(f"{path} stands at the top of the tree")
    for folder in sorted(folders):
        if f"{folder}/README.md" not in files:
            failures.append(f"{folder}/ has no README.md")
    for path in files:
        if os.path.basename(path) in ("utils.h", "common.h", "helpers.h", "misc.h"):
            failures.append(f"{path}: a file is named for the one noun inside")
        if os.path.basename(path) == "README.md" and path not in MAY_BE_LONGER:
            lines = sum(1 for _ in open(os.path.join(root, path)))
            if lines > LONGEST_README:
                failures.append(f"{path} has {lines} lines; a folder's README has at most {LONGEST_README}")
    for failure in failures:
        print(failure)
    print(f"{len(files)} files looked at, {len(failures)} things wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
