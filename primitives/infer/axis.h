// Axes as users write them (negative ones count from the end) turned into axes as kernels want them.
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

// `axis` in [-rank, rank) as one in [0, rank). A tensor of rank 0 takes 0 and -1, as in PyTorch, and gives 0.
Result<int32_t> axis(std::string_view op, int64_t axis, int32_t rank);

// The bit mask of `axes`, none named twice. No axes at all means all of them.
Result<uint32_t> axis_mask(std::string_view op, std::span<const int64_t> axes, int32_t rank);

// `dims`, or an error if a dim is negative or the tensor would have more bytes than int64 can count.
Result<Dims> checked(std::string_view op, const Dims& dims);

}  // namespace tenon::infer
