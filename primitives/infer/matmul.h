// Matrix products with PyTorch's rules: a 1-d argument is a row (left) or a column (right) whose axis vanishes from the
// result; leading axes are batches and broadcast.
#pragma once

#include <cstdint>
#include <string_view>

#include "primitives/infer/view.h"
#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

template <class T>
struct BasicMatmulShape {
  BasicDims<T> dims;  // of the result as the user sees it
  BasicDims<T> full;  // of the result as the primitive writes it: [batch..., m, n]
  T m = 0;
  T n = 0;
  T k = 0;
};
using MatmulShape = BasicMatmulShape<int64_t>;

Result<MatmulShape> matmul(std::string_view op, const Dims& a, const Dims& b);

// The left (right) argument as the primitive reads it: rank of `full`, batch axes that repeat with stride 0.
View matmul_left(const MatmulShape& shape, const View& a);
View matmul_right(const MatmulShape& shape, const View& b);

// x [..., k] times the transpose of weight [n, k], bias [n] or nothing: dims [..., n].
Result<Dims> linear(std::string_view op, const Dims& x, const Dims& weight, const Dims* bias);

}  // namespace tenon::infer
