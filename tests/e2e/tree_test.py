"""The top of the tree equals the picture in README.md; READMEs and the glossary follow the rules of the house.

Usage: tree_test.py SOURCE_ROOT

README: each top folder and each folder of more than five files has one, of lines of at most 120 columns. It links to
the glossary, and each of its links leads to a file. Decisions stand in the DECISIONS.md of the top folder instead.
Glossary: its entries are in alphabetical order, and the file that each names exists.
Tests: each test file is in a list of CMake, so that it runs.
"""
import os
import pathlib
import re
import sys

import source_tree

FILES = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "dev", ".clang-format", ".clang-tidy", ".gitignore",
         ".gitattributes", "pyproject.toml"}
HIDDEN = {".ci"}
WIDEST_README = 120
MOST_FILES = 5  # limit for a folder without a README
MAY_BE_WIDER = {"README.md", "ep_api/README.md"}
GLOSSARY = "ep_api/GLOSSARY.md"
STANDS_ALONE = "sdk/app/examples/"  # projects that users copy out of the tree
ENTRY = re.compile(r"^- \*\*([^*]+)\*\* \(`([^`]+)`\): \S.*")


def check_top(files, picture):
    """The root contains only known files and folders."""
    folders = {path.split("/")[0] for path in files if "/" in path} - HIDDEN
    for folder in sorted(folders - picture):
        yield f"{folder}/ stands at the top and is not in the picture of README.md"
    for folder in sorted(picture - folders):
        yield f"{folder}/ is in the picture of README.md and not in the tree"
    for path in sorted(path for path in files if "/" not in path and path not in FILES):
        yield f"{path} stands at the top of the tree"
    for folder in sorted(folders):
        if f"{folder}/README.md" not in files:
            yield f"{folder}/ has no README.md"


def check_folders(files):
    """A folder of more than five files has a README, and no file has a name that says nothing."""
    count = {}
    for path in files:
        folder = os.path.dirname(path)
        count[folder] = count.get(folder, 0) + (os.path.basename(path) != "README.md")
        if os.path.basename(path) in ("utils.h", "common.h", "helpers.h", "misc.h"):
            yield f"{path}: a file is named for the one noun inside"
    for folder, number in sorted(count.items()):
        if number > MOST_FILES and f"{folder}/README.md".lstrip("/") not in files:
            yield f"{folder}/ has {number} files and no README.md"


def check_tests(root, files):
    """Each test file is named where it runs: in a CMakeLists.txt above it or of a folder beside it, or in dev. A Python
    file may be named without the words at its ends, as in a loop over names."""
    lists = {path: open(os.path.join(root, path)).read() for path in files
             if path.endswith("CMakeLists.txt") or path == "dev"}
    for path in files:
        match = re.fullmatch(r"tests/.*?(\w+_test)\.(cpp|py)", path)
        if not match:
            continue
        names = [f"{match.group(1)}.{match.group(2)}"]
        if match.group(2) == "py":
            stem = match.group(1).removesuffix("_test")
            names += [match.group(1), stem, stem.partition("_")[2] or stem]
        word = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, names))})(?![\w.])")
        here = os.path.dirname(path)
        near = [text for folder, text in ((os.path.dirname(path), text) for path, text in lists.items())
                if here.startswith(folder) or os.path.dirname(folder) == here]
        if not any(word.search(text) for text in near):
            yield f"{path} is in no CMakeLists.txt, so it never runs"


def check_size(path, text):
    if path in MAY_BE_WIDER:
        return
    in_fence = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            in_fence = not in_fence
        if len(line) > WIDEST_README and not in_fence:
            yield f"{path}:{number} has {len(line)} columns; a line of a README has at most {WIDEST_README}"


def check_decisions(path, text):
    """Decisions of a room are in the DECISIONS.md of its top folder, not in its README."""
    if re.search(r"^(?:#+ |\*\*)?Decisions\b", text, re.MULTILINE):
        yield f"{path} has a section of decisions, which belongs into {path.split('/')[0]}/DECISIONS.md"


def check_links(root, path, text):
    if path != GLOSSARY and os.path.basename(GLOSSARY) not in text and not path.startswith(STANDS_ALONE):
        yield f"{path} has no link to {GLOSSARY}"
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"`[^`]*`", "", text)):
        if "://" not in target and not os.path.exists(os.path.join(root, os.path.dirname(path), target)):
            yield f"{path}: the link to {target} leads to nothing"


def check_glossary(root, text):
    before = ""
    for line in text.splitlines():
        if not line.startswith("- "):
            continue
        entry = ENTRY.match(line)
        if not entry:
            yield f"{GLOSSARY}: an entry is '- **word** (`file`): what it means', not '{line[:60]}'"
            continue
        word, place = entry.groups()
        if word.lower() <= before:
            yield f"{GLOSSARY}: {word} stands after {before}"
        before = word.lower()
        if not os.path.exists(os.path.join(root, place)):
            yield f"{GLOSSARY}: {word} is said to live in {place}, which does not exist"
    if not before:
        yield f"{GLOSSARY} has no entries"


def check_checks():
    """The checks detect planted faults."""
    wide = "x" * (WIDEST_README + 1)
    planted = (
        (1, check_size("a/README.md", wide)), (0, check_size("README.md", wide)),
        (1, check_folders([f"a/{i}.h" for i in range(MOST_FILES + 1)])),
        (0, check_folders([f"a/{i}.h" for i in range(MOST_FILES + 1)] + ["a/README.md"])),
        (1, check_tests("/", ["tests/unit/a/b_test.cpp"])), (0, check_tests("/", ["a/b_test.cpp"])),
        (1, check_decisions("a/README.md", "## Decisions\n")), (0, check_decisions("a/README.md", "It decides.\n")),
        (1, check_links("/", "a/README.md", "[b](nowhere/GLOSSARY.md)")), (1, check_links("/", "a/README.md", "no link")),
        (1, check_glossary("/", "- **b** (`nowhere.h`): a word.")),
        (1, check_glossary("/", "- **a** (`.`): a word.\n- b: a word.")),
        (1, check_glossary("/", "- **b** (`.`): a word.\n- **a** (`.`): a word.")), (1, check_glossary("/", "")),
    )
    for number, (wanted, found) in enumerate(planted):
        if (got := len(list(found))) != wanted:
            yield f"planted case {number}: {got} complaints, not {wanted}"


def main():
    root = sys.argv[1]
    files = source_tree.files_of(root)
    read = {path: open(os.path.join(root, path)).read() for path in files
            if path == GLOSSARY or os.path.basename(path) == "README.md"}
    picture = set(re.findall(r"^([a-z_]+)/ ", read["README.md"], re.MULTILINE))
    failures = [*check_checks(), *check_top(files, picture), *check_folders(files), *check_tests(root, files)]
    failures += check_glossary(root, read.get(GLOSSARY, ""))
    for path, text in sorted(read.items()):
        failures += [*check_links(root, path, text)]
        if path != GLOSSARY:
            failures += [*check_size(path, text), *check_decisions(path, text)]
    return source_tree.end(failures, len(files))


if __name__ == "__main__":
    sys.exit(main())
