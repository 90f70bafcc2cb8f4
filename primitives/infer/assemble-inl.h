// The rules of assemble.h for sizes of any type.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ep_api/ep_api.h"
#include "primitives/infer/axis.h"
#include "primitives/infer/size.h"
#include "primitives/infer/wrong.h"

namespace tenon::infer {

template <class T>
bool is_legacy_empty(const BasicDims<T>& dims) {
  return dims.rank() == 1 && dims[0] == 0;
}

template <class T>
Status same_but_for(std::string_view op, const BasicDims<T>& first, const BasicDims<T>& other, size_t index,
                    int32_t axis) {
  if (first.rank() != other.rank()) {
    return wrong(op, "all tensors must have one rank, but number 0 has shape {} and number {} {}.", first, index,
                 other);
  }
  for (int32_t i = 0; i < first.rank(); ++i) {
    if (i == axis || expect(first[i] == other[i])) continue;
    return wrong(op, "shapes must be equal except along axis {}, but number 0 has shape {} and number {} {}.", axis,
                 first, index, other);
  }
  return {};
}

template <class T>
Result<BasicDims<T>> concat(std::string_view op, std::span<const BasicDims<T>> shapes, int32_t axis) {
  if (shapes.empty()) return wrong(op, "expects at least one tensor.");
  const BasicDims<T>* first = &shapes[0];
  for (const BasicDims<T>& shape : shapes) {
    if (!is_legacy_empty(shape)) {
      first = &shape;
      break;
    }
  }
  if (first->empty()) return wrong(op, "tensors of rank 0 have no axis to join along.");
  if (axis < 0 || axis >= first->rank()) {
    return wrong(op, "axis {} is out of range for rank {}.", axis, first->rank());
  }
  BasicDims<T> result = *first;
  result[axis] = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (is_legacy_empty(shapes[i])) continue;
    TENON_RETURN_IF_ERROR(same_but_for(op, *first, shapes[i], i, axis));
    if (add_overflows(result[axis], shapes[i][axis], &result[axis])) {
      return wrong(op, "the lengths along axis {} add up to more than int64 can hold.", axis);
    }
  }
  return checked(op, result);
}

template <class T>
Result<std::vector<BasicDims<T>>> split(std::string_view op, const BasicDims<T>& dims, int32_t axis,
                                        std::span<const T> sizes) {
  std::vector<BasicDims<T>> parts;
  parts.reserve(sizes.size());
  T rest = dims[axis];
  for (const T size : sizes) {
    if (!expect(size >= 0)) return wrong(op, "a part of length {} is not possible.", size);
    if (!expect(size <= rest)) {
      return wrong(op, "the parts are longer than axis {} ({}) of shape {}.", axis, dims[axis], dims);
    }
    rest -= size;
    parts.push_back(dims);
    parts.back()[axis] = size;
  }
  if (!expect(rest == 0)) {
    return wrong(op, "the parts leave out {} of the {} elements of axis {}.", rest, dims[axis], axis);
  }
  return parts;
}

template <class T>
Result<BasicDims<T>> pad(std::string_view op, const BasicDims<T>& dims, int32_t mode, std::span<const T> low,
                         std::span<const T> high) {
  if (low.size() != dims.size() || high.size() != dims.size()) {
    return wrong(op, "expects one low and one high number per axis of shape {}, but got {} and {}.", dims, low.size(),
                 high.size());
  }
  BasicDims<T> result = dims;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    const T before = low[static_cast<size_t>(axis)];
    const T after = high[static_cast<size_t>(axis)];
    const T dim = dims[axis];
    const bool pads = !identical(before, 0) || !identical(after, 0);
    if (mode != EP_PAD_CONSTANT && !(expect(before >= 0) && expect(after >= 0))) {
      return wrong(op, "padding ({}, {}) of axis {} is negative; only constant padding may be.", before, after, axis);
    }
    if (mode == EP_PAD_REFLECT && pads && !(expect(before < dim) && expect(after < dim))) {
      return wrong(op, "padding ({}, {}) of axis {} must be less than its length ({}) for reflection.", before, after,
                   axis, dim);
    }
    if (mode == EP_PAD_EDGE && pads && !expect(dim != 0))
      return wrong(op, "axis {} has length 0 and no edge to repeat.", axis);
    T length = 0;
    if (add_overflows(dim, before, &length) || add_overflows(length, after, &length)) {
      return wrong(op, "axis {} of length {} with padding ({}, {}) grows too long.", axis, dim, before, after);
    }
    if (!expect(length >= 0))
      return wrong(op, "padding ({}, {}) takes more than axis {} has ({}).", before, after, axis, dim);
    result[axis] = length;
  }
  return checked(op, result);
}

template <class T>
Result<BasicDims<T>> gather_slices(std::string_view op, const BasicDims<T>& dims, int32_t axis,
                                   const BasicDims<T>& indices) {
  if (dims.empty()) return wrong(op, "the data must have at least one axis.");
  if (dims.rank() - 1 + indices.rank() > EP_MAX_RANK) {
    return wrong(op, "data of shape {} taken at indices of shape {} would have rank {}, more than {}.", dims, indices,
                 dims.rank() - 1 + indices.rank(), EP_MAX_RANK);
  }
  BasicDims<T> result;
  for (int32_t i = 0; i < axis; ++i) result.push_back(dims[i]);
  for (const T dim : indices) result.push_back(dim);
  for (int32_t i = axis + 1; i < dims.rank(); ++i) result.push_back(dims[i]);
  if (!expect(min_size(element_count(indices), T(1)) <= dims[axis])) {
    return wrong(op, "axis {} of shape {} has no elements to take.", axis, dims);
  }
  return checked(op, result);
}

template <class T>
Result<BasicDims<T>> gather_elements(std::string_view op, const BasicDims<T>& dims, int32_t axis,
                                     const BasicDims<T>& indices) {
  if (dims.rank() != indices.rank()) {
    return wrong(op, "data {} and indices {} must have one rank.", dims, indices);
  }
  for (int32_t i = 0; i < dims.rank(); ++i) {
    if (i == axis || expect(indices[i] <= dims[i])) continue;
    return wrong(op, "indices of shape {} are longer than data of shape {} along axis {}.", indices, dims, i);
  }
  return checked(op, indices);
}

// EP_GATHER_COORDINATES: the dims of `indices` without the last one, then the dims of `dims` after `batch` and `count`
// axes.
template <class T>
BasicDims<T> gather_coordinates(const BasicDims<T>& dims, const BasicDims<T>& indices, int32_t batch, int32_t count) {
  BasicDims<T> result;
  for (int32_t i = 0; i + 1 < indices.rank(); ++i) result.push_back(indices[i]);
  for (int32_t i = batch + count; i < dims.rank(); ++i) result.push_back(dims[i]);
  return result;
}

}  // namespace tenon::infer
