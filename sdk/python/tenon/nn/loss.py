"""Losses as modules. Each stores the arguments of the function with its name in tenon.nn.functional."""

from __future__ import annotations

from typing import Any, Callable

from tenon import Tensor
from tenon.nn import functional
from tenon.nn.module import Module


class _Loss(Module):
    """A loss whose settings are keywords. Settings that are tensors become buffers."""

    _function: Callable[..., Tensor]
    _settings: dict[str, Any] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = list(self._settings)
        if len(args) > len(names):
            raise TypeError(f"{type(self).__name__} takes {len(names)} settings, not {len(args)}")
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in self._settings or name in given:
                raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument '{name}'")
            given[name] = value
        for name, value in {**self._settings, **given}.items():
            if isinstance(value, Tensor) or name in ("weight", "pos_weight"):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *inputs: Tensor) -> Tensor:
        return type(self)._function(*inputs, **{name: getattr(self, name) for name in self._settings})


def _loss(name: str, function: Callable[..., Tensor], **settings: Any) -> type:
    body = {"_function": staticmethod(function), "_settings": {**settings, "reduction": "mean"}, "__doc__": function.__doc__, "__module__": __name__}
    return type(name, (_Loss,), body)


MSELoss = _loss("MSELoss", functional.mse_loss)
L1Loss = _loss("L1Loss", functional.l1_loss)
SoftMarginLoss = _loss("SoftMarginLoss", functional.soft_margin_loss)
KLDivLoss = _loss("KLDivLoss", functional.kl_div, log_target=False)
NLLLoss = _loss("NLLLoss", functional.nll_loss, weight=None, ignore_index=-100)
CrossEntropyLoss = _loss("CrossEntropyLoss", functional.cross_entropy, weight=None, ignore_index=-100, label_smoothing=0.0)
BCELoss = _loss("BCELoss", functional.binary_cross_entropy, weight=None)
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", functional.binary_cross_entropy_with_logits, weight=None, pos_weight=None)
SmoothL1Loss = _loss("SmoothL1Loss", functional.smooth_l1_loss, beta=1.0)
HuberLoss = _loss("HuberLoss", functional.huber_loss, delta=1.0)
PoissonNLLLoss = _loss("PoissonNLLLoss", functional.poisson_nll_loss, log_input=True, full=False, eps=1e-8)
GaussianNLLLoss = _loss("GaussianNLLLoss", functional.gaussian_nll_loss, full=False, eps=1e-6)
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", functional.hinge_embedding_loss, margin=1.0)
MarginRankingLoss = _loss("MarginRankingLoss", functional.margin_ranking_loss, margin=0.0)
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", functional.cosine_embedding_loss, margin=0.0)
TripletMarginLoss = _loss("TripletMarginLoss", functional.triplet_margin_loss, margin=1.0, p=2.0, eps=1e-6, swap=False)
MultiLabelSoftMarginLoss = _loss("MultiLabelSoftMarginLoss", functional.multilabel_soft_margin_loss, weight=None)
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", functional.multilabel_margin_loss)
CTCLoss = _loss("CTCLoss", functional.ctc_loss, blank=0, reduction="mean", zero_infinity=False)
TripletMarginWithDistanceLoss = _loss("TripletMarginWithDistanceLoss", functional.triplet_margin_with_distance_loss, distance_function=None, margin=1.0,
                                      swap=False)
MultiMarginLoss = _loss("MultiMarginLoss", functional.multi_margin_loss, p=1, margin=1.0, weight=None)


class CosineSimilarity(Module):
    """Cosine of the angle between the vectors along the axis dim of two tensors."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """p-norm of the difference of two tensors along the last axis. eps is added to the difference."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functional.pairwise_distance(x1, x2, float(self.norm), self.eps, self.keepdim)


__all__ = ["BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CosineSimilarity", "CrossEntropyLoss", "GaussianNLLLoss", "HingeEmbeddingLoss",
           "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss",
           "PairwiseDistance", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
           "TripletMarginWithDistanceLoss"]
