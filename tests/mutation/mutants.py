"""Small defects for a source file: each replaces a few characters of one line.

The script relies on clang-format: binary operators have spaces around them, brackets of templates have none, and a
statement has lines of its own. Comments, quotes, preprocessor lines and static assertions are not changed.
"""
import re
from typing import NamedTuple


class Mutant(NamedTuple):
    path: str
    operator: str  # the name of a row of OPERATORS
    at: int        # offset in the file
    old: str
    new: str

    def apply(self, text):
        assert text[self.at:self.at + len(self.old)] == self.old, f"{self.path} is not what it was"
        return text[:self.at] + self.new + text[self.at + len(self.old):]

    def line(self, text):
        return text.count("\n", 0, self.at) + 1


def swap(words):
    """Replaces each word by the other. Spaces distinguish an operator from a bracket."""
    table = {f" {a} ": f" {b} " for a, b in words}
    pattern = re.compile("(?=(" + "|".join(re.escape(word) for word in sorted(table, key=len, reverse=True)) + "))")
    return lambda text: [(found.start(), found.group(1), table[found.group(1)]) for found in pattern.finditer(text)]


def each(pattern, replace):
    """Replaces group 1 of each match by `replace(match)`; None does not change it."""
    compiled = re.compile(pattern, re.MULTILINE)

    def find(text):
        found = [(match.start(1), match.group(1), replace(match)) for match in compiled.finditer(text)]
        return [(at, old, new) for at, old, new in found if new is not None and new != old]
    return find


def closing(text, opening):
    """The offset of the bracket that closes the one at `opening`; -1 if there is none."""
    depth = 0
    for at in range(opening, min(len(text), opening + 2000)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return -1


def conditions(text):
    """Turns if (c) into if (!(c)), and while in the same way."""
    found = []
    for match in re.finditer(r"\b(?:if|while) (\()(?!const\b|auto\b|Result\b)", text):
        end = closing(text, match.start(1))
        inner = text[match.end(1):end]
        declares = ";" in inner or re.match(r"[\w:<>*&, ]+[*&]? \w+ = ", inner)
        if end > 0 and not declares:
            found.append((match.start(1), text[match.start(1):end + 1], f"(!({inner}))"))
    return found


def guards(text):
    """Removes an `if (...) return ...;`, `continue;` or `break;` of one line or two."""
    found = []
    for match in re.finditer(r"^ *((?<!else )if \()", text, re.MULTILINE):
        end = closing(text, match.end(1) - 1)
        rest = re.compile(r"(?: \[\[\w+\]\])?\s+(?:return|continue|break)\b[^;{}]*;").match(text, end + 1) if end > 0 else None
        follows = rest and not re.compile(r"\s*else\b").match(text, rest.end())
        if follows:
            found.append((match.start(1), text[match.start(1):rest.end()], ";"))
    return found


def statements(text):
    """Removes a call or an assignment that is a whole statement."""
    pattern = re.compile(r"(?<=[;{}]\n) +((?:\+\+|--)?[a-z_][\w.>\[\]:-]*(?:\((?:[^;{}]|\{[^;{}]*\})*\)| [-+*/|&^]?= [^;{}]*)?;)(?=\n)")
    kept = re.compile(r"(return|delete|throw|using|else|goto|case|public|private|protected|break|continue|TENON_)\b")
    return [(match.start(1), match.group(1), ";") for match in pattern.finditer(text)
            if not kept.match(match.group(1)) and ("(" in match.group(1) or "=" in match.group(1) or "+" in match.group(1))]


def one_more(match):
    text = match.group(1)
    return str(int(text) + 1) if len(text) < 12 else None


def one_less(match):
    text = match.group(1)
    return str(int(text) - 1) if len(text) < 12 and int(text) > 0 else None


NUMBER = r"(?<![\w.'\"])(?<!e-)(\d+)(?![\w.'\"])"
PAIR = r"\b\w+(\((\*?[a-z][\w.]*), (\*?[a-z][\w.]*)\))(?=[;,) ])"

# The name, and the function that finds (offset, old, new) in a text with blanked comments and quotes.
OPERATORS = {
    "boundary": swap([("<", "<="), ("<=", "<"), (">", ">="), (">=", ">")]),
    "equality": swap([("==", "!="), ("!=", "==")]),
    "logic": swap([("&&", "||"), ("||", "&&")]),
    "arithmetic": swap([("+", "-"), ("-", "+"), ("*", "+"), ("/", "*"), ("%", "/"), ("<<", ">>"), (">>", "<<")]),
    "assignment": swap([("+=", "-="), ("-=", "+="), ("|=", "&="), ("&=", "|=")]),
    "one more": each(NUMBER, one_more),
    "one less": each(NUMBER, one_less),
    "extreme": each(r"\bstd::(min|max)\b(?=[(<])", lambda match: {"min": "max", "max": "min"}[match.group(1)]),
    "answer": each(r"\breturn (true|false);", lambda match: {"true": "false", "false": "true"}[match.group(1)]),
    "condition": conditions,
    "guard": guards,
    "statement": statements,
    "arguments": each(PAIR, lambda match: f"({match.group(3)}, {match.group(2)})"),
}

QUIET = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", re.DOTALL)
ASSERTED = re.compile(r"^[ \t]*(?:#(?:[^\n]*\\\n)*[^\n]*|static_assert\b[^;]*;)", re.MULTILINE)


def blanked(text):
    """`text` with comments, quotes, preprocessor lines and static assertions blanked. Offsets do not change."""
    def cover(match):
        return re.sub(r"[^\n]", "\0", match.group(0))
    return ASSERTED.sub(cover, QUIET.sub(cover, text))


def mutants_of(path, text):
    """All defects of one file, in the order of their offsets."""
    shown = blanked(text)
    found = []
    for operator, find in OPERATORS.items():
        for at, old, new in find(shown):
            if old.startswith(" ") and old.endswith(" "):
                at, old, new = at + 1, old[1:-1], new[1:-1]
            real = text[at:at + len(old)]
            if operator == "condition":
                new = f"(!({real[1:-1]}))"
            if operator == "arguments" and "\0" in old:
                continue
            found.append(Mutant(path, operator, at, real, new))
    return sorted(found, key=lambda mutant: (mutant.at, mutant.operator))
