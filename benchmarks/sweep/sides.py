"""Both sides of a row: the function of PyTorch and of Tenon, on the same values, compared and timed."""

import copy
import functools
import gc
import itertools
import sys
import time
from types import SimpleNamespace

from calls_of_ops import ROOT

sys.path.insert(0, str(ROOT / "tests/torch_ops"))

import tenon  # noqa: E402
import torch  # noqa: E402

import calls  # noqa: E402  of tests/torch_ops
import expected  # noqa: E402
import names  # noqa: E402
import values  # noqa: E402
from arguments import DTYPES, sample_of  # noqa: E402

BATCH = 1e-3    # seconds of a batch, if a call does not take longer
ROUNDS = (2, 5)  # least and most batches of each side
AGAIN = 1.2     # a ratio above this is measured again, with more batches
ROW = 0.02      # seconds of all batches of a side
# Results that are right up to signs: what is compared of them.
COMPARED = {"linalg.svd": lambda result: result[1], "linalg.eigh": lambda result: result[0], "linalg.qr": lambda result: result[1].abs()}
NAMESPACES = ("", "nn.functional.", "linalg.", "fft.", "special.", "Tensor.")


NO_ROW = (TypeError, ValueError, IndexError, RuntimeError, ZeroDivisionError)


class NoPeer(Exception):
    """PyTorch has no such call."""


def path_of(names_of_op):
    """The path below `torch` of the first name that PyTorch has; empty if it has none."""
    for name in names_of_op:
        prefix, _, rest = name.partition("_")
        first = [f"{prefix}.{rest}"] if prefix in ("linalg", "fft") else [f"nn.functional.{name}"] if name.endswith("_loss") else []
        for path in first + [space + name for space in NAMESPACES]:
            if _walk(path) is not None:
                return path
    return ""


def _walk(path):
    here = torch
    for part in path.split("."):
        here = getattr(here, part, None)
    return here


class Sides:
    def __init__(self, row, path):
        self.row, self.path = row, path
        self.sample = sample_of(row)
        if path.startswith("nn.") and path[3].isupper():
            self.theirs, self.ours = self._modules()
        else:
            self.theirs, self.ours = _walk(path), names.resolve(path)[0]
        name = path.removeprefix("Tensor.")
        self.mutates = name.endswith("_") and not name.startswith("__")
        self.entry = SimpleNamespace(name=name.rstrip("_") if self.mutates else name)
        self.sample.output_process_fn_grad = COMPARED.get(name, lambda result: result)
        if "pairs()" in row.text:
            function = self.theirs
            self.theirs = lambda x, *args, **kwargs: function(torch.view_as_complex(x), *args, **kwargs)
        theirs = self.theirs
        self.compared = (lambda *args, **kwargs: _as_pairs(theirs(*args, **kwargs))) if path.startswith("fft.") or name == "stft" else theirs

    def _modules(self):
        """A recurrent net with the same weights on both sides. The text of the row has its sizes."""
        kind = self.path.removeprefix("nn.")
        args, kwargs = (self.sample.input, *self.sample.args), dict(self.sample.kwargs)
        draw = sample_of(SimpleNamespace(**{**vars(self.row), "name": self.row.name, "text": "x(t, b, i)"}))
        theirs = getattr(torch.nn, kind)(*args, **kwargs).to(draw.input.dtype).eval()
        exact = copy.deepcopy(theirs).double()
        ours = getattr(tenon.nn, kind)(*args, **kwargs)
        ours.load_state_dict({name: values.to_tenon(each) for name, each in theirs.state_dict().items()})
        ours.to(names.DTYPES[draw.input.dtype])
        self.sample = draw
        return lambda x: (exact if x.dtype == torch.float64 else theirs)(x), ours.eval()

    def faults(self, intended):
        """The differences of the results, as texts; raises NoPeer if PyTorch refuses the call."""
        if self.row.out:
            found = calls.into(self.entry, self.compared, self.ours, self.sample)
        else:
            found = calls.forward(self.entry, self.compared, self.ours, self.sample, alias=False, mutates=self.mutates)
        if found in ("torch-raises", "no-single-out"):
            raise NoPeer()
        dtype, phase = str(DTYPES[self.row.dtype])[6:], "out" if self.row.out else "fwd"
        if "fft" in self.path and not DTYPES[self.row.dtype].is_floating_point:
            return []  # there is no reference in f64
        return [f"{kind}: {detail}" for kind, detail in (found if isinstance(found, list) else ())
                if not any(each.covers(self.entry.name, phase, dtype, kind, detail) for each in intended)]

    def bound(self):
        """Both calls with their arguments: Tenon's, PyTorch's."""
        sample = self.sample
        value, args, kwargs, self.held = values.arguments_of(sample)
        ours = functools.partial(self.ours, value, *args, **kwargs)
        theirs = functools.partial(self.theirs, sample.input, *sample.args, **sample.kwargs)
        if self.row.out:
            result = theirs()
            return functools.partial(ours, out=values.to_tenon(torch.empty_like(result))), functools.partial(theirs, out=torch.empty_like(result))
        return ours, theirs


def measure(ours, theirs, threads):
    """The least seconds of a call of each side. The batches of the sides alternate."""
    clock = time.process_time if threads == 1 else time.perf_counter
    sides, least = (ours, theirs), [float("inf")] * 2
    lasting = [_seconds(side, clock) for side in sides]
    rounds = max(ROUNDS[0], min(ROUNDS[1], round(ROW / max(lasting))))
    counts = [max(1, round(BATCH / seconds)) for seconds in lasting]
    gc.collect()
    gc.disable()
    try:
        for times in (1, 2):
            for _ in range(times * rounds):
                for i, side in enumerate(sides):
                    if threads > 1:
                        time.sleep(0.015)  # until the threads of the other side have stopped spinning
                    least[i] = min(least[i], _batch(side, counts[i], clock) / counts[i])
            if least[0] <= AGAIN * least[1]:
                break
    finally:
        gc.enable()
    return least


def _batch(call, count, clock):
    begin = clock()
    for _ in itertools.repeat(None, count):
        call()
    return clock() - begin


def _seconds(call, clock):
    """About how long a call takes."""
    call()
    count = 1
    while (seconds := _batch(call, count, clock)) < BATCH / 4:
        count *= 4
    return seconds / count


def _as_pairs(result):
    return torch.view_as_real(result.resolve_conj()) if isinstance(result, torch.Tensor) and result.is_complex() else result


def intended():
    return expected.read()
