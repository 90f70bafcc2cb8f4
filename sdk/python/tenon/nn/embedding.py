"""Embeddings: rows of a table, chosen by index."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import functional, init
from tenon.nn.module import Module
from tenon.nn.parameter import Parameter


class _Table(Module):
    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, weight: Tensor | None, device: Any, dtype: Any) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError("padding_idx must be within num_embeddings")
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        if weight is not None:
            self.weight = Parameter(weight)
            return
        self.weight = Parameter(tenon.empty((num_embeddings, embedding_dim), dtype=dtype or tenon.float32, device=device))
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with tenon.no_grad():
                self.weight[self.padding_idx] = 0


class Embedding(_Table):
    """Returns rows of a trained table: indices (...) give (..., embedding_dim).

    Args:
        num_embeddings: the number of rows.
        padding_idx: a row that begins as zeros and receives no gradient.
        max_norm, norm_type, scale_grad_by_freq, sparse: as in tenon.nn.functional.embedding.

    Example:
        >>> tenon.nn.Embedding(10, 4)(tenon.tensor([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None, device: Any = None, dtype: Any = None) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """Creates an embedding whose table is `embeddings` (rows, width). freeze: the table is not trained."""
        made = cls(embeddings.shape[0], embeddings.shape[1], padding_idx, _weight=embeddings)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input: Tensor) -> Tensor:
        return functional.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        return text


class EmbeddingBag(_Table):
    """Reduces the table rows of each bag of indices by sum, mean or maximum. See tenon.nn.functional.embedding_bag."""

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None, include_last_offset: bool = False,
                 padding_idx: int | None = None, device: Any = None, dtype: Any = None) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return functional.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
                                        per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


__all__ = ["Embedding", "EmbeddingBag"]
