"""The cases of one entry of op_db."""

import itertools

import torch
from torch.testing._internal.common_methods_invocations import op_db

from calls import forward, into, method, refused
from gradients import gradient
from names import Missing, function_of
from record import Record
from samples import DTYPES, layouts, seed, thin
from values import sample_size

MOST = dict(fwd=60, nc=12, ref=80, extra=60, method=4, inplace=4, out=3, grad=25, gradgrad=8, operator=3, error_inputs=60)
FEW = (torch.float32, torch.int64, torch.bool)
FIRST_REFERENCES = 2500
LARGEST_REFERENCE = 2_000_000


def title_of(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def run(channel, index, start):
    op = op_db[index]
    record = Record(channel, title_of(op), start)
    try:
        ours, where = function_of(op)
    except Missing:
        return record.end(False)
    entry = Entry(op, ours, record)
    supported = op.supported_dtypes("cpu")
    for dtype in DTYPES:
        if dtype in supported:
            entry.of_dtype(dtype)
    entry.errors()
    return record.end(True, where)


class Entry:
    """An entry, its functions on both sides, and the record of its cases."""

    def __init__(self, op, ours, record):
        self.op, self.theirs, self.ours, self.record = op, op.op, ours, record

    def seed(self, dtype):
        seed(self.op.name + self.op.variant_test_name, dtype)

    def cases(self, phase, dtype, samples, body):
        for sample in thin(samples, MOST[phase.replace("inplace_operator", "operator")]):
            self.record.case(phase, dtype, sample, lambda sample=sample: body(sample))

    def forward(self, sample, **how):
        return forward(self.op, self.theirs, self.ours, sample, **how)

    def of_dtype(self, dtype):
        self.seed(dtype)
        try:
            samples = thin(list(self.op.sample_inputs("cpu", dtype, requires_grad=False)), MOST["fwd"])
        except Exception as error:
            self.record.say(m="r", op=self.record.title, n=self.record.number, phase="samples", dtype=str(dtype)[6:], r="nosamples", detail=str(error)[:200])
            return
        self.cases("fwd", dtype, samples, self.forward)
        if dtype in FEW:
            self.cases("nc", dtype, samples, self.not_contiguous)
        self.references(dtype)
        self.layouts(dtype)
        self.methods(dtype, [each for each in samples if isinstance(each.input, torch.Tensor)])
        if self.op.supports_out and dtype in (torch.float32, torch.int64):
            self.cases("out", dtype, samples, lambda sample: into(self.op, self.theirs, self.ours, sample))
        self.gradients(dtype)

    def not_contiguous(self, sample):
        try:
            turned = sample.noncontiguous()
        except Exception:
            return "no-noncontiguous"
        return self.forward(turned)

    def references(self, dtype):
        if dtype not in (torch.float32, torch.int64, torch.bfloat16, torch.uint8) or getattr(self.op, "reference_inputs_func", None) is None:
            return
        self.seed(dtype)
        try:
            made = thin(list(itertools.islice(self.op.reference_inputs("cpu", dtype, requires_grad=False), FIRST_REFERENCES)), MOST["ref"])
        except Exception:
            made = []
        self.cases("ref", dtype, [each for each in made if sample_size(each) < LARGEST_REFERENCE], self.forward)

    def layouts(self, dtype):
        if dtype not in (torch.float32, torch.int64, torch.float16, torch.bool):
            return
        self.seed(dtype)
        try:
            made = layouts(self.op, dtype)
        except Exception:
            made = []
        self.cases("extra", dtype, made, self.forward)

    def methods(self, dtype, samples):
        of_tensor, in_place = self.op.get_method(), self.op.get_inplace()
        if callable(of_tensor) and dtype in FEW:
            self.cases("method", dtype, samples, lambda sample: self.method(sample, of_tensor, self.op.name, "missing-method", alias=False))
        if callable(in_place) and dtype in (*FEW, torch.bfloat16):
            whole = [each for each in thin(samples, MOST["inplace"]) if not getattr(each, "broadcasts_input", False)]
            self.cases("inplace", dtype, whole, lambda sample: self.method(sample, in_place, self.op.name + "_", "missing-inplace", mutates=True))
        self.operators(dtype, samples)

    def method(self, sample, function, name, missing, **how):
        return method(self.op, self.theirs, self.ours, sample, getattr(function, "__name__", name), missing, **how)

    def operators(self, dtype, samples):
        plain = thin([each for each in samples if len(each.args) == 1 and not each.kwargs], MOST["operator"])
        for what in ("operator", "inplace_operator"):
            function, mutates = getattr(self.op, what + "_variant", None), what != "operator"
            if function is None or dtype not in FEW:
                continue
            fit = [each for each in plain if not (mutates and getattr(each, "broadcasts_input", False))]
            self.cases(what, dtype, fit, lambda sample, f=function, m=mutates: forward(self.op, f, f, sample, alias=False, mutates=m))

    def gradients(self, dtype):
        if dtype not in (torch.float32, torch.float64) or not self.op.supports_autograd or dtype not in self.op.supported_backward_dtypes("cpu"):
            return
        self.seed(dtype)
        try:
            samples = list(self.op.sample_inputs("cpu", dtype, requires_grad=True))
        except Exception:
            samples = []
        self.cases("grad", dtype, samples, lambda sample: gradient(self.op, self.theirs, self.ours, sample, False))
        if dtype == torch.float64 and self.op.supports_gradgrad:
            self.cases("gradgrad", dtype, samples, lambda sample: gradient(self.op, self.theirs, self.ours, sample, True))

    def errors(self):
        if self.op.error_inputs_func is None:
            return
        self.seed("err")
        try:
            cases = thin(list(self.op.error_inputs("cpu")), MOST["error_inputs"])
        except Exception:
            cases = []
        for case in cases:
            self.record.case("error_inputs", None, case.sample_input, lambda case=case: refused(self.op, self.theirs, self.ours, case, self.record.differs))
