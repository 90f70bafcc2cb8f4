"""Gradients, and gradients of gradients, of one call through PyTorch and through Tenon."""

import tenon
import torch

from calls import is_random, kind_of, relaxed, require_method
from compare import compare
from names import Missing, NotApplicable
from values import arguments_of, back, error_text, flat, mapped, raised, to_tenon


def leaves_of(sample):
    """The tensors of a sample that want a gradient."""
    found = []

    def look(value):
        if isinstance(value, torch.Tensor) and value.requires_grad and all(value is not each for each in found):
            found.append(value)
        return value
    mapped(look, (sample.input, sample.args, sample.kwargs))
    return found


class Stopped(Exception):
    """There is nothing to compare: a word; or a list of faults."""

    def __init__(self, outcome):
        super().__init__(outcome)
        self.outcome = outcome


def gradient(op, theirs, ours, sample, second):
    """Compares the gradients of all leaves, those of the second order if `second`."""
    try:
        return _gradient(op, theirs, ours, sample, second)
    except Stopped as stop:
        return stop.outcome


def _gradient(op, theirs, ours, sample, second):
    leaves = leaves_of(sample)
    if not leaves:
        return "no-leaves"
    if is_random(op, sample):
        return "random"
    generator = torch.Generator().manual_seed(7)
    wanted = _Wanted(theirs, sample, leaves, generator, second)
    mine, results = _results_of(ours, sample, leaves, wanted, second)
    given = _backward([results[i] for i in wanted.kept], mine, wanted.weights, second)
    if not second:
        reference = None if leaves[0].dtype == torch.float64 else wanted.reference()
        return _differences(given, wanted.gradients, "grad", reference, 10.0)
    if _differences(given, wanted.gradients, "grad", None, 100.0):
        return "first-order-fails"
    return _second(leaves, mine, wanted.gradients, given, generator)


class _Wanted:
    """PyTorch's answer: the results that want gradients, random weights for them, and the gradients of the leaves."""

    def __init__(self, theirs, sample, leaves, generator, second):
        self.theirs, self.sample, self.leaves = theirs, sample, leaves
        self.process = sample.output_process_fn_grad or (lambda x: x)
        try:
            self.results = flat(self.process(theirs(sample.input, *sample.args, **sample.kwargs)), torch.Tensor)
            self.kept = [i for i, each in enumerate(self.results) if each.requires_grad and each.dtype.is_floating_point]
            if any(each.is_complex() for each in self.results):
                raise Stopped("complex")
            if not self.kept:
                raise Stopped("no-grad-output")
            self.weights = [_random_like(self.results[i], generator) for i in self.kept]
            self.gradients = torch.autograd.grad([self.results[i] for i in self.kept], leaves, self.weights, create_graph=second, allow_unused=True)
        except (Stopped, NotApplicable, Missing):
            raise
        except Exception:
            raise Stopped("torch-raises") from None

    def reference(self):
        """Computes the gradients in f64, once."""
        made = []

        def compute():
            if not made:
                made.append(self._in_f64())
            return made[0]
        return compute

    def _in_f64(self):
        wide = [each.detach().double().requires_grad_(True) for each in self.leaves]
        instead = {id(each): other for each, other in zip(self.leaves, wide)}
        arguments = mapped(lambda each: instead[id(each)] if id(each) in instead else raised(each),
                           (self.sample.input, list(self.sample.args), dict(self.sample.kwargs)))
        results = flat(self.process(self.theirs(arguments[0], *arguments[1], **arguments[2])), torch.Tensor)
        return torch.autograd.grad([results[i] for i in self.kept], wide, [each.double() for each in self.weights], allow_unused=True)


def _random_like(tensor, generator):
    return torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.dtype)


def _results_of(ours, sample, leaves, wanted, second):
    """Tenon's leaves and results; stops if they are not those of PyTorch."""
    value, args, kwargs, memo = arguments_of(sample, grad=True)
    mine = [memo.made[id(each)][0] for each in leaves]
    try:
        results = flat(wanted.process(ours(value, *args, **kwargs)), tenon.Tensor)
    except (Missing, NotApplicable):
        raise
    except Exception as error:
        require_method(error)
        results = _relaxed_results(ours, value, args, kwargs, wanted, error, second)
    if [tuple(each.shape) for each in results] != [tuple(each.shape) for each in wanted.results]:
        raise Stopped("forward-differs")
    without = [i for i in wanted.kept if not results[i].requires_grad]
    if without:
        raise Stopped("first-order-fails" if second else [("no-gradient", f"result {without} wants no gradient, though torch's does")])
    return mine, results


def _relaxed_results(ours, value, args, kwargs, wanted, error, second):
    refused = Stopped("first-order-fails" if second else [(kind_of(error), error_text(error))])
    again = relaxed(error, args, kwargs)
    if again is None:
        raise refused
    try:
        return flat(wanted.process(ours(value, *again[0], **again[1])), tenon.Tensor)
    except Exception:
        raise refused from None


def _backward(results, leaves, weights, second):
    try:
        given = [tenon.from_dlpack(weight.clone()) for weight in weights]
        given = [each if each.dtype == result.dtype else each.to(result.dtype) for each, result in zip(given, results)]
        return tenon.autograd.grad(results, leaves, given, create_graph=second, allow_unused=True)
    except Exception as error:
        kind = "unsupported-gradient" if kind_of(error) == "unsupported" else "error"
        raise Stopped("first-order-fails" if second else [(kind, "backward: " + error_text(error))]) from None


def _differences(ours, theirs, what, reference, slack):
    faults = []
    for i, (mine, their) in enumerate(zip(ours, theirs)):
        if mine is not None and their is not None:
            one = None if reference is None else lambda i=i: reference()[i]
            faults += compare(back(mine), their.detach(), one, slack, path=f"{what}[{i}] ")
        elif mine is not their:
            other = back(mine) if their is None else their.detach()
            if other.numel() and bool((other != 0).any()):
                faults.append(("none-gradient", f"{what}[{i}]: {'Tenon' if mine is None else 'torch'} has none, the other is not zero"))
    return faults


def _second(leaves, mine, theirs, ours, generator):
    places = [i for i, each in enumerate(theirs) if each is not None and each.requires_grad]
    if not places:
        return "linear"
    weights = [_random_like(theirs[i], generator) for i in places]
    try:
        expected = torch.autograd.grad([theirs[i] for i in places], leaves, weights, allow_unused=True)
    except Exception:
        return "torch-raises"
    used = [(weight, ours[i]) for weight, i in zip(weights, places) if ours[i] is not None and ours[i].requires_grad]
    if not used:
        return _differences([None] * len(leaves), expected, "grad2", None, 100.0)
    try:
        given = tenon.autograd.grad([each for _, each in used], mine, [to_tenon(weight) for weight, _ in used], allow_unused=True)
    except Exception as error:
        return [("error", "second backward: " + error_text(error))]
    return _differences(given, expected, "grad2", None, 100.0)
