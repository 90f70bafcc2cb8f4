"""One call through PyTorch and through Tenon: the result, what was written, and what shares memory.

A check gives [] or None if it passed, a list of (kind, detail) of faults, or a word that says why there was nothing to
compare."""

import re

import tenon
import torch

from compare import compare
from names import Missing, NotApplicable
from values import Memo, arguments_of, back, copied, error_text, raised, text_of

# Results that are right up to a sign or a rotation: they are compared after the database's own processing.
GAUGE = {"svd", "linalg.svd", "linalg.eigh", "linalg.eig", "linalg.qr", "geqrf", "linalg.pinv", "lu", "symeig"}
RANDOM = re.compile(r"^(cauchy|exponential|geometric|log_normal|normal|uniform|randn.*|rand_like|rand|randint.*|randperm|multinomial|bernoulli|nn\.functional\."
                    r"(dropout.*|alpha_dropout|feature_alpha_dropout|fractional_max_pool.*|rrelu)|empty.*|new_empty.*|svd_lowrank|pca_lowrank|resize_.*)$")
TIES = re.compile(r"^(sort|argsort|topk|kthvalue|median|nanmedian|mode|max|min|argmax|argmin|cummax|cummin|aminmax)$")
CONVERSIONS = ("byte", "char", "short", "int", "long", "to", "bool")
NO_FIT = re.compile(r"positional argument|unexpected keyword|invalid combination|argument '\w+' must be|takes \d")
WITHOUT_MEANING = ("device", "memory_format", "driver", "sparse", "non_blocking", "requires_grad", "pin_memory", "stable")
FALSE_BY_DEFAULT = ("scale_grad_by_freq", "return_indices", "return_inverse", "return_counts", "training", "include_last_offset", "copy", "sparse")
DEFECT = re.compile(r"(?i)internal|bug in|assert|std::|vector::|bad_alloc|unreachable")
SAID_BY_BINDING = re.compile(r"must be Tensor, not|received an invalid combination|doesn't apply to a|object has no attribute")


def is_random(op, sample):
    if op.name == "nn.functional.multi_head_attention_forward" and len(sample.args) > 9 and sample.args[9] > 0 and sample.kwargs.get("training", True):
        return True
    dropped = any(name in ("dropout_p", "dropout") and isinstance(value, float) and value > 0 for name, value in sample.kwargs.items())
    return bool(RANDOM.match(op.name)) or dropped


def kind_of(error):
    name = type(error).__name__
    if name in ("InvalidCall", "TypeError", "AttributeError"):
        return "signature"
    return "unsupported" if name in ("Unsupported", "NotImplementedError") else "error"


def require_method(error):
    """Raises Missing if the error says that Tensor has no such method."""
    gone = re.search(r"'Tensor' object has no attribute '(\w+)'", str(error))
    if gone:
        raise Missing("Tensor." + gone[1])


def relaxed(error, args, kwargs):
    """The arguments without those that Tenon does not take and that do not change the values; None if there are none of
    that kind. The call still counts as a fault, but its values are compared."""
    if not NO_FIT.search(str(error)):
        return None
    args = list(args)
    if args and isinstance(args[-1], bool) and "'dim' must be" in str(error):
        return args[:-1], dict(kwargs, correction=int(args[-1]))
    count = len(args)
    while args and (args[-1] is None or args[-1] is False or isinstance(args[-1], str) and "euclid" in args[-1]):
        args.pop()
    if kwargs.get("sparse"):
        return None
    kept = {}
    for name, value in kwargs.items():
        if name == "unbiased":
            kept["correction"] = int(value)
        elif name == "correction" and isinstance(value, float) and value == int(value):
            kept[name] = int(value)
        elif value is not None and name not in WITHOUT_MEANING and not (value is False and name in FALSE_BY_DEFAULT):
            kept[name] = value
    return (args, kept) if len(args) != count or kept.keys() != kwargs.keys() else None


