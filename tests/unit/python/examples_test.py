"""Every op has an example in its docstring, and the example gives what the docstring shows.

usage: examples_test.py"""

import contextlib
import doctest
import io
import pathlib
import sys
import unittest

import tenon
from tenon import _tenon

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report


def ops():
    """name: op, of every op of the package, also of those that a function of Python hides."""
    return {name: op for name, op in vars(_tenon).items() if isinstance(op, tenon.Op)}


def complaint(name, text):
    """The report of doctest about the examples in `text`; None if all give what they show."""
    examples = doctest.DocTestParser().get_doctest(text, {"tenon": tenon}, name, None, None)
    report = io.StringIO()
    with contextlib.redirect_stdout(report):
        failed = doctest.DocTestRunner(verbose=False).run(examples).failed
    return report.getvalue() if failed else None


class Examples(unittest.TestCase):
    def test_every_example_gives_what_it_shows(self):
        for name, op in ops().items():
            with self.subTest(op=name):
                self.assertIsNone(complaint(name, op.__doc__))

    def test_every_op_has_an_example_that_calls_it(self):
        without = [name for name, op in ops().items() if f">>> tenon.{name}(" not in op.__doc__ and not in_place_form(name)]
        self.assertEqual(without, [])

    def test_help_has_the_sections_of_a_page(self):
        for part in ("Args:\n    input (Tensor): ", "\n\nReturns:\n", "\n\nExample:\n    >>> tenon.conv2d("):
            self.assertIn(part, tenon.conv2d.__doc__)


def in_place_form(name):
    """True for `add_` of `add`, whose docstring names `add`."""
    return name.endswith("_") and isinstance(getattr(tenon, name[:-1], None), tenon.Op)


if __name__ == "__main__":
    del sys.argv[1:2]  # op_runner, which other tests of this folder need
    unittest_report.main()
