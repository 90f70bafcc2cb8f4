"""Every #include of ours is allowed by the include lines of README.md.

Usage: includes_test.py SOURCE_ROOT

README.md has one line per folder between the words "include lines" and the next blank line after them, such as
`core: loader primitives ep_api`. A folder may always include itself; the most specific line that matches a file counts.
A name that ends in `/*` (providers/*) stands for each folder below, which may not include one another. `everything`
allows all folders.
"""
import os
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
LINE = re.compile(r"^([a-z_/*]+):((?: [a-z_/*]+)+)$")


def read_rules(readme):
    rules, inside = {}, False
    for line in open(readme):
        if "include lines" in line:
            inside = True
        match = LINE.match(line.rstrip()) if inside else None
        if match:
            rules[match.group(1)] = [] if match.group(2).strip() == "nothing" else match.group(2).split()
        elif rules:
            break
    return rules


def rule_of(path, rules):
    """The folder of the most specific line that `path` falls under, `*` filled in, and what it may include."""
    best = (None, [])
    for folder, allowed in rules.items():
        parts, have = folder.split("/"), path.split("/")
        if len(have) > len(parts) and all(want in ("*", part) for want, part in zip(parts, have)):
            filled = "/".join(have[: len(parts)])
            if best[0] is None or len(filled) > len(best[0]):
                best = (filled, allowed)
    return best


def main():
    root = sys.argv[1]
    rules = read_rules(os.path.join(root, "README.md"))
    if not rules:
        sys.exit("README.md has no include lines")
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    files = [path for path in listed.stdout.splitlines() if re.search(r"\.(c|cc|cpp|h|hpp|inc|j2)$", path)]
    tops = {folder.split("/")[0] for folder in rules}
    failures, checked = [], 0
    for path in files:
        if not os.path.isfile(os.path.join(root, path)):
            continue
        folder, allowed = rule_of(path, rules)
        text = open(os.path.join(root, path), errors="replace").read()
        if folder is None:
            failures.append(f"{path}: no include line of README.md speaks of this folder")
            continue
        for include in INCLUDE.findall(text):
            if include.split("/")[0] not in tops or "/" not in include:
                continue  # a file beside this one, or a library's
            checked += 1
            if include.startswith(folder + "/") or "everything" in allowed:
                continue
            target = rule_of(include, rules)[0] or include
            if not any(target == name or include.startswith(name + "/") for name in allowed):
                failures.append(f'{path} includes "{include}"; {folder} may include {", ".join(allowed) or "nothing"}')
    for failure in failures:
        print(failure)
    print(f"{checked} includes in {len(files)} files, {len(failures)} not allowed")
    return 1 if failures or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
