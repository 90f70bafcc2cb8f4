"""L-BFGS (Liu and Nocedal 1989), with the line search of Nocedal and Wright, section 3.5."""

from __future__ import annotations

from typing import Any, Callable

import tenon
from tenon import Tensor
from tenon.optim.optimizer import Optimizer

# The loss and its gradient.
Value = tuple[float, Tensor]


class LBFGS(Optimizer):
    """L-BFGS: quasi-Newton steps from the last changes of parameters and gradient (Liu and Nocedal 1989).

    Each call step(closure) makes up to max_iter iterations. The closure clears the gradients, computes the loss, calls
    backward() and returns the loss.

    Args:
        max_iter, max_eval: the greatest numbers of iterations and of calls of the closure per step.
        tolerance_grad: ends the step if no element of the gradient is greater than this.
        tolerance_change: ends the step if the loss or all parameters change by less than this.
        history_size: the number of changes that are kept.
        line_search_fn: None always moves by lr; "strong_wolfe" searches for a length.

    Errors: ValueError for more than one group of parameters.
    """

    def __init__(self, params: Any, lr: Any = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None, *, maximize: bool = False) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                                  "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
                                  "line_search_fn": line_search_fn, "maximize": maximize})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def _parameters(self) -> list[Tensor]:
        listed: list[Tensor] = self.param_groups[0]["params"]
        return listed

    def _gradient(self) -> Tensor:
        parts = [tenon.reshape(tenon.zeros_like(each) if each.grad is None else each.grad, (-1,)) for each in self._parameters()]
        joined = tenon.concat(parts, 0)
        return -joined if self.param_groups[0]["maximize"] else joined

    def _move(self, length: float, direction: Tensor) -> None:
        begin = 0
        for each in self._parameters():
            each.add_(tenon.reshape(tenon.narrow(direction, 0, begin, each.numel()), tuple(each.shape)), alpha=length)
            begin += each.numel()

    def _loss(self, closure: Callable[[], Any]) -> tuple[Any, float]:
        with tenon.enable_grad():
            given = closure()
        return given, -float(given) if self.param_groups[0]["maximize"] else float(given)

    def _value_at(self, closure: Callable[[], Any], kept: list[Tensor], length: float, direction: Tensor) -> Value:
        """Returns the loss and the gradient after a step, and takes the step back."""
        self._move(length, direction)
        value = self._loss(closure)[1], self._gradient()
        for each, old in zip(self._parameters(), kept):
            each.copy_(old)
        return value

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves the parameters up to max_iter times, until the loss hardly changes. Returns the first loss."""
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure, which computes the loss and its gradients")
        with tenon.no_grad():
            return self._search(closure)

    def _search(self, closure: Callable[[], Any]) -> Any:
        group, state = self.param_groups[0], self.state.setdefault(self._parameters()[0], {})
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first, loss = self._loss(closure)
        state["func_evals"] += 1
        gradient, evaluations = self._gradient(), 1
        if _greatest(gradient) <= group["tolerance_grad"]:
            return first
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, gradient, group["history_size"])
            before, state["prev_loss"], state["prev_flat_grad"] = loss, loss, gradient
            length = float(group["lr"])
            if state["n_iter"] == 1:
                length *= min(1.0, 1.0 / float(tenon.sum(tenon.abs(gradient)).item()))
            slope = _product(gradient, direction)
            state["d"], state["t"] = direction, length
            if slope > -group["tolerance_change"]:
                break
            last = iteration == group["max_iter"]
            loss, gradient, length, calls = self._advance(closure, (loss, gradient), length, direction, slope, group["max_eval"] - evaluations, last)
            state["t"] = length
            evaluations += calls
            state["func_evals"] += calls
            if (last or evaluations >= group["max_eval"] or _greatest(gradient) <= group["tolerance_grad"]
                    or _greatest(direction) * abs(length) <= group["tolerance_change"] or abs(loss - before) < group["tolerance_change"]):
                break
        return first

    def _advance(self, closure: Callable[[], Any], value: Value, length: float, direction: Tensor, slope: float, most: int,
                 last: bool) -> tuple[float, Tensor, float, int]:
        """Moves along a direction. Returns the loss and the gradient there, the length of the step, and the number
        of calls of the closure."""
        calls = 0
        if self.param_groups[0]["line_search_fn"] is not None:
            kept = [each.detach().clone() for each in self._parameters()]
            search = LineSearch(lambda at: self._value_at(closure, kept, at, direction), value, direction, slope, self.param_groups[0]["tolerance_change"], most)
            loss, gradient, length = search.run(length)
            self._move(length, direction)
            return loss, gradient, length, search.calls
        self._move(length, direction)
        loss, gradient = value
        if not last:
            loss, gradient, calls = self._loss(closure)[1], self._gradient(), 1
        return loss, gradient, length, calls

    @staticmethod
    def _direction(state: dict[str, Any], gradient: Tensor, history: int) -> Tensor:
        """Returns the direction of the next step by the two-loop recursion (Nocedal and Wright, algorithm 7.4)."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -gradient
        change, moved = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = _product(change, moved)
        changes, moves, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        if curvature > 1e-10:
            if len(changes) == history:
                for each in (changes, moves, inverses):
                    each.pop(0)
            changes.append(change)
            moves.append(moved)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / _product(change, change)
        factors, q = state.setdefault("al", [0.0] * history), -gradient
        for i in range(len(changes) - 1, -1, -1):
            factors[i] = _product(moves[i], q) * inverses[i]
            q = q - changes[i] * factors[i]
        result: Tensor = q * state["H_diag"]
        for i in range(len(changes)):
            result = result + moves[i] * (factors[i] - _product(changes[i], result) * inverses[i])
        return result


