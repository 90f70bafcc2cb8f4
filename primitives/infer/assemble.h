// Shapes of ops that join tensors and take them apart: concat, split, pad, gather.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

// Joins at least one shape. The shapes are equal except along `axis` (0 <= axis < rank). An empty tensor of rank 1 can
// be joined to any shape, as in PyTorch.
Result<Dims> concat(std::string_view op, std::span<const Dims> shapes, int32_t axis);

// The dims of the parts of `dims` along `axis`. `sizes` has the length of each part; they add up to the dim.
Result<std::vector<Dims>> split(std::string_view op, const Dims& dims, int32_t axis, std::span<const int64_t> sizes);

// The lengths of the parts if an axis is cut into pieces of `size`; the last one may be shorter (torch.split).
Result<std::vector<int64_t>> split_sizes(std::string_view op, int64_t dim, int64_t size);

// `low` and `high` hold one number per axis. `mode` is EP_PAD_*. With EP_PAD_CONSTANT numbers may be
// negative: they crop.
Result<Dims> pad(std::string_view op, const Dims& dims, int32_t mode, std::span<const int64_t> low,
                 std::span<const int64_t> high);

// EP_GATHER_SLICES: dims with `axis` replaced by those of `indices` (ONNX Gather, torch.index_select, embedding).
Result<Dims> gather_slices(std::string_view op, const Dims& dims, int32_t axis, const Dims& indices);
// EP_GATHER_ELEMENTS: the dims of `indices`, of equal rank, no longer than `dims` except along `axis` (torch.gather).
Result<Dims> gather_elements(std::string_view op, const Dims& dims, int32_t axis, const Dims& indices);

}  // namespace tenon::infer
