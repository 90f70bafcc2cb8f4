"""The differences between a result of Tenon and one of PyTorch: a list of (kind, detail)."""

import math

import torch

from names import NotApplicable

TOLERANCE = {torch.float64: (1e-7, 1e-7), torch.float32: (1.3e-6, 1e-5), torch.float16: (2e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-3)}
EPSILON = {torch.float64: 2.2e-16, torch.float32: 1.2e-7, torch.float16: 9.8e-4, torch.bfloat16: 7.8e-3}


def compare(ours, theirs, reference=None, slack=1.0, random_values=False, path=""):
    """`reference()` gives what PyTorch computes in f64; `slack` multiplies the tolerances."""
    if isinstance(theirs, torch.Tensor):
        return _tensors(ours, theirs, reference, slack, random_values, path)
    if isinstance(theirs, (list, tuple)):
        return _lists(ours, theirs, reference, slack, random_values, path)
    if isinstance(theirs, complex):
        raise NotApplicable("complex")
    return _plain(ours, theirs, path)


def _tensors(ours, theirs, reference, slack, random_values, path):
    faults = []
    if not isinstance(ours, torch.Tensor):
        what = f"python {type(ours).__name__} for a 0-d tensor" if theirs.dim() == 0 and isinstance(ours, (bool, int, float)) else f"{type(ours).__name__} for a tensor"
        return [("structure", path + what)]
    if theirs.layout != torch.strided:
        raise NotApplicable("layout")
    if theirs.is_complex():
        if ours.is_complex() or tuple(ours.shape) != (*theirs.shape, 2):
            return [("complex", f"{path}torch gives complex, Tenon {ours.dtype} {list(ours.shape)}")]
        theirs, reference = torch.view_as_real(theirs.resolve_conj()), None
        faults.append(("complex-as-pairs", f"{path}result is pairs of reals"))
    if tuple(ours.shape) != tuple(theirs.shape):
        return faults + [("shape", f"{path}Tenon {list(ours.shape)}, torch {list(theirs.shape)}")]
    if ours.dtype != theirs.dtype:
        faults.append(("dtype", f"{path}Tenon {str(ours.dtype)[6:]}, torch {str(theirs.dtype)[6:]}"))
    if random_values or theirs.numel() == 0:
        return faults
    if faults and ours.dtype.is_floating_point != theirs.dtype.is_floating_point or theirs.dtype == torch.bool != ours.dtype:
        return faults
    return faults + _elements(ours.detach(), theirs.detach(), reference, slack, path)


def _lists(ours, theirs, reference, slack, random_values, path):
    if isinstance(ours, torch.Tensor) and not isinstance(theirs, torch.Size):
        return [("structure", f"{path}one tensor for {len(theirs)} results")]
    if not isinstance(ours, (list, tuple)):
        return [("structure", f"{path}{type(ours).__name__} for {type(theirs).__name__}")]
    if len(ours) != len(theirs):
        return [("structure", f"{path}{len(ours)} results, torch {len(theirs)}")]
    faults = []
    for i, (x, y) in enumerate(zip(ours, theirs)):
        part = None if reference is None else lambda i=i: reference()[i]
        faults += compare(x, y, part, slack, random_values, f"{path}[{i}]")
    return faults


def _plain(ours, theirs, path):
    if isinstance(theirs, bool) or theirs is None or isinstance(theirs, str):
        if isinstance(ours, torch.Tensor) and ours.numel() == 1 and isinstance(theirs, bool):
            return [("structure", f"{path}tensor for a python bool")] + ([("value", f"{path}{ours.item()} for {theirs}")] if bool(ours.item()) != theirs else [])
        return [] if type(ours) is type(theirs) and ours == theirs else [("value", f"{path}{ours!r} for {theirs!r}")]
    if not isinstance(theirs, (int, float)):
        return [] if str(ours) == str(theirs) else [("value", f"{path}{ours!r} for {theirs!r}")]
    if isinstance(ours, torch.Tensor):
        return [("structure", f"{path}tensor for a python {type(theirs).__name__}")]
    if type(ours) is not type(theirs):
        return [("dtype", f"{path}python {type(ours).__name__}, torch {type(theirs).__name__}")]
    near = isinstance(theirs, float) and (math.isnan(ours) and math.isnan(theirs) or abs(ours - theirs) <= 1e-6 * max(1, abs(theirs)))
    return [] if ours == theirs or near else [("value", f"{path}{ours!r} for {theirs!r}")]


def _first(wrong, ours, theirs, path, more=""):
    i = wrong.reshape(-1).nonzero()[0].item()
    return (f"{path}{int(wrong.sum())} of {wrong.numel()} elements: Tenon {ours.reshape(-1)[i].item()!r}, "
            f"torch {theirs.reshape(-1)[i].item()!r} at {i}{more}")


def _at(reference, wrong):
    return "" if reference is None else f", in f64 {reference.reshape(-1)[wrong.reshape(-1).nonzero()[0].item()].item()!r}"


def _elements(ours, theirs, reference, slack, path):
    if not theirs.dtype.is_floating_point or not ours.dtype.is_floating_point:
        return _integers(ours, theirs, path)
    lower = min((ours.dtype, theirs.dtype), key=lambda dtype: -EPSILON[dtype])
    rtol, atol = TOLERANCE[lower]
    x, y = ours.double(), theirs.double()
    wrong = ~torch.isclose(x, y, rtol=rtol * slack, atol=atol * slack, equal_nan=True)
    if not wrong.any():
        return []
    exact = _exact(reference, theirs)
    finite = torch.isfinite(x) & torch.isfinite(y)
    odd = wrong & ~finite
    if odd.any() and exact is not None:
        odd &= ~torch.isclose(x, exact.to(lower).double(), rtol=rtol * 4, atol=atol * 4, equal_nan=True)
    if odd.any():
        return [("nan/inf", _first(odd, ours, theirs, path, _at(exact, odd)))]
    wrong &= finite
    if exact is not None:
        wrong &= _further(x, y, exact, EPSILON[lower], finite)
    if not wrong.any():
        return []
    relative = ((x - y).abs() / y.abs().clamp(min=max(1e-30, atol)))[wrong].max().item()
    kind = "precision" if relative < max(200 * rtol, 1e-4 if lower == torch.float32 else 0) else "value"
    return [(kind, _first(wrong, ours, theirs, path, _at(exact, wrong)))]


def _integers(ours, theirs, path):
    if ours.dtype.is_floating_point or theirs.dtype.is_floating_point:
        wrong = ~torch.isclose(ours.double(), theirs.double(), rtol=1e-3, atol=1e-3, equal_nan=True)
    else:
        wrong = ours != theirs if ours.dtype == theirs.dtype else ours.to(torch.int64) != theirs.to(torch.int64)
    return [("value", _first(wrong, ours, theirs, path))] if wrong.any() else []


def _exact(reference, theirs):
    """The reference as f64, if there is one of the right shape."""
    try:
        made = None if reference is None else reference()
    except Exception:  # PyTorch does not compute it in f64
        return None
    if not isinstance(made, torch.Tensor) or tuple(made.shape) != tuple(theirs.shape) or made.is_complex():
        return None
    return made.detach().double()


def _further(x, y, exact, epsilon, finite):
    """Where Tenon is further from the exact number than PyTorch's own error explains."""
    ours, theirs, known = (x - exact).abs(), (y - exact).abs(), torch.isfinite(exact)
    worst = theirs[known & finite].max().item() if (known & finite).any() else 0.0
    within = ours <= 4 * torch.clamp(theirs, min=epsilon * 4) + 8 * epsilon * exact.abs() + 2 * worst
    return known & ~within