def _product(x: Tensor, y: Tensor) -> float:
    return float(tenon.dot(x, y).item())


def _greatest(x: Tensor) -> float:
    return float(tenon.amax(tenon.abs(x)).item())


def _cubic_least(x1: float, f1: float, g1: float, x2: float, f2: float, g2: float, bounds: tuple[float, float] | None = None) -> float:
    """Returns the minimum, within bounds, of the cubic through two points with slopes g1 and g2."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    if x1 == x2:
        return (low + high) / 2
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:
        return (low + high) / 2
    d2 = square**0.5
    rise = g2 - g1 if x1 <= x2 else g1 - g2
    if rise + 2 * d2 == 0:  # the cubic is a straight line
        return (low + high) / 2
    if x1 <= x2:
        place = x2 - (x2 - x1) * ((g2 + d2 - d1) / (rise + 2 * d2))
    else:
        place = x1 - (x1 - x2) * ((g1 + d2 - d1) / (rise + 2 * d2))
    return min(max(place, low), high)


class LineSearch:
    """Finds a step length that meets the strong Wolfe conditions. A point is a tuple (length, loss, gradient,
    slope)."""

    def __init__(self, value_at: Callable[[float], Value], value: Value, direction: Tensor, slope: float, tolerance: float, most: int) -> None:
        self.value_at, self.direction, self.tolerance, self.most = value_at, direction, tolerance, most
        self.start = (0.0, value[0], value[1], slope)
        self.calls = self.iterations = 0

    def _point(self, length: float) -> tuple[float, float, Tensor, float]:
        loss, gradient = self.value_at(length)
        self.calls += 1
        return length, loss, gradient, _product(gradient, self.direction)

    def _too_high(self, point: tuple[float, float, Tensor, float]) -> bool:
        return point[1] > self.start[1] + 1e-4 * point[0] * self.start[3]

    def _flat(self, point: tuple[float, float, Tensor, float]) -> bool:
        return abs(point[3]) <= -0.9 * self.start[3]

    def run(self, length: float) -> tuple[float, Tensor, float]:
        """Searches from `length` on. Returns the loss, the gradient and the length that were found."""
        bracket = self._bracket(length)
        if len(bracket) == 2:
            bracket = self._zoom(bracket)
        best = min(bracket, key=lambda point: point[1])
        return best[1], best[2], best[0]

    def _bracket(self, length: float) -> list[Any]:
        """Returns one point that meets the conditions, or two points that have such a point between them."""
        before, point = self.start, self._point(length)
        while self.iterations < self.most:
            if self._too_high(point) or (self.iterations > 1 and point[1] >= before[1]):
                return [before, point]
            if self._flat(point):
                return [point]
            if point[3] >= 0:
                return [before, point]
            bounds = (point[0] + 0.01 * (point[0] - before[0]), point[0] * 10)
            place = _cubic_least(before[0], before[1], before[3], point[0], point[1], point[3], bounds)
            before, point = point, self._point(place)
            self.iterations += 1
        return [self.start, point]

    def _zoom(self, bracket: list[Any]) -> list[Any]:
        stuck = False
        size = _greatest(self.direction)
        low = 0 if bracket[0][1] <= bracket[1][1] else 1
        while self.iterations < self.most and abs(bracket[1][0] - bracket[0][0]) * size >= self.tolerance:
            (x1, f1, _, g1), (x2, f2, _, g2) = bracket
            place, stuck = self._inside(_cubic_least(x1, f1, g1, x2, f2, g2), min(x1, x2), max(x1, x2), stuck)
            point = self._point(place)
            self.iterations += 1
            if self._too_high(point) or point[1] >= bracket[low][1]:
                bracket[1 - low] = point
                low = 0 if bracket[0][1] <= bracket[1][1] else 1
                continue
            if self._flat(point):
                bracket[low] = point
                return [bracket[low]]
            if point[3] * (bracket[1 - low][0] - bracket[low][0]) >= 0:
                bracket[1 - low] = bracket[low]
            bracket[low] = point
        return [bracket[low]]

    @staticmethod
    def _inside(place: float, least: float, most: float, stuck: bool) -> tuple[float, bool]:
        """Moves `place` away from the ends if the previous place was near an end too."""
        margin = 0.1 * (most - least)
        if min(most - place, place - least) >= margin:
            return place, False
        if stuck or place >= most or place <= least:
            return (most - margin if abs(place - most) < abs(place - least) else least + margin), False
        return place, True
