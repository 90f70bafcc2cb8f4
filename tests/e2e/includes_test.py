"""Every #include of ours is allowed by the include lines of the READMEs.

Usage: includes_test.py SOURCE_ROOT

After the words "include lines" a README has one line per folder, such as `core: loader primitives ep_api`, up to the
next line of another form. The root's lines are about the whole tree; those of core/README.md say which folders of core
may include each other. A folder may always include itself; the most specific line that matches a file counts. A name
that ends in `/*` (providers/*) means each folder below it; these may not include one another. `everything` allows all
folders.

In its own copy of the files, the test also plants an include from each folder into one that it may not include, and
fails if this is not detected.
"""
import os
import re
import sys

import source_tree

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
    """Returns the folder of the most specific line that matches `path`, with `*` filled in, and the folders it may
    include."""
    best = (None, [])
    for folder, allowed in rules.items():
        parts, have = folder.split("/"), path.split("/")
        if len(have) > len(parts) and all(want in ("*", part) for want, part in zip(parts, have)):
            filled = "/".join(have[: len(parts)])
            if best[0] is None or len(filled) > len(best[0]):
                best = (filled, allowed)
    return best


def judge(path, include, scope, rules):
    """Returns None if the README in `scope` allows `path` to include `include`, otherwise a sentence with the
    reason."""
    folder, allowed = rule_of(path, rules)
    if folder is None:
        return f"{path}: no include line of {scope}README.md names this folder"
    if include.startswith(folder + "/") or "everything" in allowed:
        return None
    target = rule_of(include, rules)[0] or include
    if any(target == name or include.startswith(name + "/") for name in allowed):
        return None
    return f'{path} includes "{include}"; {folder} may include {", ".join(allowed) or "nothing"}'


def forbidden_pairs(rules):
    """Folders of `rules` without a `*`, and for each the folders that it may not include."""
    plain = [folder for folder in rules if "*" not in folder]
    for folder in plain:
        for other in plain:
            related = folder.startswith(other + "/") or other.startswith(folder + "/")
            if other != folder and not related and other not in rules[folder] and "everything" not in rules[folder]:
                yield folder, other


def main():
    root = sys.argv[1]
    paths = source_tree.files_of(root)
    scopes = {}
    for path in paths:
        if os.path.basename(path) == "README.md":
            if rules := read_rules(os.path.join(root, path)):
                scopes[path[: -len("README.md")]] = rules
    if "" not in scopes or "core/" not in scopes:
        sys.exit("README.md and core/README.md must both have include lines")
    tops = {folder.split("/")[0] for folder in scopes[""]}
    files = [path for path in paths if re.search(r"\.(c|cc|cpp|h|hpp|inc|j2)$", path)]
    failures, checked, planted = [], 0, 0
    for path in files:
        text = open(os.path.join(root, path), errors="replace").read()
        for include in INCLUDE.findall(text):
            if include.split("/")[0] not in tops or "/" not in include:
                continue  # a file of this folder, or of a library
            checked += 1
            for scope, rules in scopes.items():
                if path.startswith(scope) and include.startswith(scope):
                    if failure := judge(path, include, scope, rules):
                        failures.append(failure)
    for scope, rules in scopes.items():
        for folder, other in forbidden_pairs(rules):
            planted += 1
            if judge(f"{folder}/planted.cpp", f"{other}/planted.h", scope, rules) is None:
                failures.append(f"an include of {other} planted in {folder} was not noticed")
    for failure in failures:
        print(failure)
    print(f"{checked} includes in {len(files)} files, {len(failures)} wrong; {planted} planted ones")
    return 1 if failures or checked == 0 or planted == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
