"""Reads ep_api.h in two ways: projected to a minor and parsed into facts, and as source, member by member.

A projection is the header that a program sees after it defines EP_ABI_TARGET_MINOR. `root` is the folder of ep_api/.
"""
import os
import re
import subprocess

TABLES = ("dtypes.def", "primitives.def", "scalar_ops.def")
FILES = ("ep_api.h", "ep_names.h") + TABLES
# The columns of a row that are promises, besides its name and id. An expression may become better.
ROW_COLUMNS = {"EP_DTYPE": 2, "EP_PRIMITIVE": 2, "EP_UNARY": 2, "EP_BINARY": 3, "EP_TERNARY": 2, "EP_REDUCE": 1}
# These describe the file or the compiler, not the projection.
NOT_FACTS = {"EP_ABI_LATEST_MINOR"}

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|\d\w*|\.\.\.|.', re.DOTALL)
NAME = re.compile(r"[A-Za-z_]\w*$")


class Member:
    def __init__(self, path, type_text):
        self.path, self.type = path, type_text


class Struct:
    def __init__(self, name, word, members):
        self.name, self.word, self.members = name, word, members

    @property
    def growable(self):
        return [member.path for member in self.members[:2]] == ["struct_size", "struct_type"]


class Projection:
    """Returns the declarations of ep_api.h of `root` at `minor`: structs, opaque names, typedefs, functions, constants,
    rows."""

    def __init__(self, root, minor, compiler="cc"):
        self.root, self.minor = root, minor
        self.structs, self.typedefs, self.functions, self.enumerators = {}, {}, {}, []
        declared = []
        for declaration in split_top(tokens(preprocess(root, minor, compiler))):
            self._declare(declaration, declared)
        self.opaque = [name for name in declared if name not in self.structs]
        self._read_macros(compiler)
        self.rows = read_rows(root, minor, compiler)

    def _declare(self, words, declared):
        words = without_attributes(words)
        if words[0] == "typedef" and words[1] in ("struct", "union"):
            declared.append(words[2])
            words = words[1:]
        if words[0] == "enum":
            inside = words[words.index("{") + 1 : -1]
            self.enumerators += [one[0] for one in split(inside, ",") if one]
        elif words[0] in ("struct", "union"):
            if "{" in words:
                body = words[words.index("{") + 1 : len(words) - words[::-1].index("}") - 1]
                self.structs[words[1]] = Struct(words[1], words[0], list(read_members(body, "")))
        elif words[0] == "typedef":
            name, text = declarator(words[1:])
            self.typedefs[name] = text
        else:
            name, text = declarator(words)
            self.functions[name] = text

    def _read_macros(self, compiler):
        listed = run_preprocessor(self.root, self.minor, compiler, "-dM")
        self.constants, self.texts, self.macros = list(self.enumerators), {}, {}
        for line in sorted(listed.splitlines()):
            match = re.match(r"#define (EP_\w*[^\W_])(?!\w)(\([^)]*\))? ?(.*)$", line)
            if not match or match.group(1) in NOT_FACTS:
                continue
            name, parameters, body = match.groups()
            if parameters:
                self.macros[name] = parameters.replace(" ", "")
            elif body.startswith(('"', "__attribute__")):
                self.texts[name] = body
            elif body:
                self.constants.append(name)


def run_preprocessor(root, minor, compiler, *flags):
    return checked([compiler, "-E", "-x", "c", "-std=c11", "-ffreestanding", *flags, f"-DEP_ABI_TARGET_MINOR={minor}",
                    "-I", ".", os.path.join("ep_api", "ep_api.h")], cwd=root)


def checked(command, **more):
    result = subprocess.run(command, capture_output=True, text=True, **more)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {result.returncode}:\n{result.stderr}")
    return result.stdout


def preprocess(root, minor, compiler):
    """The declarations of our own files only, without those of <stdint.h> and <stddef.h>."""
    ours, kept = False, []
    for line in run_preprocessor(root, minor, compiler).splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = os.path.basename(marker.group(1)) in FILES
        elif ours:
            kept.append(line)
    return "\n".join(kept)


def tokens(text):
    return [word for word in TOKEN.findall(text) if not word.isspace()]


def split(words, separator):
    """`words` split at each `separator` that is outside of brackets."""
    parts, depth = [[]], 0
    for word in words:
        depth += (word in "([{") - (word in ")]}")
        if word == separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def split_top(words):
    return [part for part in split(words, ";") if part]


