"""Nets: modules with parameters, layers, losses. The names, arguments, parameters and state_dict are PyTorch's, so the
weights of one serve the other.

    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()"""

from tenon.nn import functional as functional
from tenon.nn import init as init
from tenon.nn import utils as utils
from tenon.nn.activation import *
from tenon.nn.attention import *
from tenon.nn.containers import *
from tenon.nn.convolution import *
from tenon.nn.embedding import *
from tenon.nn.lazy import *
from tenon.nn.linear import *
from tenon.nn.loss import *
from tenon.nn.module import Module as Module
from tenon.nn.normalization import *
from tenon.nn.parameter import Buffer as Buffer
from tenon.nn.parameter import Parameter as Parameter
from tenon.nn.pooling import *
from tenon.nn.recurrent import *


_RANKS = "Spread the module over ranks with module.to_global (sdk/python/GLOBAL.md)."
_LAZY = "A lazy module has no parameters or buffers before its first call."
_INSTEAD = {"DataParallel": _RANKS, "SyncBatchNorm": _RANKS, "parallel": _RANKS, "UninitializedParameter": _LAZY, "UninitializedBuffer": _LAZY}


def __getattr__(name: str) -> object:
    instead = _INSTEAD.get(name)
    raise AttributeError(f"module 'tenon.nn' has no attribute '{name}'" + (f". {instead}" if instead else ""))
