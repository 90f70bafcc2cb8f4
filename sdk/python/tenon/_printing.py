"""Tensors as text, in PyTorch's layout: tensor([[1.0000, 2.5000]], dtype=tenon.float64).

Floats have four digits after the point, or none if all are whole. They have exponents if the greatest magnitude
is above 1e8 or more than 1000 times the least, or if the least is below 1e-4. A tensor of more than 1000 elements
shows three elements at both ends of each long axis, and only these are read.
"""

import math

from tenon import _tenon

# The exact value of an f64 has at most this many digits after the point.
_MOST_DIGITS = 1074

_options = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, sci_mode=None):
    """Sets how tensors are printed. Options that are None stay unchanged.

    Args:
        precision: digits after the point, at most 1074.
        threshold: tensors with more elements are shortened.
        edgeitems: elements shown at both ends of an axis of a shortened tensor.
        linewidth: characters per line.
        sci_mode: True always prints exponents, False never.
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth, "sci_mode": sci_mode}
    _options.update({name: value for name, value in given.items() if value is not None})


class _Floats:
    """Formats the floats of one tensor in one form and one width."""

    def __init__(self, values):
        digits = min(_options["precision"], _MOST_DIGITS)
        magnitudes = [abs(v) for v in values if v != 0 and math.isfinite(v)]
        shown = [v for v in values if v != 0 and math.isfinite(v)]
        self.whole = all(m == math.floor(m) for m in magnitudes)
        self.width = 1
        greatest, least = max(magnitudes, default=1), min(magnitudes, default=1)
        exponents = greatest / least > 1000 or greatest > 1e8 or (not self.whole and least < 1e-4)
        if _options["sci_mode"] is not None:
            exponents = _options["sci_mode"]
        self.form = f"{{:.{digits}e}}" if exponents else "{:.0f}." if self.whole else f"{{:.{digits}f}}"
        if shown:
            self.width = max(len(self.form.format(v)) for v in shown)

    def __call__(self, value):
        text = self.form.format(value) if math.isfinite(value) else f"{value:.0f}"
        return text.rjust(self.width)


class _Others:
    def __init__(self, values):
        self.width = max((len(str(v)) for v in values), default=1)

    def __call__(self, value):
        return str(value).rjust(self.width)


def _flat(nested):
    if not isinstance(nested, list):
        return [nested]
    return [value for part in nested for value in _flat(part)]


def _ends(tensor):
    """Returns the tensor without the elements that are not shown, and for each axis if it was cut."""
    edge, cut = _options["edgeitems"], []
    for axis, size in enumerate(tensor.shape):
        cut.append(tensor.numel() > _options["threshold"] and size > 2 * edge)
    # Axes are cut after all were checked, since cutting changes numel().
    for axis, is_cut in enumerate(cut):
        if is_cut:
            size = tensor.shape[axis]
            parts = [_tenon.narrow(tensor, axis, 0, edge), _tenon.narrow(tensor, axis, size - edge, edge)]
            tensor = _tenon.concat(parts, axis)
    return tensor, cut


def _lines(values, cut, form, indent):
    """Returns the text of nested lists. The text begins at column `indent`."""
    if not isinstance(values, list):
        return form(values)
    edge = _options["edgeitems"]
    if cut and len(cut) > 1:
        parts = [_lines(part, cut[1:], form, indent + 1) for part in values]
        if cut[0]:
            parts.insert(edge, "...")
        return "[" + ("," + "\n" * (len(cut) - 1) + " " * (indent + 1)).join(parts) + "]"
    words = [form(value) for value in values]
    if cut[0]:
        words.insert(edge, " ...")
    per_line = max(1, (_options["linewidth"] - indent) // (form.width + 2))
    rows = [", ".join(words[i:i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"


def _with_suffixes(text, suffixes, indent):
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options["linewidth"]:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


def to_text(tensor, name="tensor"):
    prefix = name + "("
    if tensor.is_global:  # reading its elements would need a call on every rank
        return f"{prefix}{list(tensor.shape)}, dtype={tensor.dtype!r}, placement={tensor.placement!r}, sbp={tensor.sbp!r})"
    plain = tensor.detach()
    suffixes = []
    if tensor.device != _tenon.Device.current():
        suffixes.append(f"device='{tensor.device}'")
    usual = (_tenon.f32,) if tensor.numel() == 0 else (_tenon.f32, _tenon.i64, _tenon.bool)
    if tensor.numel() == 0 and tensor.shape != (0,):
        suffixes.append(f"size={tuple(tensor.shape)}")
    if tensor.dtype not in usual:
        suffixes.append(f"dtype={tensor.dtype!r}")
    maker = _tenon._maker_of(tensor)
    if maker is not None:
        suffixes.append(f"grad_fn={tensor.grad_fn!r}")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    if tensor.numel() == 0:
        return _with_suffixes(prefix + "[]", suffixes, len(prefix))
    shown, cut = _ends(plain)
    values = shown.tolist()
    form = (_Floats if tensor.dtype.is_floating_point else _Others)(_flat(values))
    return _with_suffixes(prefix + _lines(values, cut, form, len(prefix)), suffixes, len(prefix))
