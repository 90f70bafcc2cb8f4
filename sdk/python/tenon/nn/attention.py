"""Attention and transformers (Vaswani et al. 2017). Parameters have PyTorch's names and shapes."""

from __future__ import annotations

import copy
from typing import Any, Callable

import tenon
from tenon import Tensor
from tenon.nn import functional, init
from tenon.nn.activation import Dropout
from tenon.nn.containers import ModuleList
from tenon.nn.linear import Linear
from tenon.nn.module import Module
from tenon.nn.normalization import LayerNorm
from tenon.nn.parameter import Parameter


class MultiheadAttention(Module):
    """Attention with several heads. Each head attends with its own projections; a last projection joins the heads.

    Args:
        embed_dim: the channels of queries and results. num_heads must divide it.
        dropout: the probability with which an attention weight becomes 0 in training.
        add_bias_kv: appends a trained key and value to the sequence of keys. add_zero_attn appends zeros.
        kdim, vdim: the channels of keys and values; None takes embed_dim.
        batch_first: tensors are (batch, length, channels) instead of (length, batch, channels).

    Called with query, key and value, with or without the batch axis. Returns the result, which has the shape of
    query, and the weights (batch, length, keys), or None if need_weights is False.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False, add_zero_attn: bool = False,
                 kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first, self.add_zero_attn = embed_dim, num_heads, dropout, batch_first, add_zero_attn
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        made = {"dtype": dtype or tenon.float32, "device": device}
        self._one_weight = self.kdim == self.vdim == embed_dim
        shapes: dict[str, Any] = {"in_proj_weight": (3 * embed_dim, embed_dim)} if self._one_weight else {}
        separate = {"q_proj_weight": (embed_dim, embed_dim), "k_proj_weight": (embed_dim, self.kdim), "v_proj_weight": (embed_dim, self.vdim)}
        for name in ("in_proj_weight", *separate):
            shape = shapes.get(name) if self._one_weight else separate.get(name)
            self.register_parameter(name, Parameter(tenon.empty(shape, **made)) if shape else None)
        self.register_parameter("in_proj_bias", Parameter(tenon.zeros((3 * embed_dim,), **made)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, Parameter(tenon.empty((1, 1, embed_dim), **made)) if add_bias_kv else None)
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        for each in (self.bias_k, self.bias_v):
            if each is not None:
                init.xavier_normal_(each)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
                attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        alone = query.ndim == 2
        if alone:
            query, key, value = (tenon.unsqueeze(each, 0) for each in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else tenon.unsqueeze(key_padding_mask, 0)
        elif not self.batch_first:
            query, key, value = (tenon.transpose(each, 0, 1) for each in (query, key, value))
        weights = tenon.chunk(self.in_proj_weight, 3, 0) if self._one_weight else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None, None, None) if self.in_proj_bias is None else tenon.chunk(self.in_proj_bias, 3, 0)
        mask = functional.joint_mask(attn_mask, key_padding_mask, query, self.num_heads)
        result, attention = functional.multi_head_attention(
            query, key, value, self.num_heads, weights, biases, self.out_proj.weight, self.out_proj.bias, self.bias_k, self.bias_v, self.add_zero_attn,
            self.dropout, self.training, mask, need_weights, average_attn_weights)
        if alone:
            return result[0], None if attention is None else attention[0]
        return result if self.batch_first else tenon.transpose(result, 0, 1), attention


def _activation(activation: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return tenon.relu if activation == "relu" else tenon.gelu


class _Layer(Module):
    def _feed_forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return result

    def _make(self, d_model: int, nhead: int, dim_feedforward: int, dropout: float, activation: Any, layer_norm_eps: float, batch_first: bool,
              norm_first: bool, bias: bool, device: Any, dtype: Any, attentions: tuple[str, ...], norms: int) -> None:
        for name in attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype))
        self.linear1 = Linear(d_model, dim_feedforward, bias, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device=device, dtype=dtype)
        self.norm_first = norm_first
        for i in range(1, norms + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype))
        for i in range(1, norms + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward net. Each is followed by dropout, the addition of its input, and a layer norm.

    norm_first applies the norm to the input of each part instead."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu", layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self._make(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype,
                   ("self_attn",), 2)

    def _attend(self, x: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor:
        result: Tensor = self.dropout1(self.self_attn(x, x, x, key_padding_mask=padding, need_weights=False, attn_mask=mask)[0])
        return result

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        if self.norm_first:
            src = src + self._attend(self.norm1(src), src_mask, src_key_padding_mask)
            last: Tensor = src + self.dropout2(self._feed_forward(self.norm2(src)))
            return last
        src = self.norm1(src + self._attend(src, src_mask, src_key_padding_mask))
        result: Tensor = self.norm2(src + self.dropout2(self._feed_forward(src)))
        return result


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the result of an encoder (`memory`), and a feed-forward net. Norms are placed as in
    TransformerEncoderLayer."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu", layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self._make(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype,
                   ("self_attn", "multihead_attn"), 3)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        def own(x: Tensor) -> Tensor:
            made: Tensor = self.dropout1(self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask)[0])
            return made

        def other(x: Tensor) -> Tensor:
            made: Tensor = self.dropout2(self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask)[0])
            return made

        x = tgt
        for part, norm in ((own, self.norm1), (other, self.norm2), (lambda y: self.dropout3(self._feed_forward(y)), self.norm3)):
            x = x + part(norm(x)) if self.norm_first else norm(x + part(x))
        return x


class TransformerEncoder(Module):
    """num_layers copies of encoder_layer, one after the other, then `norm` if there is one."""

    def __init__(self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool | None = None) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """num_layers copies of decoder_layer, one after the other, then `norm` if there is one."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder for src, and a decoder for tgt that attends to the result of the encoder."""

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
                 dropout: float = 0.1, activation: Any = "relu", custom_encoder: Any = None, custom_decoder: Any = None, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*settings), num_encoder_layers, norm())
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*settings), num_decoder_layers, norm())
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for each in self.parameters():
            if each.ndim > 1:
                init.xavier_uniform_(each)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        result: Tensor = self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return result

    @staticmethod
    def generate_square_subsequent_mask(sz: int) -> Tensor:
        """Returns the (sz, sz) mask that lets each position attend to itself and earlier positions: 0 on and below
        the diagonal, -inf above."""
        return functional.additive_mask(tenon.triu(tenon.ones((sz, sz)), 1) > 0, tenon.float32)


__all__ = ["MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]
