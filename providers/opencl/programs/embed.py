"""Writes the texts of programs, with their includes resolved, into a C++ header.

Usage: embed.py --root FOLDER --out HEADER TEXT.cl...

A line `#include "path"` becomes the text of root/path, each time it stands there: the tables of ep_api are included
several times, with other macros. Comments and empty lines are left out, since drivers read the text at run time.
"""
import argparse
import os
import re

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"\s*$')
COMMENT = re.compile(r"//.*$")


def resolve(path, root):
    lines = []
    for line in open(os.path.join(root, path), encoding="utf-8"):
        line = COMMENT.sub("", line).rstrip()
        included = INCLUDE.match(line)
        if included:
            lines += resolve(included.group(1), root)
        elif line:
            lines.append(line)
    return lines


def literal(lines):
    """The lines as string literals, one each: compilers limit the length of a single literal."""
    return "\n".join('    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"' for line in lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("texts", nargs="+")
    arguments = parser.parse_args()
    names = [os.path.splitext(os.path.basename(text))[0] for text in arguments.texts]
    with open(arguments.out, "w", encoding="utf-8") as out:
        out.write("#pragma once\n\nnamespace tenon::provider::opencl {\n\n")
        out.write("struct ProgramText {\n  const char* name;\n  const char* text;\n};\n\n")
        out.write("inline constexpr ProgramText program_texts[] = {\n")
        for name, text in zip(names, arguments.texts):
            out.write(f'    {{"{name}",\n{literal(resolve(text, arguments.root))}}},\n')
        out.write("};\n\n}  // namespace tenon::provider::opencl\n")


if __name__ == "__main__":
    main()
