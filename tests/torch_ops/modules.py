"""The cases of one entry of module_db: the constructor, the state, the results, the gradients and the state afterwards."""

import inspect
import re

import tenon
import torch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.opinfo.core import SampleInput

from compare import compare
from names import DTYPES, Missing, NotApplicable
from record import Record
from samples import seed
from values import Memo, back, call_text, converted, error_text, flat, raised, sample_size, to_tenon

# Arguments whose default is not seen in the signature.
USUAL = {"proj_size": 0}


def title_of(info):
    return "module " + info.name


def run(channel, index, start):
    info = module_db[index]
    record = Record(channel, title_of(info), start)
    cls = getattr(tenon.nn, info.name.replace("nn.", "", 1), None)
    if cls is None:
        return record.end(False)
    for dtype in (torch.float32, torch.float64):
        if dtype == torch.float64 and "Lazy" in info.name:
            continue
        for training in (True, False):
            for given in _inputs(info, record, dtype, training):
                made, fed = given.constructor_input, given.forward_input
                kwargs = {**made.kwargs, **({"->": list(fed.args), **fed.kwargs} if fed else {})}
                sample = SampleInput(list(made.args), kwargs=kwargs)
                case = Case(info, cls, record, dtype, training, made, fed, sample)
                record.case("train" if training else "eval", dtype, sample, case.faults)
    return record.end(True, "tenon." + info.name)


def _inputs(info, record, dtype, training):
    seed(record.title, dtype)
    try:
        return info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    except Exception as error:
        record.say(m="r", op=record.title, n=record.number, phase="samples", dtype=str(dtype)[6:], r="nosamples", detail=str(error)[:300])
        return []


class Case:
    def __init__(self, info, cls, record, dtype, training, made, fed, sample):
        self.info, self.cls, self.record, self.dtype, self.training = info, cls, record, dtype, training
        self.made, self.fed, self.sample, self.memo = made, fed, sample, Memo()
        self.lazy = "Lazy" in info.name

    def faults(self):
        torch.manual_seed(1)
        theirs = self.info.module_cls(*self.made.args, **self.made.kwargs).to(self.dtype)
        theirs.train(self.training)
        lacks = []
        ours = self._constructed(lacks)
        if ours is None:
            return lacks
        if lacks:
            self.record.say(m="r", op=self.record.title, n=self.record.number, phase="constructor", dtype=str(self.dtype)[6:], r="fault", kind=lacks[0][0],
                            detail=lacks[0][1], text=call_text(self.sample), w=sample_size(self.sample))
        if self.fed is None:
            return None
        if self.lazy:
            theirs(*self.fed.args, **self.fed.kwargs)
            args, kwargs = self._arguments()
            ours(*args, **kwargs)
        if self.dtype == torch.float64:
            ours = ours.double() if hasattr(ours, "double") else ours.to(DTYPES[self.dtype])
        ours.train(self.training)
        faults = []
        if sorted(theirs.state_dict()) != sorted(ours.state_dict()):
            faults.append(("state_dict", f"torch {list(theirs.state_dict())} Tenon {list(ours.state_dict())}"))
        try:
            ours.load_state_dict({name: to_tenon(value) for name, value in theirs.state_dict().items()})
        except Exception as error:
            return faults + [("load_state_dict", error_text(error))]
        return self._compared(theirs, ours, faults)

    def _constructed(self, lacks):
        """Tenon's module, without the keywords that it does not know, which `lacks` then names; None: it cannot be made."""
        given = dict(self.made.kwargs)
        while True:
            try:
                return self.cls(*[converted(each, self.memo) for each in self.made.args], **{name: converted(value, self.memo) for name, value in given.items()})
            except (Missing, NotApplicable):
                raise
            except Exception as error:
                unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
                if not unknown or unknown[1] not in given:
                    lacks.append(("constructor", error_text(error)))
                    return None
                name = unknown[1]
            lacks.append(("constructor-keyword", f"{self.cls.__name__}(... {name}={given[name]!r}) is not known"))
            if given.pop(name) != self._usual(name):
                return None

    def _usual(self, name):
        signatures = [inspect.signature(cls.__init__).parameters for cls in self.info.module_cls.__mro__]
        having = [each[name].default for each in signatures if name in each]
        return USUAL.get(name, having[0] if having else None)

    def _arguments(self):
        return [converted(each, self.memo, True) for each in self.fed.args], {name: converted(each, self.memo, True) for name, each in self.fed.kwargs.items()}

    def _compared(self, theirs, ours, faults):
        before = {name: value.clone() for name, value in theirs.state_dict().items()}
        drawn = self.training and any(getattr(each, "p", 0) and type(each).__name__.startswith("Dropout") for each in theirs.modules())
        try:
            expected = theirs(*self.fed.args, **self.fed.kwargs)
        except Exception:
            return "torch-raises"
        try:
            args, kwargs = self._arguments()
            given = ours(*args, **kwargs)
            result = back(given)
        except (Missing, NotApplicable):
            raise
        except Exception as error:
            return faults + [("error", error_text(error))]
        reference = (lambda: self._in_f64(before)) if self.dtype == torch.float32 and not self.lazy else None
        faults += compare(result, expected, reference, slack=4, random_values=drawn)
        if drawn or any(kind in ("shape", "structure") for kind, _ in faults):
            return faults
        faults += self._gradients(theirs, ours, expected, given)
        for name, value in theirs.state_dict().items():
            if name in ours.state_dict():
                faults += compare(back(ours.state_dict()[name]), value, None, slack=4, path=f"state {name} after ")
        return faults

    def _in_f64(self, state):
        wide = self.info.module_cls(*self.made.args, **self.made.kwargs).double()
        wide.train(self.training)
        wide.load_state_dict({name: value.double() if value.dtype.is_floating_point else value for name, value in state.items()})
        return wide(*raised(list(self.fed.args)), **raised(dict(self.fed.kwargs)))

    def _gradients(self, theirs, ours, expected, given):
        wanted = [each for each in flat(expected, torch.Tensor) if each.requires_grad]
        results = [each for each in flat(given, tenon.Tensor) if each.requires_grad]
        if len(wanted) != len(results):
            return [("no-gradient", f"{len(results)} results want gradients, torch {len(wanted)}")]
        inputs = [each for each in flat([*self.fed.args, *self.fed.kwargs.values()], torch.Tensor) if each.requires_grad and each.is_leaf]
        named = dict(theirs.named_parameters())
        leaves = [*inputs, *named.values()]
        if not wanted or not leaves:
            return []
        generator = torch.Generator().manual_seed(3)
        weights = [torch.randn(each.shape, generator=generator, dtype=torch.float64).to(each.dtype) for each in wanted]
        mine = dict(ours.named_parameters())
        own = [*(self.memo.made[id(each)][0] for each in inputs), *(mine[name] for name in named)]
        right = torch.autograd.grad(wanted, leaves, weights, allow_unused=True)
        try:
            got = tenon.autograd.grad(results, own, [to_tenon(each) for each in weights], allow_unused=True)
        except Exception as error:
            return [("error", "backward: " + error_text(error))]
        faults = []
        for name, x, y in zip([*("input",) * len(inputs), *named], got, right):
            if x is not None and y is not None:
                faults += compare(back(x), y.detach(), None, slack=40, path=f"grad of {name} ")
                continue
            other = back(x) if y is None else y
            if other is not None and bool((other != 0).any()):
                faults.append(("none-gradient", f"{name}: {'Tenon' if x is None else 'torch'} has none"))
        return faults
