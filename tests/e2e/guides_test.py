"""README.md and the guides name files, settings, commands and functions that exist; the picture of speed fits its table.

Usage: guides_test.py SOURCE_ROOT

The names stand in backticks or in blocks of `sh`. A path whose first folder is a top folder must exist. A TENON_ variable is a
row of settings.def. `./dev NAME` is a command of dev, and `tenon NAME --option` one of the tool. Any other identifier is a word
of a source file. In core/TOUR.md an entry "- `FILE`: ..." names only words of FILE, of the row or of another file that it
names. The test also plants one wrong name of each kind and fails if it is not noticed.
"""
import os
import re
import subprocess
import sys

import source_tree

PAGES = ("README.md", "sdk/app/GUIDE.md", "sdk/app/DEPLOY.md", "core/TOUR.md", "sdk/FIRST_CHANGE.md")
TOUR = "core/TOUR.md"
WIDEST = 120
MOST_LINES = {"README.md": 150}
SOURCES = (".c", ".h", ".cpp", ".def", ".py", ".yaml", ".j2", ".cmake", ".txt", ".in", ".map", ".proto")
OF_OTHERS = {"dlopen", "relu6"}  # functions of the system that a file reaches through a library


class Tree:
    def __init__(self, root):
        self.files = set(source_tree.files_of(root))
        self.folders = {"/".join(path.split("/")[:depth]) for path in self.files for depth in range(1, path.count("/") + 1)}
        self.tops = {folder for folder in self.folders if "/" not in folder}
        self.read = lambda path: open(os.path.join(root, path), errors="replace").read()
        self.settings = set(re.findall(r'^TENON_SETTING\(\w+, "(TENON_\w+)"', self.read("loader/settings/settings.def"), re.MULTILINE))
        self.dev = set(re.findall(r"^cmd_([a-z-]+)\(\)", self.read("dev"), re.MULTILINE))
        sources = [path for path in self.files if path.endswith(SOURCES) and not path.startswith("ep_api/abi/")]
        self.words = {word for path in sources if path != "tests/e2e/guides_test.py" for word in re.findall(r"\w+", self.read(path))}
        tool = "\n".join(self.read(path) for path in sources if path.startswith("sdk/cli/"))
        self.tool = set(re.findall(r'"([a-z-]+)"', tool))
        self.options = set(re.findall(r"--[a-z-]+", tool))

    def has(self, path, page):
        beside = os.path.normpath(os.path.join(os.path.dirname(page), path))
        return any(each.rstrip("/") in self.files | self.folders for each in (path, beside))


def check_commands(tree, text):
    for name in re.findall(r"\./dev ([a-z-]+)", text):
        if name not in tree.dev:
            yield f"./dev has no command {name}"
    for name, rest in re.findall(r"(?:^|[;&] )tenon ([a-z][a-z-]*)([^#\n]*)", text, re.MULTILINE):
        if name not in tree.tool:
            yield f"tenon has no command {name}"
        yield from (f"tenon has no option {option}" for option in re.findall(r"--[a-z-]+", rest) if option not in tree.options)
    for name in re.findall(r"\bTENON_[A-Z_]+", text):
        if name not in tree.settings:
            yield f"{name} is not a setting"


def check_span(tree, page, span):
    """Yields the faults of the text between two backticks."""
    if re.search(r"(^|[ /])(dev|tenon) |TENON_", span):
        yield from check_commands(tree, span)
    elif re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", span):
        if span.split("/")[0] in tree.tops and not tree.has(span, page):
            yield f"there is no {span}"
    elif re.fullmatch(r"[\w-]+\.(md|py|cpp|h|def|yaml)", span):
        if not tree.has(span, page) and not any(path.endswith("/" + span) for path in tree.files) and span not in ("ops.h", "ops.cpp"):
            yield f"there is no file {span}"
    elif re.fullmatch(r"[A-Za-z_]\w*(::\w+)*(\(.*\))?", span) and span.split("(")[0].split("::")[-1] not in tree.words | OF_OTHERS:
        yield f"no source has the word {span}"


def check_page(tree, page, text):
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"`([^`]+)`", prose):
        yield from (f"{page}: {problem}" for problem in check_span(tree, page, " ".join(span.split())))
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield from (f"{page}: {problem}" for problem in check_commands(tree, block))
    lines = text.splitlines()
    yield from (f"{page}:{number} has more than {WIDEST} columns" for number, line in enumerate(lines, 1) if len(line) > WIDEST)
    if len(lines) > MOST_LINES.get(page, len(lines)):
        yield f"{page} has {len(lines)} lines; it may have {MOST_LINES[page]}"
    if "GLOSSARY.md" not in text:
        yield f"{page} has no link to the glossary"


def check_tour(tree, text):
    """The names of each entry are words of the files that the entry names."""
    for entry in re.findall(r"^- (`.*?)(?=^- |\n\n|\Z)", text, re.MULTILINE | re.DOTALL):
        spans = re.findall(r"`([^`]+)`", entry)
        files = [span for span in spans if span in tree.files]
        words = {word for file in files for word in re.findall(r"\w+", tree.read(file))} | OF_OTHERS
        for span in spans:
            if re.fullmatch(r"[A-Za-z_]\w*(::\w+)*", span) and not span.startswith("tenon::") and not set(span.split("::")) <= words:
                yield f"{TOUR}: {span} is in none of {', '.join(files)}"


def check_checks(tree):
    """One wrong name of each kind is noticed."""
    fine = "[words](GLOSSARY.md)\n"
    for wrong in ("`core/nowhere.cpp`", "`TENON_NOTHING=1`", "`./dev nothing`", "`tenon nothing-at-all`", "`tenon run --no-such-thing`",
                  "`no_such_function_here`", "`nowhere_at_all.md`", "```sh\n./dev nothing\n```", "x" * (WIDEST + 1)):
        if len(list(check_page(tree, TOUR, f"{fine}{wrong}\n"))) != 1:
            yield f"planted in a page, this was not noticed once: {wrong}"
    if list(check_page(tree, TOUR, fine + "`core/vm/submit.cpp`: `derive_dependences`, `TENON_LOG=vm`, `./dev quick`, `tenon run`\n")):
        yield "a page without a wrong name is refused"
    if len(list(check_tour(tree, "- `core/vm/submit.cpp`: `run_prepared`, which is elsewhere.\n"))) != 1:
        yield "a function of another file, planted in the tour, was not noticed"


def main():
    root = sys.argv[1]
    tree = Tree(root)
    failures = list(check_checks(tree))
    for page in PAGES:
        failures += check_page(tree, page, tree.read(page))
    failures += check_tour(tree, tree.read(TOUR))
    drawn = subprocess.run([sys.executable, "-B", os.path.join(root, "benchmarks/report/draw_speed.py"), "--check"], capture_output=True, text=True)
    if drawn.returncode != 0:
        failures.append(drawn.stderr.strip())
    return source_tree.end(failures, len(PAGES), "pages")


if __name__ == "__main__":
    sys.exit(main())
