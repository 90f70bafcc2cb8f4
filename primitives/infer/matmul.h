// Matrix products with PyTorch's rules: a 1-d argument is a row (left) or a column (right) whose axis vanishes from the
// result; leading axes are batches and broadcast.
#pragma once

#include <cstdint>
#include <string_view>

#include "primitives/infer/view.h"
#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

struct MatmulShape {
  Dims dims;  // of the result as the user sees it
  Dims full;  // of the result as the primitive writes it: [batch..., m, n]
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

Result<MatmulShape> matmul(std::string_view op, const Dims& a, const Dims& b);

// The left (right) argument as the primitive reads it: rank of `full`, batch axes that repeat with stride 0.
View matmul_left(const MatmulShape& shape, const View& a);
View matmul_right(const MatmulShape& shape, const View& b);

// x [..., k] times the transpose of weight [n, k], bias [n] or nothing: dims [..., n].
Result<Dims> linear(std::string_view op, const Dims& x, const Dims& weight, const Dims* bias);

}  // namespace tenon::infer
