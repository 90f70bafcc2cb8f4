"""Text in C++ is made with fmt::format: the tree does not contain the forms that it replaced, and no call has more
arguments than its text has fields. (The compiler detects a field without an argument, but not an argument without a
field.)

Usage: text_test.py SOURCE_ROOT

Files that are compiled without fmt (installed headers, sdk/provider, examples, C) are not checked. EXEMPT names the
other files that may use such a form, with the reason. The test also plants each form into its own copy of a file, and
fails if it is not detected.
"""
import os
import re
import string
import sys

import source_tree

HELD = ("primitives/", "loader/", "core/", "sdk/", "providers/", "tests/", "benchmarks/")
WITHOUT_FMT = ("ep_api/", "sdk/provider/", "sdk/app/", "providers/null/")
# A literal, which may contain escapes; and the text between two literals in a chain of +.
LITERAL, BETWEEN = r'"(?:\\.|[^"\\\n])*"', r'[^;{}"+]*'
FORMS = {
    "sentence(...)": re.compile(r'\bsentence\(\s*"|status/sentence\.h'),
    "std::ostringstream": re.compile(r"\bstd::o?stringstream\b"),
    "snprintf": re.compile(r"\bv?snprintf\("),
    "+ std::to_string(...)": re.compile(r"\+\s*std::to_string\("),
    "std::to_string(...) +": re.compile(r"\bstd::to_string\((?:[^()]|\([^()]*\))*\)\s*\+(?!\+)"),
    "a chain of + around text": re.compile(rf'{LITERAL}\s*\+{BETWEEN}\+\s*"'),
}
PLANTED = {
    "sentence(...)": 'sentence("pool ", index, " is full")',
    "std::ostringstream": "std::ostringstream text;",
    "snprintf": 'std::snprintf(text, sizeof text, "%d", index);',
    "+ std::to_string(...)": 'what + std::to_string(index)',
    "std::to_string(...) +": 'std::to_string(at(index)) + what',
    "a chain of + around text": '"pool \\"" + name + "\\" is full"',
}
# Files that may use such a form, and the reason.
EXEMPT = {
    "core/tensor/tensor.h": "it is installed",
    "benchmarks/peers/torch.cpp": "it is compiled with libtorch's headers, which bring an fmt of their own",
    "tests/unit/tensor/print_test.cpp": "it tests operator<<",
}
# Functions that make text, and the position of the text among their arguments: the first position with a literal.
FORMATTERS = {"fmt::format": (0,), "broken": (1,), "skipped": (0,), "not_claimed": (0,), "wrong": (0, 1),
              "name_kernel": (1, 2), "functors::refuse": (1,)}
CALL = re.compile(r"(?<![\w:.>])(" + "|".join(FORMATTERS) + r")\(")
QUOTED = re.compile(rf"{LITERAL}|'(?:\\.|[^'\\\n])+'|//[^\n]*")
WHOLE_LITERAL = re.compile(rf"\s*(?:{LITERAL}\s*)+")
SURPLUS = ['fmt::format("{} of {}", first, f(second, g{1, 2}), third)', 'broken("P01", "{} bytes" "!", size, ")")']
NO_SURPLUS = ['fmt::format("{:{}} {{}}", first, width)', 'fmt::format("{0} {1} {0}", first, second)', 'fmt::format(text, 1, 2)']


def arguments_of(text, opening):
    """The arguments of the call whose bracket opens at `opening`; empty if it does not close."""
    parts, depth, start, at = [], 0, opening + 1, opening
    while at < len(text):
        quoted = QUOTED.match(text, at)
        if quoted:
            at = quoted.end()
            continue
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0 or (depth == 1 and text[at] == ","):
            parts.append(text[start:at])
            start = at + 1
        if depth == 0:
            return parts
        at += 1
    return []


def fields_of(text):
    """The number of arguments that the fields of `text` take, including nested fields."""
    taken, numbers = 0, {-1}
    for _, name, inner, _ in string.Formatter().parse(text):
        if name is not None:
            taken += (name == "") + fields_of(inner)
            numbers.add(int(name) if name.isdigit() else -1)
    return max(taken, max(numbers) + 1)


def surplus_in(text, path=""):
    """The lines of calls that have more arguments than fields."""
    lines = []
    if path.startswith("core/ops/functors/"):
        text = re.sub(r"(?<![\w:.>])refuse\(", "functors::refuse(", text)  # any other `refuse` takes no fields
    for call in CALL.finditer(text):
        arguments = arguments_of(text, call.end() - 1)
        at = next((i for i in FORMATTERS[call.group(1)] if i < len(arguments) and WHOLE_LITERAL.fullmatch(arguments[i])), None)
        if at is None or any("..." in argument for argument in arguments[at + 1:]):
            continue
        literal = "".join(part[1:-1] for part in re.findall(LITERAL, arguments[at]))
        if len(arguments) - at - 1 > fields_of(literal):
            lines.append(text.count("\n", 0, call.start()) + 1)
    return lines


def forms_in(text):
    return [name for name, form in FORMS.items() if form.search(text)]


def main():
    root = sys.argv[1]
    failures, looked_at, used = [], 0, set()
    for path in source_tree.files_of(root):
        if not path.endswith((".cpp", ".h")) or not path.startswith(HELD) or path.startswith(WITHOUT_FMT):
            continue
        looked_at += 1
        content = open(os.path.join(root, path)).read()
        forms = forms_in(content)
        failures += [f"{path}:{line}: text is made of more arguments than it has fields" for line in surplus_in(content, path)]
        if path in EXEMPT:
            used.update([path] if forms else [])
            continue
        failures += [f"{path} has {form}; text is made with fmt::format (primitives/text/README.md)" for form in forms]
    failures += [f"{path} has none of the forms any more; take it off the list" for path in sorted(set(EXEMPT) - used)]
    for form, line in PLANTED.items():
        if form not in forms_in(f"int before;\n{line}\nint after;\n"):
            failures.append(f"planted {form} was not seen: {line}")
    failures += [f"a planted argument without a field was not seen: {line}" for line in SURPLUS if not surplus_in(line)]
    failures += [f"no argument is without a field: {line}" for line in NO_SURPLUS if surplus_in(line)]
    return source_tree.end(failures, looked_at)


if __name__ == "__main__":
    sys.exit(main())
