"""Mixed precision: products in a narrow floating-point type, everything that needs range or exactness in f32.

    scaler = tenon.amp.GradScaler()
    with tenon.autocast("cpu", dtype=tenon.float16):
        loss = loss_of(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import _tenon
from tenon._tenon import Tensor
from tenon.autograd import _Decorator

# The ops whose floating arguments a block changes, as in PyTorch's lists for CUDA. Other ops promote arguments of
# different dtypes as usual. Arguments of f64, in-place calls and calls with out= keep their dtypes.
_NARROW = ("addbmm", "addmm", "addmv", "addr", "attention", "baddbmm", "bmm", "conv", "conv1d", "conv2d", "conv3d", "conv_transpose", "einsum",
           "gru", "linear", "lstm", "matmul", "mm", "mv", "prelu", "rnn_relu", "rnn_tanh", "scaled_dot_product_attention", "tensordot")
_FULL = ("acos", "arccos", "arcsin", "asin", "binary_cross_entropy", "binary_cross_entropy_with_logits", "cdist", "cosh",
         "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "cumprod", "cumsum", "dist", "erfinv", "exp", "expm1", "float_power",
         "gaussian_nll_loss", "group_norm", "hinge_embedding_loss", "huber_loss", "instance_norm", "kl_div", "l1_loss", "layer_norm", "log", "log10",
         "log1p", "log2", "log_softmax", "logcumsumexp", "logsumexp", "margin_ranking_loss", "mse_loss", "nll_loss", "norm", "normalize",
         "pairwise_distance", "poisson_nll_loss", "pow", "prod", "reciprocal", "rms_norm", "rsqrt", "sinh", "smooth_l1_loss",
         "soft_margin_loss", "softmax", "softmin", "softplus", "std", "std_mean", "sum", "tan", "triplet_margin_loss", "var", "var_mean",
         "vector_norm")
_tenon._set_autocast_policies(list(_NARROW), list(_FULL))

_DTYPES = (tenon.float16, tenon.bfloat16, tenon.float32)


class _Block:
    """The innermost autocast block of a thread. Compiled functions compare its dtype."""

    @property
    def dtype(self) -> Any:
        return _tenon._autocast_dtype()

    def set(self, dtype: Any) -> None:
        _tenon._set_autocast_dtype(dtype)


block = _Block()


class autocast(_Decorator):
    """A `with` block or decorator in which products (matmul, linear, convolutions, attention, recurrent layers) take
    their arguments in `dtype`, and losses, norms, softmax, sums and exponential functions in f32.

    Enter it for the forward pass only; gradients get the dtypes that forward chose. A compiled function takes the
    block in which it is called.

    Args:
        device_type: the kind of device, such as "cpu" or "cuda". Ops of every device follow the block.
        dtype: float16 or bfloat16; by default bfloat16 on "cpu", float16 elsewhere. float32 changes no product.
        enabled: False turns casts off inside the block, also in an outer block.
        cache_enabled: accepted and ignored; arguments are cast at each call.

    Errors: ValueError for another dtype.

    Example:
        >>> with tenon.autocast("cpu"):
        ...     y = tenon.ones(2, 2) @ tenon.ones(2, 2)
        >>> y.dtype
        tenon.bfloat16
    """

    def __init__(self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise TypeError(f"autocast(): device_type must be a str such as 'cpu', not {type(device_type).__name__}.")
        if dtype is None:
            dtype = tenon.bfloat16 if device_type.split(":")[0] == "cpu" else tenon.float16
        if dtype not in _DTYPES:
            raise ValueError(f"autocast(): dtype must be float16, bfloat16 or float32, not {dtype}.")
        self._arguments = (device_type, dtype, enabled, cache_enabled)
        self._dtype = dtype if enabled else None
        self._before: list[Any] = []

    def _parameters(self) -> tuple[Any, ...]:
        return self._arguments

    def __enter__(self) -> autocast:
        self._before.append(block.dtype)
        block.set(self._dtype)
        return self

    def __exit__(self, *error: Any) -> None:
        block.set(self._before.pop())


def like_now(function: Any) -> Any:
    """Returns a function that calls `function` under the autocast block of this moment, whenever it is called."""
    dtype = block.dtype

    def call(*args: Any, **kwargs: Any) -> Any:
        before = block.dtype
        block.set(dtype)
        try:
            return function(*args, **kwargs)
        finally:
            block.set(before)
    return call


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """True inside an autocast block of this thread."""
    return block.dtype is not None


def get_autocast_dtype(device_type: str = "cpu") -> Any:
    """Returns the dtype of products in the innermost autocast block, or the default dtype outside of all blocks."""
    return block.dtype or (tenon.bfloat16 if device_type == "cpu" else tenon.float16)


class GradScaler:
    """Multiplies the loss by a factor, so that small gradients do not vanish in f16, and adapts the factor.

    scale(loss).backward() makes scaled gradients. step(optimizer) divides them by the factor and calls
    optimizer.step(), unless a gradient is infinite or NaN. update() halves the factor after such a step, and doubles it
    after `growth_interval` good steps. bfloat16 has the range of f32 and needs no scaler.

    Args:
        device: accepted and ignored.
        init_scale, growth_factor, backoff_factor, growth_interval: the first factor, and its changes.
        enabled: False makes all methods pass through.
    """

    def __init__(self, device: str = "cpu", init_scale: float = 2.0 ** 16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True) -> None:
        if enabled and growth_factor <= 1.0:
            raise ValueError(f"GradScaler: growth_factor must be greater than 1, not {growth_factor}.")
        if enabled and not 0.0 < backoff_factor < 1.0:
            raise ValueError(f"GradScaler: backoff_factor must be between 0 and 1, not {backoff_factor}.")
        self._enabled = enabled
        self._scale, self._growth_factor, self._backoff_factor = float(init_scale), float(growth_factor), float(backoff_factor)
        self._growth_interval, self._good_steps = growth_interval, 0
        self._found: dict[int, bool] = {}  # by id of an optimiser whose gradients are unscaled: some are not finite
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """Returns a tensor, or the tensors of a list, tuple or dict, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, dict):
            return type(outputs)((key, self.scale(each)) for key, each in outputs.items())
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(each) for each in outputs])
        raise TypeError(f"GradScaler.scale(): outputs must be a Tensor or contain Tensors, not {type(outputs).__name__}.")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients by the factor, for example before they are clipped. Once per step and optimiser."""
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        gradients = [each.grad for group in optimizer.param_groups for each in group["params"] if each.grad is not None]
        if not gradients:
            raise ValueError("GradScaler: no parameter of the optimizer has a gradient.")
        finite = []
        with tenon.no_grad(), autocast(enabled=False):
            for gradient in gradients:
                gradient.mul_(1.0 / self._scale)
                finite.append(tenon.all(tenon.isfinite(gradient)))
            self._found[id(optimizer)] = not bool(tenon.all(tenon.stack(finite)))

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls optimizer.step(*args, **kwargs) with unscaled gradients. Returns its result, or None if a gradient was
        not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Adapts the factor after the steps of all optimisers, or sets it to `new_scale`."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._found.values()):
            self._scale, self._good_steps = self._scale * self._backoff_factor, 0
        else:
            self._good_steps += 1
            if self._good_steps == self._growth_interval:
                grown = self._scale * self._growth_factor
                self._scale, self._good_steps = (grown if math.isfinite(grown) else self._scale), 0
        self._found.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """Returns the factor, or 1 if the scaler is disabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Returns the state as plain numbers; an empty dict if the scaler is disabled."""
        if not self._enabled:
            return {}
        return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval, "_growth_tracker": self._good_steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state that state_dict() returned.

        Errors: RuntimeError for an empty state, which comes from a disabled scaler.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._scale, self._growth_factor = state_dict["scale"], state_dict["growth_factor"]
        self._backoff_factor, self._growth_interval = state_dict["backoff_factor"], state_dict["growth_interval"]
        self._good_steps = state_dict["_growth_tracker"]
