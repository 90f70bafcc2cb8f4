"""Decorators that make Python functions functions of the package and methods of Tensor, with the keyword out=."""

import functools

from tenon import _tenon
from tenon._tenon import Tensor


def plain_names(parameters, kwargs):
    """Returns the keywords with NumPy's names, such as axis, replaced by those of the parameters: dim."""
    for numpy_name, name in _tenon._numpy_names:
        if numpy_name in kwargs and numpy_name not in parameters and name in parameters and name not in kwargs:
            kwargs = {name if key == numpy_name else key: value for key, value in kwargs.items()}
    return kwargs


def _with_out(function):
    code = function.__code__
    parameters = frozenset(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])

    @functools.wraps(function)
    def call(*args, **kwargs):
        if kwargs and not kwargs.keys() <= parameters:
            kwargs = plain_names(parameters, kwargs)
        if kwargs.get("out") is None:
            kwargs.pop("out", None)
            return function(*args, **kwargs)
        from tenon._spellings import with_out
        return with_out(function)(*args, **kwargs)
    return call


def decorators_of(namespace):
    """Returns two decorators for the module with these globals. The first makes a function public; the second also
    makes it a method of Tensor."""
    namespace["__all__"] = []

    def public(function):
        function = _with_out(function)
        namespace["__all__"].append(function.__name__)
        namespace[function.__name__] = function
        return function

    def both(function):
        function = public(function)
        setattr(Tensor, function.__name__, function)
        return function
    return public, both


def refuse(sentence):
    raise _tenon.InvalidArgument(sentence)
