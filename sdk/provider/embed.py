"""Writes texts that are compiled at run time, with their includes resolved, into a C++ header.

Usage: embed.py --root FOLDER --out HEADER --namespace NAME [NAME=]TEXT...

A line `#include "path"` becomes the text of root/path, each time it stands there: the tables of ep_api are included
several times, with other macros. Comments, empty lines and what only a C++ compiler reads are left out, since devices'
compilers read the text at run time.
"""
import argparse
import os
import re

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"\s*$')
COMMENT = re.compile(r"//.*$")
# Standard headers, and ep_api.h. A prelude uses only two numbers of ep_api.h.
LEFT_OUT = re.compile(r'^\s*#\s*(include\s*(<[^>]+>|"ep_api/ep_api.h")|pragma once)\s*$')


def resolve(path, root):
    lines = []
    for line in open(os.path.join(root, path), encoding="utf-8"):
        line = COMMENT.sub("", line).rstrip()
        included = INCLUDE.match(line)
        if LEFT_OUT.match(line):
            continue
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
    parser.add_argument("--namespace", required=True)
    parser.add_argument("texts", nargs="+")
    arguments = parser.parse_args()
    texts = [text.rpartition("=") for text in arguments.texts]
    with open(arguments.out, "w", encoding="utf-8") as out:
        out.write(f"#pragma once\n\nnamespace {arguments.namespace} {{\n\n")
        out.write("struct ProgramText {\n  const char* name;\n  const char* text;\n};\n\n")
        out.write("inline constexpr ProgramText program_texts[] = {\n")
        for name, _, text in texts:
            name = name or os.path.splitext(os.path.basename(text))[0]
            out.write(f'    {{"{name}",\n{literal(resolve(text, arguments.root))}}},\n')
        out.write(f"}};\n\n}}  // namespace {arguments.namespace}\n")


if __name__ == "__main__":
    main()
