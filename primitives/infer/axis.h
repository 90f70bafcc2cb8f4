// Turns axes as users write them (negative ones count from the end) into axes in [0, rank).
//
// The first argument of every rule of infer/ is the name of the op. The sentence of a failure begins with that name:
// `softmax: axis 3 is out of range for rank 2 (expected -2 to 1).`
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

// Turns `axis` in [-rank, rank) into an axis in [0, rank). A tensor of rank 0 accepts 0 and -1, as in PyTorch, and
// returns 0.
Result<int32_t> axis(std::string_view op, int64_t axis, int32_t rank);

// The bit mask of `axes`. An axis may be named only once. An empty list means all axes.
Result<uint32_t> axis_mask(std::string_view op, std::span<const int64_t> axes, int32_t rank);

// Returns `dims`. Errors: a dim is negative; the number of bytes of the tensor exceeds int64.
Result<Dims> checked(std::string_view op, const Dims& dims);

}  // namespace tenon::infer
