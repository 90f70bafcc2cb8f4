"""Text in C++ is made with fmt::format: the forms that it replaced stay out of the tree.

Usage: text_test.py SOURCE_ROOT

Files that compile where no fmt is (installed headers, sdk/provider, the sample provider, examples, C) are not looked at;
EXEMPT names the others that may use such a form, and why. The test also plants each form into its own copy of a file, and
fails if that passes unseen.
"""
import os
import re
import subprocess
import sys

HELD = ("primitives/", "loader/", "core/", "sdk/", "providers/", "tests/", "benchmarks/")
WITHOUT_FMT = ("ep_api/", "sdk/provider/", "sdk/app/", "providers/null/")
# A literal, which may hold escapes; what stands between two of them in a chain of +.
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
# Files that may have such a form, and why.
EXEMPT = {
    "core/tensor/tensor.h": "it is installed",
    "benchmarks/peers/torch.cpp": "it is compiled with libtorch's headers, which bring an fmt of their own",
    "tests/unit/tensor/print_test.cpp": "it tests operator<<",
}


def forms_in(text):
    return [name for name, form in FORMS.items() if form.search(text)]


def main():
    root = sys.argv[1]
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    failures, looked_at, used = [], 0, set()
    for path in listed.stdout.splitlines():
        full = os.path.join(root, path)
        if not path.endswith((".cpp", ".h")) or not path.startswith(HELD) or path.startswith(WITHOUT_FMT):
            continue
        if not os.path.isfile(full):
            continue
        looked_at += 1
        forms = forms_in(open(full).read())
        if path in EXEMPT:
            used.update([path] if forms else [])
            continue
        failures += [f"{path} has {form}; text is made with fmt::format (primitives/text/README.md)" for form in forms]
    failures += [f"{path} has none of the forms any more; take it off the list" for path in sorted(set(EXEMPT) - used)]
    for form, line in PLANTED.items():
        if form not in forms_in(f"int before;\n{line}\nint after;\n"):
            failures.append(f"planted {form} was not seen: {line}")
    for failure in failures:
        print(failure)
    print(f"{looked_at} files looked at, {len(failures)} things wrong")
    return 1 if failures or not looked_at else 0


if __name__ == "__main__":
    sys.exit(main())
