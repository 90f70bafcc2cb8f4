"""Recurrent layers: RNN, LSTM, GRU, and their cells. Weights have PyTorch's names and order: weight_ih_l0, ..."""

from __future__ import annotations

import itertools
import math
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import init
from tenon.nn.module import Module
from tenon.nn.parameter import Parameter
from tenon.nn.utils.rnn import PackedSequence

_GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


class _Recurrent(Module):
    _kind = ""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, device: Any = None, dtype: Any = None, proj_size: int = 0) -> None:
        super().__init__()
        self.proj_size, width = proj_size, proj_size or hidden_size
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        rows, made = _GATES[self._kind] * hidden_size, dtype or tenon.float32
        self._names: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:1 + bidirectional]:
                columns = input_size if layer == 0 else width * (1 + bidirectional)
                shapes: list[tuple[str, tuple[int, ...]]] = [("weight_ih", (rows, columns)), ("weight_hh", (rows, width))]
                if bias:
                    shapes += [("bias_ih", (rows,)), ("bias_hh", (rows,))]
                if proj_size:
                    shapes.append(("weight_hr", (proj_size, hidden_size)))
                names = []
                for name, shape in shapes:
                    names.append(f"{name}_l{layer}{suffix}")
                    setattr(self, names[-1], Parameter(tenon.empty(shape, dtype=made, device=device)))
                self._names.append(names)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new random parameters."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for each in self.parameters():
            init.uniform_(each, -bound, bound)

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters: one list per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names]

    def _weights(self) -> list[Any]:
        return [each for layer in self.all_weights for each in layer]

    def _given(self, input: Tensor) -> tuple[Tensor, bool]:
        if input.ndim not in (2, 3):
            raise tenon.InvalidArgument(f"{self._kind}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        if input.size(-1) != self.input_size:
            raise tenon.InvalidArgument(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")
        alone = input.ndim == 2
        return (tenon.unsqueeze(input, 0 if self.batch_first else 1) if alone else input), alone

    def _state(self, state: Tensor | None, input: Tensor, alone: bool) -> Tensor:
        if state is not None:
            return tenon.unsqueeze(state, 1) if alone else state
        batch = input.size(0 if self.batch_first else 1)
        return tenon.zeros((self.num_layers * (1 + self.bidirectional), batch, self.hidden_size), dtype=input.dtype, device=input.device)

    def _settings(self) -> tuple[Any, ...]:
        return self.bias, self.num_layers, self.dropout, self.training, self.bidirectional, self.batch_first

    def _back(self, result: Tensor, alone: bool) -> Tensor:
        return tenon.squeeze(result, 0 if self.batch_first else 1) if alone else result

    def _layer(self, input: Tensor, states: list[Tensor], weights: list[Any], backward: bool) -> tuple[Tensor, list[Tensor]]:
        """Runs one layer in one direction over (steps, batch, channels), from the states (batch, channels)."""
        result, *found = self._op(tenon.flip(input, 0) if backward else input, *[tenon.unsqueeze(each, 0) for each in states], weights, self.bias)
        return tenon.flip(result, 0) if backward else result, [tenon.squeeze(each, 0) for each in found]

    def _op(self, *args: Any) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _packed(self, packed: PackedSequence, states: list[Tensor]) -> tuple[PackedSequence, list[Tensor]]:
        """Runs all layers over packed sequences. Steps with the same number of sequences run together."""
        if packed.data.size(-1) != self.input_size:
            raise tenon.InvalidArgument(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {packed.data.size(-1)}")
        sizes, data = packed.batch_sizes.tolist(), packed.data
        runs = [(batch, len(list(steps))) for batch, steps in itertools.groupby(sizes)]
        if packed.sorted_indices is not None:
            states = [tenon.index_select(each, 1, packed.sorted_indices) for each in states]
        last: list[list[Tensor]] = []
        directions = 1 + self.bidirectional
        for layer in range(self.num_layers):
            if layer and self.dropout:
                data = tenon.dropout(data, self.dropout, self.training)
            results = []
            for direction in range(directions):
                i = layer * directions + direction
                result, found = self._run(data, runs, [each[i] for each in states], self.all_weights[i], direction == 1)
                results.append(result)
                last.append(found)
            data = tenon.concat(results, -1) if directions > 1 else results[0]
        ends = [tenon.stack(list(each), 0) for each in zip(*last)]
        if packed.unsorted_indices is not None:
            ends = [tenon.index_select(each, 1, packed.unsorted_indices) for each in ends]
        return packed._with(data), ends

    def _run(self, data: Tensor, runs: list[tuple[int, int]], first: list[Tensor], weights: list[Any], backward: bool) -> tuple[Tensor, list[Tensor]]:
        """Runs one layer in one direction. A sequence begins with its first state, and ends with the state after it."""
        parts = list(zip(runs, tenon.split(data, [batch * steps for batch, steps in runs], 0)))
        results, ended = [], []
        states = [each[:0] for each in first] if backward else first
        for (batch, steps), part in reversed(parts) if backward else parts:
            if backward:
                states = [tenon.concat([each, begin[each.size(0):batch]], 0) for each, begin in zip(states, first)]
            elif batch < states[0].size(0):
                ended.append([each[batch:] for each in states])
                states = [each[:batch] for each in states]
            result, states = self._layer(tenon.unflatten(part, 0, (steps, batch)), states, weights, backward)
            results.append(tenon.flatten(result, 0, 1))
        ended.append(states)
        ends = [tenon.concat(list(each), 0) for each in zip(*reversed(ended))]
        return tenon.concat(results[::-1] if backward else results, 0), ends

    def _first(self, state: Tensor | None, packed: PackedSequence, width: int) -> Tensor:
        if state is not None:
            return state
        shape = (self.num_layers * (1 + self.bidirectional), packed.batch_sizes[0].item(), width)
        return tenon.zeros(shape, dtype=packed.data.dtype, device=packed.data.device)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional:
            text += f", bidirectional={self.bidirectional}"
        return text


class RNN(_Recurrent):
    """Layers of h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu, along a sequence (Elman 1990).

    Args:
        input_size, hidden_size: the lengths of x and h.
        num_layers: layers, each of which reads the results of the previous one.
        nonlinearity: "tanh" or "relu".
        batch_first: tensors are (batch, length, channels) instead of (length, batch, channels).
        dropout: the probability of dropout between layers in training.
        bidirectional: each layer also runs from the end to the beginning and joins both results.

    Called with input (length, batch, input_size) and an optional first state (layers * directions, batch, hidden_size).
    Returns the results of all steps, (length, batch, directions * hidden_size), and the last state. The input may be a
    PackedSequence (nn.utils.rnn); the results are one then.
    """

    _kind = "RNN"

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        self.nonlinearity = nonlinearity

    def _op(self, *args: Any) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = (tenon.rnn_tanh if self.nonlinearity == "tanh" else tenon.rnn_relu)(*args)
        return found

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        if isinstance(input, PackedSequence):
            packed, states = self._packed(input, [self._first(hx, input, self.hidden_size)])
            return packed, states[0]
        given, alone = self._given(input)
        result, state = self._op(given, self._state(hx, given, alone), self._weights(), *self._settings())
        return self._back(result, alone), tenon.squeeze(state, 1) if alone else state


class GRU(_Recurrent):
    """Layers of gated recurrent units (Cho et al. 2014). Arguments and results are those of RNN."""

    _kind = "GRU"

    def _op(self, *args: Any) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = tenon.gru(*args)
        return found

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        if isinstance(input, PackedSequence):
            packed, states = self._packed(input, [self._first(hx, input, self.hidden_size)])
            return packed, states[0]
        given, alone = self._given(input)
        result, state = tenon.gru(given, self._state(hx, given, alone), self._weights(), *self._settings())
        return self._back(result, alone), tenon.squeeze(state, 1) if alone else state


class LSTM(_Recurrent):
    """Layers of long short-term memory (Hochreiter and Schmidhuber 1997). Arguments and results are those of RNN.

    The state is a pair: hidden state and cell state. proj_size > 0 projects the hidden state to that length (Sak
    et al. 2014).

    Example:
        >>> out, (h, c) = tenon.nn.LSTM(8, 16)(tenon.ones(5, 2, 8))
        >>> out.shape, h.shape
        ((5, 2, 16), (1, 2, 16))
    """

    _kind = "LSTM"

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None) -> None:
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"proj_size must be at least 0 and smaller than hidden_size, {hidden_size}, but it is {proj_size}")
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype, proj_size)

    def _projected(self, input: Tensor, hidden: Tensor | None, cell: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Computes an LSTM whose hidden state is a projection of the gated output (Sak et al. 2014)."""
        x = tenon.transpose(input, 0, 1) if self.batch_first else input
        count, batch = len(self._names), x.size(1)
        made = {"dtype": x.dtype, "device": x.device}
        hidden = tenon.zeros((count, batch, self.proj_size), **made) if hidden is None else hidden
        cell = tenon.zeros((count, batch, self.hidden_size), **made) if cell is None else cell
        states, cells, directions = [], [], 1 + self.bidirectional
        for i, weights in enumerate(self.all_weights):
            if i % directions == 0:
                source = tenon.dropout(x, self.dropout, self.training) if i and self.dropout else x
                parts = []
            outputs, h, c = self._steps(source, hidden[i], cell[i], weights, i % directions == 1)
            parts.append(outputs)
            states.append(h)
            cells.append(c)
            if i % directions == directions - 1:
                x = tenon.concat(parts, -1) if directions > 1 else parts[0]
        return tenon.transpose(x, 0, 1) if self.batch_first else x, tenon.stack(states), tenon.stack(cells)

    def _steps(self, x: Tensor, h: Tensor, c: Tensor, weights: list[Any], backward: bool) -> tuple[Tensor, Tensor, Tensor]:
        of_input, of_hidden, *biases, projection = weights
        sums = tenon.linear(x, of_input, biases[0] if biases else None)
        outputs = []
        for step in range(x.size(0))[::-1 if backward else 1]:
            i, f, g, o = tenon.chunk(sums[step] + tenon.linear(h, of_hidden, biases[1] if biases else None), 4, -1)
            c = tenon.sigmoid(f) * c + tenon.sigmoid(i) * tenon.tanh(g)
            h = tenon.linear(tenon.sigmoid(o) * tenon.tanh(c), projection)
            outputs.append(h)
        return tenon.stack(outputs[::-1] if backward else outputs), h, c

    def _op(self, *args: Any) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = tenon.lstm(*args)
        return found

    def _layer(self, input: Tensor, states: list[Tensor], weights: list[Any], backward: bool) -> tuple[Tensor, list[Tensor]]:
        if not self.proj_size:
            return super()._layer(input, states, weights, backward)
        result, h, c = self._steps(input, states[0], states[1], weights, backward)
        return result, [h, c]

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        if isinstance(input, PackedSequence):
            first = hx or (None, None)
            states = [self._first(first[0], input, self.proj_size or self.hidden_size), self._first(first[1], input, self.hidden_size)]
            packed, ends = self._packed(input, states)
            return packed, (ends[0], ends[1])
        given, alone = self._given(input)
        hidden, cell = (None, None) if hx is None else hx
        if self.proj_size:
            states = [None if each is None else tenon.unsqueeze(each, 1) if alone else each for each in (hidden, cell)]
            result, h, c = self._projected(given, states[0], states[1])
            return self._back(result, alone), (tenon.squeeze(h, 1), tenon.squeeze(c, 1)) if alone else (h, c)
        result, h, c = tenon.lstm(given, self._state(hidden, given, alone), self._state(cell, given, alone), self._weights(), *self._settings())
        return self._back(result, alone), (tenon.squeeze(h, 1), tenon.squeeze(c, 1)) if alone else (h, c)


class _Cell(Module):
    _kind = ""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows, made = _GATES[self._kind] * hidden_size, dtype or tenon.float32
        self.weight_ih = Parameter(tenon.empty((rows, input_size), dtype=made, device=device))
        self.weight_hh = Parameter(tenon.empty((rows, hidden_size), dtype=made, device=device))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(tenon.empty((rows,), dtype=made, device=device)) if bias else None)
        bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
        for each in self.parameters():
            init.uniform_(each, -bound, bound)

    def _zeros(self, input: Tensor) -> Tensor:
        return tenon.zeros(tuple(input.shape[:-1]) + (self.hidden_size,), dtype=input.dtype, device=input.device)

    def _sums(self, input: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        return tenon.linear(input, self.weight_ih, self.bias_ih), tenon.linear(hidden, self.weight_hh, self.bias_hh)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else f", bias={self.bias}")


class RNNCell(_Cell):
    """One step of RNN: input (batch, input_size) and state (batch, hidden_size) to the next state."""

    _kind = "RNN"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        of_input, of_hidden = self._sums(input, self._zeros(input) if hx is None else hx)
        return tenon.tanh(of_input + of_hidden) if self.nonlinearity == "tanh" else tenon.relu(of_input + of_hidden)


class LSTMCell(_Cell):
    """One step of LSTM: input (batch, input_size) and the pair of states to the next pair."""

    _kind = "LSTM"

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        hidden, cell = (self._zeros(input), self._zeros(input)) if hx is None else hx
        of_input, of_hidden = self._sums(input, hidden)
        i, f, g, o = tenon.chunk(of_input + of_hidden, 4, -1)
        cell = tenon.sigmoid(f) * cell + tenon.sigmoid(i) * tenon.tanh(g)
        return tenon.sigmoid(o) * tenon.tanh(cell), cell


class GRUCell(_Cell):
    """One step of GRU: input (batch, input_size) and state (batch, hidden_size) to the next state."""

    _kind = "GRU"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        hidden = self._zeros(input) if hx is None else hx
        of_input, of_hidden = self._sums(input, hidden)
        r_i, z_i, n_i = tenon.chunk(of_input, 3, -1)
        r_h, z_h, n_h = tenon.chunk(of_hidden, 3, -1)
        new = tenon.tanh(n_i + tenon.sigmoid(r_i + r_h) * n_h)
        keep = tenon.sigmoid(z_i + z_h)
        return new + keep * (hidden - new)


__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"]
