"""Tenon: tensors on any device that a plug-in describes.

    import tenon
    x = tenon.tensor([[1.0, -2.0]])         # also from a NumPy array or any object with DLPack
    y = tenon.relu(x) + 1                    # every op that `tenon ops` lists is a function
    numpy.asarray(y)                         # no copy if the host can address the memory
"""

from tenon._tenon import *
from tenon._tenon import __version__
from tenon._tensor import allclose, as_tensor, equal, get_default_dtype, is_floating_point, is_tensor, numel, promote_types, set_default_dtype, unique, unique_consecutive
from tenon._functions import *
from tenon._statistics import *
from tenon import _absent, _constructors, _later, _packages, _printing, autograd
from tenon._printing import set_printoptions
from tenon.autograd import enable_grad, get_float32_matmul_precision, inference_mode, no_grad, precision, set_float32_matmul_precision, set_grad_enabled
from tenon._control import cond, scan, while_loop
from tenon._limits import finfo, iinfo
from tenon.amp import autocast, get_autocast_dtype, is_autocast_enabled
from tenon.compiling import compile
from tenon.files import load, save
from tenon.profiling import profile
from tenon.random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from tenon.reporting import doctor
from tenon._vmap import vmap

inf, nan, pi, e = 1e999, 1e999 - 1e999, 3.141592653589793, 2.718281828459045
newaxis = None

# PyTorch's names of dtypes. They hide built-in functions of Python only in this module.
half, float, double, short, int, long = float16, float32, float64, int16, int32, int64

# PyTorch's names for memory orders, shapes and the device on which a thread makes tensors.
contiguous_format, preserve_format, channels_last, channels_last_3d = "contiguous_format", "preserve_format", "channels_last", "channels_last_3d"
Size = tuple
set_default_device, get_default_device = set_device, device.current

# Modules that many programs do not need are loaded on first use.
globals().update((name, _later.Later("tenon." + name)) for name in (
    "array_api", "backends", "cuda", "distributions", "fft", "func", "global_", "linalg", "nn", "onnx", "onnxruntime", "optim", "signal", "special",
    "testing", "utils", "version"))
globals().update(_constructors.constructors)
globals().update(_absent.absent)
