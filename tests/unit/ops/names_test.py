"""Parameters have the names, the positions and the defaults of PyTorch.

usage: names_test.py GENERATE.py

pytorch_signatures.txt holds PyTorch's side. An op of ops.yaml that is in no line of it fails, and so does a line without
an op."""

import pathlib
import re
import sys
import unittest

PATH = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(PATH.parent))

from generator.model.op_list import load
from generator.model.signature import split_commas

TABLE = pathlib.Path(__file__).with_name("pytorch_signatures.txt")


class Wanted:
    """A signature of PyTorch: {name: default or None} of positional parameters in order, of keywords, and Tenon's own."""

    def __init__(self, text, extras):
        self.text, self.positional, self.keywords, self.extras = text, {}, {}, set(extras.split())
        into = self.positional
        for part in split_commas(text):
            if part == "*":
                into = self.keywords
                continue
            name, _, default = (word.strip() for word in part.partition("="))
            into[name] = default or None

    def why_not(self, signature):
        """The difference of `signature`, or None."""
        both = {**self.positional, **self.keywords}
        order = list(self.positional)
        for i, p in enumerate(signature.parameters):
            if p.name not in both:
                if p.name in self.extras and p.keyword_only:
                    continue
                return f"'{p.name}' is not a parameter of it"
            if not p.keyword_only and (i >= len(order) or order[i] != p.name):
                return f"'{p.name}' is argument {i + 1}"
            if not same_default(p.default, both[p.name]):
                return f"the default of '{p.name}' is {p.default}"
        given = {p.name for p in signature.parameters}
        missing = [name for name, default in both.items() if default is None and name not in given]
        return f"'{missing[0]}' is missing" if missing else None


def same_default(ours, theirs):
    """Tenon may require what has a default in PyTorch. [] means all axes, as None does. f32 is the dtype of None."""
    if ours is None or (theirs == "None" and ours in ("[]", "f32")):
        return True

    def number(text):
        try:
            return float(text)
        except (TypeError, ValueError):
            return text
    return number(ours) == number(theirs)


def read_table():
    wanted, ours = {}, set()
    for line in TABLE.read_text().splitlines():
        if line.startswith("ours:"):
            ours = set(line.removeprefix("ours:").split())
        elif line and not line.startswith("#"):
            names, text, extras = re.fullmatch(r"([^(]+?) \((.*)\)(?:\s*\+(.*))?", line).groups()
            for name in names.split(", "):
                wanted.setdefault(name, []).append(Wanted(text, extras or ""))
    return wanted, ours


def departures(ops, wanted, ours):
    found = []
    for op in ops:
        if op.name in ours:
            continue
        for signature in op.signatures:
            reasons = [w.why_not(signature) for w in wanted.get(op.name, [])]
            if None not in reasons:
                found.append(f"{signature.text}: {'; '.join(reasons) or 'no line of ' + TABLE.name}")
    return found


class Names(unittest.TestCase):
    def setUp(self):
        self.ops = load(PATH.parent / "ops.yaml", PATH.parents[2] / "ep_api")[0]
        self.wanted, self.ours = read_table()

    def test_every_row_has_the_parameters_of_pytorch(self):
        self.assertEqual(departures(self.ops, self.wanted, self.ours), [])

    def test_every_line_has_its_op(self):
        names = {op.name for op in self.ops}
        self.assertEqual((set(self.wanted) | self.ours) - names, set())
        self.assertEqual(set(self.wanted) & self.ours, set())

    def test_readers_are_told_where_ops_with_other_names_are_listed(self):
        self.assertIn("`tests/unit/ops/pytorch_signatures.txt`", (PATH.parent / "README.md").read_text())

    def test_a_parameter_that_departs_is_noticed(self):
        softmax = next(op for op in self.ops if op.name == "softmax")
        for change in ({"name": "axis"}, {"default": "0"}, {"keyword_only": True, "name": "d"}):
            parameter = softmax.signatures[0].parameters[1]
            before = dict(vars(parameter))
            vars(parameter).update(change)
            self.assertEqual(len(departures([softmax], self.wanted, self.ours)), 1, change)
            vars(parameter).update(before)
        softmax.signatures[0].parameters.pop(1)
        self.assertEqual(len(departures([softmax], self.wanted, self.ours)), 1)


if __name__ == "__main__":
    unittest.main()
