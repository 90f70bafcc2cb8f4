// Views: other dims and strides over the same elements. Nothing is copied here. A rule's comment says when only a copy
// can have the requested layout.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::infer {

// A tensor's layout; `offset` is in elements. Rules that move the first element add to the given offset.
struct View {
  Dims dims;
  Dims strides;
  int64_t offset = 0;
};

// `target` with its single -1 replaced by the length that fits. `target` must have as many elements as `dims`.
Result<Dims> reshape(std::string_view op, const Dims& dims, std::span<const int64_t> target);

// The strides for shape `target` over the elements of `view` in row-major order (same number of elements). Nothing if
// only a copy can have that shape.
std::optional<Dims> reshape_strides(const View& view, const Dims& target);

// `dims` with dims[start] to dims[end] (both included, normalised) merged into one.
Result<Dims> flatten(std::string_view op, const Dims& dims, int64_t start, int64_t end);

// start:stop:step on an axis of `dim` elements, as in Python: negative bounds count from the end, and bounds outside
// are clamped. `step` may be negative, but not 0.
template <class T>
struct BasicSliceRange {
  T start = 0;       // index of the first element taken
  T length = 0;      // number of elements taken
  int64_t step = 1;  // 1 if fewer than two elements are taken
};
using SliceRange = BasicSliceRange<int64_t>;
Result<SliceRange> slice_range(std::string_view op, int64_t dim, int64_t start, int64_t stop, int64_t step);

// Takes `range` along the normalised `axis`. range.step must be positive, since strides are never negative; for a
// negative step the caller gathers instead.
View slice(const View& view, int32_t axis, const SliceRange& range);

// Takes element `index` along `axis` and removes the axis. A negative index counts from the end.
Result<View> select(std::string_view op, const View& view, int64_t axis, int64_t index);

// Removes the axes in `axes` that have length 1; the others are kept, as in PyTorch. An empty list means every axis of
// length 1.
Result<View> squeeze(std::string_view op, const View& view, std::span<const int64_t> axes);
// Inserts axes of length 1. `axes` are positions in the result.
Result<View> unsqueeze(std::string_view op, const View& view, std::span<const int64_t> axes);

// True if no two elements share an offset, so that the view may be written. Returns false for some valid layouts with
// interleaved axes, which Tenon never makes.
bool is_injective(const Dims& dims, const Dims& strides);

}  // namespace tenon::infer
