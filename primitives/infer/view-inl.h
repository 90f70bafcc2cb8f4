// The rules of view.h for sizes of any type: dims of views. Strides are always numbers and are in view.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "primitives/infer/axis.h"
#include "primitives/infer/size.h"
#include "primitives/infer/view.h"
#include "primitives/infer/wrong.h"

namespace tenon::infer {

inline Status check_rank(std::string_view op, size_t rank) {
  if (rank <= EP_MAX_RANK) return {};
  return wrong(op, "rank {} is more than {}.", rank, EP_MAX_RANK);
}

// `target` with its -1 replaced. The number of elements is unchanged.
template <class T>
Result<BasicDims<T>> reshape(std::string_view op, const BasicDims<T>& dims, std::span<const T> target) {
  TENON_RETURN_IF_ERROR(check_rank(op, target.size()));
  BasicDims<T> result(target);
  int32_t open = -1;
  for (int32_t axis = 0; axis < result.rank(); ++axis) {
    if (!identical(result[axis], -1)) continue;
    if (open >= 0) return wrong(op, "only one dim of {} may be -1.", result);
    open = axis;
  }
  BasicDims<T> known = result;
  if (open >= 0) known[open] = 1;
  TENON_RETURN_IF_ERROR(checked(op, known).status());
  const T have = element_count(dims);
  const T want = element_count(known);
  if (open >= 0) {
    if (want == 0) return wrong(op, "the -1 of {} can be any length, since another dim is 0.", result);
    if (expect(modulo(have, want) == 0)) {
      result[open] = floor_div(have, want);
      return result;
    }
  }
  if (open >= 0 || !expect(have == want)) {
    return wrong(op, "shape {} does not fit the {} elements of shape {}.", BasicDims<T>(target), have, dims);
  }
  return result;
}

template <class T>
Result<BasicDims<T>> flatten(std::string_view op, const BasicDims<T>& dims, int64_t start, int64_t end) {
  if (dims.empty()) return BasicDims<T>{1};
  TENON_ASSIGN_OR_RETURN(const int32_t first, axis(op, start, dims.rank()));
  TENON_ASSIGN_OR_RETURN(const int32_t last, axis(op, end, dims.rank()));
  if (first > last)
    return wrong(op, "the start axis {} comes after the end axis {} for rank {}.", start, end, dims.rank());
  BasicDims<T> result;
  for (int32_t i = 0; i < first; ++i) result.push_back(dims[i]);
  T length = 1;
  for (int32_t i = first; i <= last; ++i) length *= dims[i];
  result.push_back(length);
  for (int32_t i = last + 1; i < dims.rank(); ++i) result.push_back(dims[i]);
  return result;
}

// Checks that `axes` is a permutation of the axes of `dims`, and makes the axes non-negative. Axis i of the result is
// axis axes[i] of `dims`.
template <class T>
Result<Dims> permutation(std::string_view op, const BasicDims<T>& dims, std::span<const int64_t> axes) {
  const int32_t rank = dims.rank();
  if (axes.size() != dims.size()) {
    return wrong(op, "expects one axis for each of shape {}, but got {}.", dims, axes.size());
  }
  if (rank == 0) return Dims();
  TENON_RETURN_IF_ERROR(axis_mask(op, axes, rank).status());
  Dims result(axes);
  for (int64_t& axis : result) axis += axis < 0 ? rank : 0;
  return result;
}

// `list` in the order of `axes`, a result of permutation().
template <class T>
BasicDims<T> permuted(const BasicDims<T>& list, const Dims& axes) {
  BasicDims<T> result = list;
  for (int32_t i = 0; i < axes.rank(); ++i) result[i] = list[axes[i]];
  return result;
}

template <class T>
Result<BasicSliceRange<T>> slice_range(std::string_view op, T dim, T start, T stop, int64_t step) {
  if (step == 0) return wrong(op, "the step must not be 0.");
  const auto bound = [&](T at) {
    if (at < 0) at += dim;
    return step > 0 ? clamp_size(at, T(0), dim) : clamp_size(at, T(-1), dim - 1);
  };
  const T first = bound(start);
  const T last = bound(stop);
  const T distance = max_size(step > 0 ? last - first : first - last, T(0));
  constexpr int64_t longest = (int64_t{1} << 62) - 1;  // a longer step also takes one element
  const int64_t stride = step > longest || step < -longest ? longest : step < 0 ? -step : step;
  const T length = ceil_div(distance, T(stride));
  if (surely(length == 0)) return BasicSliceRange<T>{max_size(first, T(0)), 0, 1};
  return BasicSliceRange<T>{first, length, surely(length == 1) ? 1 : step};
}

// The position of element `index` along an axis of `dim` elements; a negative index counts from the end.
template <class T>
Result<T> selected(std::string_view op, T dim, int32_t axis, T index) {
  if (!(expect(index >= -dim) && expect(index < dim))) {
    return wrong(op, "index {} is out of range for axis {} of length {}.", index, axis, dim);
  }
  return index < 0 ? index + dim : index;
}

// Repeats axes of length 1 of `dims` to `target`; -1 keeps a dim. Sets in `kept` the bit of each axis that keeps its
// length. The other axes have stride 0, so such a view must not be written.
template <class T>
Result<BasicDims<T>> expand_dims(std::string_view op, const BasicDims<T>& dims, std::span<const T> target,
                                 uint32_t* kept) {
  TENON_RETURN_IF_ERROR(check_rank(op, target.size()));
  const auto shift = static_cast<int32_t>(target.size()) - dims.rank();
  if (shift < 0) return wrong(op, "shape {} has more axes than the target {}.", dims, BasicDims<T>(target));
  BasicDims<T> result(target);
  *kept = 0;
  for (int32_t axis = 0; axis < result.rank(); ++axis) {
    T& dim = result[axis];
    const T have = axis < shift ? T(1) : dims[axis - shift];
    if (identical(dim, -1) && axis < shift) {
      return wrong(op, "-1 is not possible at axis {} of {}, which shape {} does not have.", axis, BasicDims<T>(target),
                   dims);
    }
    if (identical(dim, -1)) dim = have;
    const bool repeats = !identical(dim, have) && !surely(dim == have) && have == 1;
    if (!repeats && !expect(dim == have)) {
      return wrong(op, "shape {} does not expand to {}: only axes of length 1 repeat.", dims, BasicDims<T>(target));
    }
    if (axis >= shift && !repeats) *kept |= uint32_t{1} << axis;
  }
  return checked(op, result);
}

// The axes of length 1 among `axes` (if empty: among all), as a bit mask.
template <class T>
Result<uint32_t> squeezed(std::string_view op, const BasicDims<T>& dims, std::span<const int64_t> axes) {
  TENON_ASSIGN_OR_RETURN(const uint32_t mask, axis_mask(op, axes, dims.rank()));
  uint32_t gone = 0;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if ((mask >> axis & 1) && dims[axis] == 1) gone |= uint32_t{1} << axis;
  }
  return gone;
}

// `list` without the axes whose bits are set.
template <class T>
BasicDims<T> without(const BasicDims<T>& list, uint32_t gone) {
  BasicDims<T> result;
  for (int32_t axis = 0; axis < list.rank(); ++axis) {
    if ((gone >> axis & 1) == 0) result.push_back(list[axis]);
  }
  return result;
}

// The axes that `axes` inserts into a shape of `rank` axes, as a bit mask.
Result<uint32_t> unsqueezed(std::string_view op, int32_t rank, std::span<const int64_t> axes);

// `dims` with axes of length 1 inserted where the bits are set.
template <class T>
BasicDims<T> with_ones(const BasicDims<T>& dims, uint32_t inserted) {
  BasicDims<T> result;
  int32_t from = 0;
  while (from < dims.rank() || (inserted >> result.rank()) != 0) {
    result.push_back((inserted >> result.rank() & 1) != 0 ? T(1) : dims[from++]);
  }
  return result;
}

}  // namespace tenon::infer