def reference_of(function, sample):
    """Computes the sample in f64 through PyTorch, once."""
    made = []

    def compute():
        if not made:
            made.append(function(raised(sample.input), *raised(list(sample.args)), **raised(dict(sample.kwargs))))
        return made[0]
    return compute


# ---- forward ----

def forward(op, theirs, ours, sample, alias=True, mutates=False):
    """Compares the results of `theirs` and `ours`; `mutates`: the first argument is written."""
    copies = Memo()
    inputs = copied((sample.input, list(sample.args), dict(sample.kwargs)), copies)
    try:
        expected = theirs(inputs[0], *inputs[1], **inputs[2])
    except Exception:
        return "torch-raises"
    if expected is NotImplemented:
        return "torch-raises"
    called = _call(ours, sample)
    if called.result is None:
        return called.faults
    given, result, memo = called.result
    if given is NotImplemented:
        return [("error", "NotImplemented")]
    written = mutates or any(copy is not original and not _same(copy, original) for copy, _, original in copies.all())
    faults = _results(op, theirs, sample, expected, result, written)
    word = _explained(op, sample, inputs[0], expected, result, faults)
    if word:
        return word
    if not is_random(op, sample):
        faults += _writes(memo, copies, written)
    if alias and not called.faults and not written and not faults:
        faults += _sharing(sample, expected, result, inputs[0], memo)
    if not called.faults and faults and all(kind == "complex-as-pairs" for kind, _ in faults):
        return "complex-as-pairs"
    return called.faults + faults


class _Called:
    def __init__(self, faults, result):
        self.faults, self.result = faults, result


def _call(ours, sample):
    """Calls Tenon, a second time with relaxed arguments if it refuses them."""
    value, args, kwargs, memo = arguments_of(sample)
    try:
        given = ours(value, *args, **kwargs)
        return _Called([], (given, back(given), memo))
    except (Missing, NotApplicable):
        raise
    except Exception as error:
        require_method(error)
        faults, again = [(kind_of(error), error_text(error))], relaxed(error, args, kwargs)
    if again is None:
        return _Called(faults, None)
    refused = faults[0][1]
    try:
        value, args, kwargs, memo = arguments_of(sample)
        args, kwargs = relaxed(refused, args, kwargs)
        given = ours(value, *args, **kwargs)
        return _Called(faults, (given, back(given), memo))
    except Exception:
        return _Called(faults, None)


def _same(x, y):
    return torch.equal(torch.nan_to_num(x.detach()), torch.nan_to_num(y.detach()))


def _results(op, theirs, sample, expected, result, written):
    random_values, gauge = is_random(op, sample), op.name in GAUGE
    if gauge:
        try:
            expected, result = sample.output_process_fn_grad(expected), sample.output_process_fn_grad(result)
        except Exception:
            pass
    reference = None if random_values or gauge or written else reference_of(theirs, sample)
    return compare(result, expected, reference, random_values=random_values)


def _explained(op, sample, source, expected, result, faults):
    """A word for values that may differ: another one of equal elements, or a conversion beyond the integer's range."""
    if not faults or any(kind != "value" for kind, _ in faults) or not isinstance(source, torch.Tensor):
        return None
    if TIES.match(op.name) and _other_of_equals(source, expected, result, faults):
        return "tie-order"
    if op.name in CONVERSIONS and isinstance(expected, torch.Tensor) and sample.input.dtype.is_floating_point:
        whole = not expected.dtype.is_floating_point and expected.dtype != torch.bool
        limits, numbers = torch.iinfo(expected.dtype) if whole else None, sample.input.double()
        if whole and bool((~torch.isfinite(numbers) | (numbers > limits.max) | (numbers < limits.min)).any()):
            return "cast-out-of-range"
    return None


def _other_of_equals(source, expected, result, faults):
    """True if the positions differ, but the elements there are equal."""
    alone = isinstance(expected, torch.Tensor)
    ours, theirs = (each if alone else each[-1] for each in (result, expected))
    if not (ours.dtype == theirs.dtype == torch.int64) or not (alone or all(detail.startswith("[1]") for _, detail in faults)):
        return False
    for dim in range(max(source.dim(), 1)):
        try:
            places = (ours, theirs) if ours.dim() == source.dim() else (ours.unsqueeze(dim), theirs.unsqueeze(dim))
            x, y = (torch.nan_to_num(torch.gather(source, dim, each).double()) for each in places)
            if torch.equal(x, y):
                return True
        except Exception:  # not the axis
            pass
    return False


