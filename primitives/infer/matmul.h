// Matrix products with PyTorch's rules: a 1-d argument is a row (left) or a column (right), and the result lacks its
// axis. Leading axes are batches and are broadcast.
#pragma once

#include <cstdint>
#include <string_view>

#include "primitives/infer/view.h"
#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

template <class T>
struct BasicMatmulShape {
  BasicDims<T> dims;  // the dims of the result for the user
  BasicDims<T> full;  // the dims of the result for the primitive: [batch..., m, n]
  T m = 0;
  T n = 0;
  T k = 0;
};
using MatmulShape = BasicMatmulShape<int64_t>;

Result<MatmulShape> matmul(std::string_view op, const Dims& a, const Dims& b);

// The left (right) argument as the primitive reads it: with the rank of `full`, and stride 0 along repeated batch axes.
View matmul_left(const MatmulShape& shape, const View& a);
View matmul_right(const MatmulShape& shape, const View& b);

// x [..., k] times the transpose of weight [n, k], plus bias [n] if not null. Returns dims [..., n].
Result<Dims> linear(std::string_view op, const Dims& x, const Dims& weight, const Dims* bias);

}  // namespace tenon::infer
