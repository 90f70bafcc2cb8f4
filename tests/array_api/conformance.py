"""A pytest plugin for the array API standard's suite. It lets the suite load for a library without complex dtypes, expects
the failures that expected.txt lists, and counts the results of the tests without complex dtypes.

When the suite is imported, it takes the widest complex dtype, which fails if there is none. During the import the module
gets a `max` that takes the widest float in that case. Tests that need a complex dtype fail later."""

import builtins
import collections
import importlib.util
import pathlib
import re
import sys

import pytest

LIST = pathlib.Path(__file__).with_name("expected.txt")


class Expected:
    """A line of the list: `complex` or `differs`, a pattern of test names with * for any text, and the reason; split by
    " | "."""

    def __init__(self, line):
        self.kind, pattern, self.why = (part.strip() for part in line.split(" | ", 2))
        if self.kind not in ("complex", "differs") or not self.why.endswith("."):
            raise pytest.UsageError(f"{LIST.name}: '{line}' needs the kind complex or differs, a pattern, and a sentence that says why.")
        self.text, self.names = pattern, re.compile(re.escape(pattern).replace(r"\*", ".*") + r"\Z", re.DOTALL)
        self.met = False

    def meets(self, node):
        # The suite's folder may have any name, so names begin with the file.
        name = node.partition(".py::")[0].rpartition("/")[2] + ".py::" + node.partition(".py::")[2]
        return self.names.match(name) is not None


def _load(name):
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    module.max = lambda *values, **keywords: (module.xp.float64, 64) if values == ([],) else builtins.max(*values, **keywords)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    del module.max


_load("array_api_tests.dtype_helpers")
_expected = [Expected(line) for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
_kinds = {}  # by the name of a test that is expected to fail
_ends = {}


def pytest_collection_modifyitems(items):
    for item in items:
        line = next((each for each in _expected if each.meets(item.nodeid)), None)
        if line is None:
            continue
        line.met = True
        _kinds[item.nodeid] = line.kind
        item.add_marker(pytest.mark.xfail(reason=line.why))


def pytest_runtest_logreport(report):
    listed = hasattr(report, "wasxfail")
    if report.outcome == "skipped":
        _ends[report.nodeid] = "xfailed" if listed else "skipped"
        if not listed and "no complex data types" in str(report.longrepr):
            _kinds[report.nodeid] = "complex"
    elif report.outcome == "failed":
        _ends[report.nodeid] = "failed"
    elif report.when == "call":
        _ends[report.nodeid] = "passed"


def pytest_terminal_summary(terminalreporter):
    count = collections.Counter(_ends.values())
    real = collections.Counter(end for node, end in _ends.items() if _kinds.get(node) != "complex")
    by_chance = sum(end == "passed" and node in _kinds for node, end in _ends.items())
    share = 100 * real["passed"] / max(real.total(), 1)
    terminalreporter.section("array API standard")
    if not terminalreporter.config.getoption("keyword") and len(_ends) > 1000:
        for line in _expected:
            if not line.met:
                terminalreporter.write_line(f"{LIST.name}: no test is called {line.text}; the line can go.")
    if by_chance:
        terminalreporter.write_line(f"{by_chance} of those that passed may fail with other examples: {LIST.name} lists them.")
    ends = ", ".join(f"{count[end]} {end}" for end in ("passed", "failed", "skipped", "xfailed"))
    terminalreporter.write_line(f"{ends}, {share:.1f} % outside complex dtypes ({real['passed']} of {real.total()})")
