"""Which differences from PyTorch are meant: the table of cases in sdk/python/PYTORCH.md."""

import pathlib
import re

PYTORCH = pathlib.Path(__file__).resolve().parents[2] / "sdk/python/PYTORCH.md"
HEADING = "## Cases of PyTorch's operator database"
ROW = re.compile(r"^\| `(?P<entry>.+?)` \| `(?P<what>.+?)` \| (?P<why>.+) \|$")


class Row:
    """A pattern of entries, one of differences, and the sentence that says why."""

    def __init__(self, entry, what, why):
        self.entry, self.what, self.why, self.used = re.compile(entry), re.compile(what), why, 0

    def covers(self, title, phase, dtype, kind, detail):
        if not self.entry.fullmatch(title) or not self.what.search(f"{phase} {dtype} {kind}: {detail}"):
            return False
        self.used += 1
        return True


def read(path=PYTORCH):
    """The rows below the heading. A line of the table that is not a row is an error."""
    lines = path.read_text(encoding="utf-8").split(HEADING + "\n", 1)[1].splitlines()
    table = [line for line in lines if line.startswith("|")][2:]
    rows = []
    for line in table:
        found = ROW.match(line)
        if not found:
            raise ValueError(f"{path}: a row has the form | `entry` | `what` | why |, not: {line}")
        rows.append(Row(found["entry"].replace(r"\|", "|"), found["what"].replace(r"\|", "|"), found["why"]))
    return rows
