#include "primitives/infer/assemble.h"

#include <algorithm>

#include "primitives/infer/axis.h"
#include "primitives/text/format.h"

namespace tenon::infer {
namespace {

template <class... Parts>
Status wrong(std::string_view op, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Code::invalid_argument, fmt::format("{}: {}", op, fmt::format(text, parts...)));
}

bool is_legacy_empty(const Dims& dims) { return dims.rank() == 1 && dims[0] == 0; }

Status same_but_for(std::string_view op, const Dims& first, const Dims& other, size_t index, int32_t axis) {
  if (first.rank() != other.rank()) {
    return wrong(op, "all tensors must have one rank, but number 0 has shape {} and number {} {}.", first, index,
                 other);
  }
  for (int32_t i = 0; i < first.rank(); ++i) {
    if (i == axis || first[i] == other[i]) continue;
    return wrong(op, "shapes must be equal except along axis {}, but number 0 has shape {} and number {} {}.", axis,
                 first, index, other);
  }
  return {};
}

}  // namespace

Result<Dims> concat(std::string_view op, std::span<const Dims> shapes, int32_t axis) {
  if (shapes.empty()) return wrong(op, "expects at least one tensor.");
  const Dims* first = &shapes[0];
  for (const Dims& shape : shapes) {
    if (!is_legacy_empty(shape)) {
      first = &shape;
      break;
    }
  }
  if (first->empty()) return wrong(op, "tensors of rank 0 have no axis to join along.");
  if (axis < 0 || axis >= first->rank()) {
    return wrong(op, "axis {} is out of range for rank {}.", axis, first->rank());
  }
  Dims result = *first;
  result[axis] = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (is_legacy_empty(shapes[i])) continue;
    TENON_RETURN_IF_ERROR(same_but_for(op, *first, shapes[i], i, axis));
    if (__builtin_add_overflow(result[axis], shapes[i][axis], &result[axis])) {
      return wrong(op, "the lengths along axis {} add up to more than int64 can hold.", axis);
    }
  }
  return checked(op, result);
}

Result<std::vector<Dims>> split(std::string_view op, const Dims& dims, int32_t axis, std::span<const int64_t> sizes) {
  std::vector<Dims> parts;
  parts.reserve(sizes.size());
  int64_t rest = dims[axis];
  for (int64_t size : sizes) {
    if (size < 0) return wrong(op, "a part of length {} is not possible.", size);
    if (size > rest) {
      return wrong(op, "the parts are longer than axis {} ({}) of shape {}.", axis, dims[axis], dims);
    }
    rest -= size;
    parts.push_back(dims);
    parts.back()[axis] = size;
  }
  if (rest != 0) {
    return wrong(op, "the parts leave out {} of the {} elements of axis {}.", rest, dims[axis], axis);
  }
  return parts;
}

Result<std::vector<int64_t>> split_sizes(std::string_view op, int64_t dim, int64_t size) {
  if (size < 1 && !(size == 0 && dim == 0)) return wrong(op, "the size of a part must be at least 1, not {}.", size);
  std::vector<int64_t> sizes;
  for (int64_t rest = dim; rest > 0; rest -= size) sizes.push_back(std::min(rest, size));
  if (sizes.empty()) sizes.push_back(0);
  return sizes;
}

Result<Dims> pad(std::string_view op, const Dims& dims, int32_t mode, std::span<const int64_t> low,
                 std::span<const int64_t> high) {
  if (low.size() != dims.size() || high.size() != dims.size()) {
    return wrong(op, "expects one low and one high number per axis of shape {}, but got {} and {}.", dims, low.size(),
                 high.size());
  }
  Dims result = dims;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    const int64_t before = low[static_cast<size_t>(axis)];
    const int64_t after = high[static_cast<size_t>(axis)];
    const int64_t dim = dims[axis];
    const bool pads = before != 0 || after != 0;
    if (mode != EP_PAD_CONSTANT && (before < 0 || after < 0)) {
      return wrong(op, "padding ({}, {}) of axis {} is negative; only constant padding may be.", before, after, axis);
    }
    if (mode == EP_PAD_REFLECT && pads && (before >= dim || after >= dim)) {
      return wrong(op, "padding ({}, {}) of axis {} must be less than its length ({}) for reflection.", before, after,
                   axis, dim);
    }
    if (mode == EP_PAD_EDGE && pads && dim == 0) return wrong(op, "axis {} has length 0 and no edge to repeat.", axis);
    int64_t length = 0;
    if (__builtin_add_overflow(dim, before, &length) || __builtin_add_overflow(length, after, &length)) {
      return wrong(op, "axis {} of length {} with padding ({}, {}) grows too long.", axis, dim, before, after);
    }
    if (length < 0) return wrong(op, "padding ({}, {}) takes more than axis {} has ({}).", before, after, axis, dim);
    result[axis] = length;
  }
  return checked(op, result);
}

Result<Dims> gather_slices(std::string_view op, const Dims& dims, int32_t axis, const Dims& indices) {
  if (dims.empty()) return wrong(op, "the data must have at least one axis.");
  if (dims.rank() - 1 + indices.rank() > EP_MAX_RANK) {
    return wrong(op, "data of shape {} taken at indices of shape {} would have rank {}, more than {}.", dims, indices,
                 dims.rank() - 1 + indices.rank(), EP_MAX_RANK);
  }
  Dims result;
  for (int32_t i = 0; i < axis; ++i) result.push_back(dims[i]);
  for (int64_t dim : indices) result.push_back(dim);
  for (int32_t i = axis + 1; i < dims.rank(); ++i) result.push_back(dims[i]);
  if (dims[axis] == 0 && element_count(indices) > 0) {
    return wrong(op, "axis {} of shape {} has no elements to take.", axis, dims);
  }
  return checked(op, result);
}

Result<Dims> gather_elements(std::string_view op, const Dims& dims, int32_t axis, const Dims& indices) {
  if (dims.rank() != indices.rank()) {
    return wrong(op, "data {} and indices {} must have one rank.", dims, indices);
  }
  for (int32_t i = 0; i < dims.rank(); ++i) {
    if (i == axis || indices[i] <= dims[i]) continue;
    return wrong(op, "indices of shape {} are longer than data of shape {} along axis {}.", indices, dims, i);
  }
  return checked(op, indices);
}

}  // namespace tenon::infer
