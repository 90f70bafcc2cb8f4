"""A plugin of pytest that lets the array API standard's suite load for a library without complex dtypes.

The suite takes the widest of the complex dtypes when it is imported, which fails where there is none. The module that does
so gets a `max` for its import that takes the widest float in that case; tests that need a complex dtype fail later."""

import builtins
import importlib.util
import sys


def _load(name):
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    module.max = lambda *values, **keywords: (module.xp.float64, 64) if values == ([],) else builtins.max(*values, **keywords)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    del module.max


_load("array_api_tests.dtype_helpers")
