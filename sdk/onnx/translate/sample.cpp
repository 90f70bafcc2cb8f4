#include "sdk/onnx/translate/sample.h"

#include "core/ops/ops.h"

namespace tenon::onnx {
namespace {

// The indices and weights of one tap along one axis; both [n, p].
struct Tap {
  Tensor index, weight;
};

// Keys' cubic kernel at distance x from 0 to 2.
Tensor cubic_weight(const Tensor& distance, bool near) {
  constexpr double kA = -0.75;
  const Tensor& x = distance;
  if (near) return add(mul(mul(sub(mul(x, Scalar(kA + 2)), Scalar(kA + 3)), x), x), Scalar(1.0));
  return sub(mul(add(mul(sub(mul(x, Scalar(kA)), Scalar(5 * kA)), x), Scalar(8 * kA)), x), Scalar(4 * kA));
}

Tensor mirrored(const Tensor& index, int64_t length, bool corners) {
  const int64_t period = corners ? 2 * (length - 1) : 2 * length;
  if (period == 0) return mul(index, Scalar(0));
  const Tensor within = remainder(index, Scalar(period));
  return minimum(within, sub(Scalar(corners ? period : period - 1), within));
}

// Moves the index into the axis, and sets the weight to 0 where there is no element.
Tap inside(Tap tap, int64_t length, Border border, bool corners) {
  if (border == Border::zeros) {
    const Tensor there = logical_and(ge(tap.index, Scalar(0)), lt(tap.index, Scalar(length)));
    tap.weight = where(there, tap.weight, Scalar(0.0));
  }
  if (border == Border::reflect) tap.index = mirrored(tap.index, length, corners);
  tap.index = clamp(tap.index, Scalar(0), Scalar(length - 1));
  return tap;
}

std::vector<Tap> taps_of(const Tensor& position, int64_t length, Taps taps, Border border, bool corners) {
  const bool nearest = taps == Taps::nearest;
  const Tensor base = nearest ? round(position) : floor(position);
  const Tensor first = cast(base, DType::i64);
  std::vector<Tap> list;
  if (nearest) return {inside({first, ones_like(position)}, length, border, corners)};
  const Tensor fraction = sub(position, base);
  const int64_t low = taps == Taps::linear ? 0 : -1, high = taps == Taps::linear ? 1 : 2;
  for (int64_t offset = low; offset <= high; ++offset) {
    Tensor weight;
    if (taps == Taps::linear) {
      weight = offset == 0 ? sub(Scalar(1.0), fraction) : fraction;
    } else {
      const Tensor distance = offset <= 0 ? sub(fraction, Scalar(static_cast<double>(offset)))
                                          : sub(Scalar(static_cast<double>(offset)), fraction);
      weight = cubic_weight(distance, offset == 0 || offset == 1);
    }
    list.push_back(inside({add(first, Scalar(offset)), weight}, length, border, corners));
  }
  return list;
}

}  // namespace

Tensor sampled(const Tensor& x, const std::vector<Tensor>& positions, Taps taps, Border border, bool corners) {
  const int64_t n = x.dim(0), c = x.dim(1), p = positions[0].dim(1);
  int64_t plane = 1;
  std::vector<Tap> combined;  // products of the taps of all axes so far
  for (size_t axis = 0; axis < positions.size(); ++axis) {
    const int64_t length = x.dim(static_cast<int64_t>(axis) + 2);
    plane *= length;
    const std::vector<Tap> own = taps_of(positions[axis], length, taps, border, corners);
    std::vector<Tap> next;
    for (const Tap& tap : own) {
      if (combined.empty()) next.push_back(tap);
    }
    for (const Tap& before : combined) {
      for (const Tap& tap : own)
        next.push_back({add(mul(before.index, Scalar(length)), tap.index), mul(before.weight, tap.weight)});
    }
    combined = std::move(next);
  }
  const Tensor flat = reshape(x, {n, c, plane});
  Tensor sum;
  for (const Tap& tap : combined) {
    const Tensor taken = gather(flat, 2, expand(unsqueeze(tap.index, 1), {n, c, p}));
    const Tensor part = mul(taken, cast(unsqueeze(tap.weight, 1), x.dtype()));
    sum = sum.defined() ? add(sum, part) : part;
  }
  return sum;
}

}  // namespace tenon::onnx