def _writes(memo, copies, written):
    faults = []
    for _, copy, original in memo.all():
        if written:
            faults += [("written-input", detail) for _, detail in compare(copy, copies.made[id(original)][0])]
        elif not _same(copy, original.detach().resolve_conj().resolve_neg()):
            faults.append(("input-written", "an argument was changed"))
    return faults


def _inside(tensor, base):
    """True if a tensor lies in the storage of another one."""
    storage = base.untyped_storage()
    return storage.data_ptr() <= tensor.data_ptr() < storage.data_ptr() + storage.nbytes()


def _sharing(sample, expected, result, source, memo):
    if not all(isinstance(each, torch.Tensor) for each in (expected, result, sample.input)):
        return []
    if result.dtype != expected.dtype or expected.numel() == 0 or source.numel() == 0:
        return []
    theirs, ours = _inside(expected, source), _inside(result, memo.made[id(sample.input)][1])
    if theirs and not ours:
        return [("not-a-view", "torch's result shares memory with the input, Tenon's does not")]
    return [("aliases", "Tenon's result shares memory with the input, torch's does not")] if ours and not theirs else []


# ---- other forms ----

def method(op, theirs, ours, sample, name, missing, **how):
    """The call as a method, which may be in place."""
    if name == "<lambda>" or not hasattr(torch.Tensor, name):
        return "odd-method"
    if not hasattr(tenon.Tensor, name):
        return [(missing, name)]

    def call(x, *args, **kwargs):
        return getattr(x, name)(*args, **kwargs)
    return forward(op, call, call, sample, **how)


def into(op, theirs, ours, sample):
    """The call with out=, a tensor whose axes lie in reverse order."""
    try:
        expected = theirs(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return "torch-raises"
    if not isinstance(expected, torch.Tensor) or expected.is_complex() or is_random(op, sample):
        return "no-single-out"
    value, args, kwargs, _ = arguments_of(sample)
    turned = tuple(reversed(torch.empty(tuple(reversed(expected.shape))).stride()))
    held = torch.empty_strided(tuple(expected.shape), turned, dtype=expected.dtype)
    out = tenon.from_dlpack(held)
    try:
        theirs(sample.input, *sample.args, **sample.kwargs, out=torch.empty_like(expected))
    except Exception:
        return "torch-raises"
    try:
        back(ours(value, *args, **kwargs, out=out))
    except (Missing, NotApplicable):
        raise
    except Exception as error:
        return [(kind_of(error), "out=: " + error_text(error))]
    return [(kind, "out=: " + detail) for kind, detail in compare(held, expected, reference_of(theirs, sample))]


def refused(op, theirs, ours, case, report):
    """Arguments that PyTorch refuses. `report` is given the classes of errors where they differ."""
    sample = case.sample_input
    try:
        theirs(sample.input, *sample.args, **sample.kwargs)
        return "torch-accepts"
    except Exception as error:
        said = f"{type(error).__name__}: {str(error)[:120]}"
    value, args, kwargs, _ = arguments_of(sample)
    try:
        given = ours(value, *args, **kwargs)
        result = None if given is NotImplemented else back(given)
    except (Missing, NotApplicable):
        raise
    except Exception as error:
        if DEFECT.search(error_text(error)):
            return [("unclear-error", f"{error_text(error)}   | torch: {said}")]
        wanted = case.error_type if isinstance(case.error_type, tuple) else (case.error_type,)
        if not isinstance(error, wanted):
            report([cls.__name__ for cls in wanted], type(error).__name__)
        return None
    if given is NotImplemented:
        return None
    return "accepts-more" if SAID_BY_BINDING.search(said) else [("silent", f"returned {text_of(result)[:200]}   | torch: {said}")]


