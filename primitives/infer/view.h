// Views: other dims and strides over the same elements. Nothing is copied here. The comment of a rule says where only a
// copy can have the layout asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

// A tensor's layout; `offset` in elements. Rules that move the first element add to the offset they were given.
struct View {
  Dims dims;
  Dims strides;
  int64_t offset = 0;
};

// `target` with its one -1 replaced by the length that fits. It must have as many elements as `dims`.
Result<Dims> reshape(std::string_view op, const Dims& dims, std::span<const int64_t> target);

// The strides under which the elements of `view` read in row-major order have shape `target` (same number of elements),
// or nothing if only a copy can have it.
std::optional<Dims> reshape_strides(const View& view, const Dims& target);

// `dims` with dims[start] to dims[end] (both included, normalised) merged into one.
Result<Dims> flatten(std::string_view op, const Dims& dims, int64_t start, int64_t end);

// What start:stop:step means on an axis of `dim` elements, as in Python: negative bounds count from the end, bounds
// outside are moved to the edge. `step` may be negative, but not 0.
template <class T>
struct BasicSliceRange {
  T start = 0;       // of the first element taken
  T length = 0;      // elements taken
  int64_t step = 1;  // 1 where fewer than two are taken
};
using SliceRange = BasicSliceRange<int64_t>;
Result<SliceRange> slice_range(std::string_view op, int64_t dim, int64_t start, int64_t stop, int64_t step);

// Takes `range` of `axis`, which is normalised. range.step > 0: strides are never negative, so a caller with a negative
// step gathers instead.
View slice(const View& view, int32_t axis, const SliceRange& range);

// Takes element `index` along `axis`, which vanishes. A negative index counts from the end.
Result<View> select(std::string_view op, const View& view, int64_t axis, int64_t index);

// Drops those of `axes` that have length 1, and keeps the others, as PyTorch does. No axes means every axis of
// length 1.
Result<View> squeeze(std::string_view op, const View& view, std::span<const int64_t> axes);
// Inserts axes of 1 so that they stand at the positions named in the result.
Result<View> unsqueeze(std::string_view op, const View& view, std::span<const int64_t> axes);

// True if no two elements share an offset: the view may then be written to. Says false of some layouts whose axes
// interleave without meeting; nothing Tenon makes has them.
bool is_injective(const Dims& dims, const Dims& strides);

}  // namespace tenon::infer