def without_attributes(words):
    kept, skip = [], 0
    for place, word in enumerate(words):
        if word == "__attribute__":
            skip = 1
        elif skip:
            depth = sum((one == "(") - (one == ")") for one in words[words.index("__attribute__") + 1 : place + 1])
            skip = 0 if depth == 0 else 1
        else:
            kept.append(word)
    return kept


def joined(words):
    text = ""
    for word in words:
        text += (" " if text and text[-1].isalnum() | (text[-1] == "_") and NAME.match(word) else "") + word
    return text.replace("*", "* ").replace("* *", "**").replace("* *", "**").replace("* ,", "*,").strip()


def type_of_parameter(words):
    plain = [word for word in words if NAME.match(word) and word not in ("const", "struct", "union")]
    return joined(words[:-1] if len(plain) > 1 and NAME.match(words[-1]) else words)


def declarator(words):
    """(name, type) of `ret (*name)(params)`, `ret name(params)`, `type name[n]` or `type name`."""
    if "(" in words:
        first = words.index("(")
        pointer = words[first + 1] == "*"
        name = words[first + 2] if pointer else words[first - 1]
        parameters = words[first + 5 : -1] if pointer else words[first + 1 : -1]
        returned = words[:first] if pointer else words[: first - 1]
        listed = ", ".join(type_of_parameter(part) for part in split(parameters, ","))
        return name, f"{joined(returned)} {'(*)' if pointer else ''}({listed})"
    if "[" in words:
        first = words.index("[")
        return words[first - 1], joined(words[: first - 1]) + joined(words[first:])
    return words[-1], joined(words[:-1])


def read_members(body, prefix):
    for words in split_top(body):
        if "{" in words:
            inner = words[words.index("{") + 1 : len(words) - words[::-1].index("}") - 1]
            name = words[-1]
            yield Member(prefix + name, words[0])
            yield from read_members(inner, prefix + name + ".")
        else:
            name, text = declarator(words)
            yield Member(prefix + name, text)


def read_rows(root, minor, compiler):
    """{"EP_DTYPE f32": "12, 32, FLOAT"}: the promises of each row of the tables."""
    source = "".join(f"#define {macro}(...) @{macro}(__VA_ARGS__)@\n" for macro in ROW_COLUMNS)
    source += "".join(f'#include "ep_api/{table}"\n' for table in TABLES)
    text = checked([compiler, "-E", "-P", "-x", "c", f"-DEP_ABI_TARGET_MINOR={minor}", "-I", ".", "-"], input=source,
                   cwd=root)
    rows = {}
    for macro, inside in re.findall(r"@(EP_\w+)\((.*?)\)@", text, re.DOTALL):
        columns = [joined(part) for part in split(tokens(inside), ",")]
        rows[f"{macro} {columns[0]}"] = ", ".join(columns[1 : 2 + ROW_COLUMNS[macro]])
    return rows


def defined_number(root, name):
    """The number that ep_api.h defines as the macro `name`."""
    with open(os.path.join(root, "ep_api/ep_api.h")) as file:
        return int(re.search(rf"^#define {name} (\w+)", file.read(), re.MULTILINE).group(1), 0)


# ---- the source text, for programs that change it ----


def struct_body(text, struct):
    """(begin, end) of the text between the braces of `struct`."""
    begin = re.search(rf"\b(?:struct|union) {struct} \{{", text)
    if not begin:
        raise RuntimeError(f"ep_api.h defines no struct {struct}")
    depth, place = 1, begin.end()
    while depth:
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        place += 1
    return begin.end(), place - 1


def source_members(text, struct):
    """[(begin, end)] of each declaration of `struct`, including its semicolon, without comments and directives."""
    begin, end = struct_body(text, struct)
    blank = re.sub(r"//[^\n]*|^[ \t]*#[^\n]*", lambda match: " " * len(match.group()), text[begin:end], flags=re.MULTILINE)
    spans, start, depth = [], None, 0
    for place, letter in enumerate(blank):
        if start is None and not letter.isspace():
            start = place
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == ";" and depth == 0:
            spans.append((begin + start, begin + place + 1))
            start = None
    return spans


def append_member(text, struct, declaration):
    end = struct_body(text, struct)[1]
    return text[:end] + declaration + text[end:]
