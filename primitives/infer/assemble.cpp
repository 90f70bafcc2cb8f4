#include "primitives/infer/assemble.h"

#include <algorithm>

#include "primitives/infer/axis.h"
#include "primitives/status/sentence.h"

namespace tenon::infer {
namespace {

template <class... Parts>
Status wrong(std::string_view op, const Parts&... parts) {
  return Status(Code::invalid_argument, sentence(op, ": ", parts...));
}

bool is_legacy_empty(const Dims& dims) { return dims.rank() == 1 && dims[0] == 0; }

Status same_but_for(std::string_view op, const Dims& first, const Dims& other, size_t index, int32_t axis) {
  if (first.rank() != other.rank()) {
    return wrong(op, "all tensors must have one rank, but number 0 has shape ", first, " and number ", index, " ",
                 other, ".");
  }
  for (int32_t i = 0; i < first.rank(); ++i) {
    if (i == axis || first[i] == other[i]) continue;
    return wrong(op, "shapes must be equal except along axis ", axis, ", but number 0 has shape ", first,
                 " and number ", index, " ", other, ".");
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
    return wrong(op, "axis ", axis, " is out of range for rank ", first->rank(), ".");
  }
  Dims result = *first;
  result[axis] = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (is_legacy_empty(shapes[i])) continue;
    TENON_RETURN_IF_ERROR(same_but_for(op, *first, shapes[i], i, axis));
    if (__builtin_add_overflow(result[axis], shapes[i][axis], &result[axis])) {
      return wrong(op, "the lengths along axis ", axis, " add up to more than int64 can hold.");
    }
  }
  return checked(op, result);
}

Result<std::vector<Dims>> split(std::string_view op, const Dims& dims, int32_t axis, std::span<const int64_t> sizes) {
  std::vector<Dims> parts;
  parts.reserve(sizes.size());
  int64_t rest = dims[axis];
  for (int64_t size : sizes) {
    if (size < 0) return wrong(op, "a part of length ", size, " is not possible.");
    if (size > rest) {
      return wrong(op, "the parts are longer than axis ", axis, " (", dims[axis], ") of shape ", dims, ".");
    }
    rest -= size;
    parts.push_back(dims);
    parts.back()[axis] = size;
  }
  if (rest != 0) {
    return wrong(op, "the parts leave ", rest, " of the ", dims[axis], " elements of axis ", axis, " over.");
  }
  return parts;
}

Result<std::vector<int64_t>> split_sizes(std::string_view op, int64_t dim, int64_t size) {
  if (size < 1 && !(size == 0 && dim == 0)) return wrong(op, "the size of a part must be at least 1, not ", size, ".");
  std::vector<int64_t> sizes;
  for (int64_t rest = dim; rest > 0; rest -= size) sizes.push_back(std::min(rest, size));
  if (sizes.empty()) sizes.push_back(0);
  return sizes;
}

Result<Dims> pad(std::string_view op, const Dims& dims, int32_t mode, std::span<const int64_t> low,
                 std::span<const int64_t> high) {
  if (low.size() != dims.size() || high.size() != dims.size()) {
    return wrong(op, "expects one low and one high number per axis of shape ", dims, ", but got ", low.size(), " and ",
                 high.size(), ".");
  }
  Dims result = dims;
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    const int64_t before = low[static_cast<size_t>(axis)];
    const int64_t after = high[static_cast<size_t>(axis)];
    const int64_t dim = dims[axis];
    const bool pads = before != 0 || after != 0;
    if (mode != EP_PAD_CONSTANT && (before < 0 || after < 0)) {
      return wrong(op, "(", before, ", ", after, ") of axis ", axis,
                   " is negative, which only constant padding may be.");
    }
    if (mode == EP_PAD_REFLECT && pads && (before >= dim || after >= dim)) {
      return wrong(op, "(", before, ", ", after, ") of axis ", axis, " must be less than its length (", dim,
                   ") for reflection.");
    }
    if (mode == EP_PAD_EDGE && pads && dim == 0)
      return wrong(op, "axis ", axis, " has length 0 and no edge to repeat.");
    int64_t length = 0;
    if (__builtin_add_overflow(dim, before, &length) || __builtin_add_overflow(length, after, &length)) {
      return wrong(op, "axis ", axis, " of length ", dim, " with (", before, ", ", after, ") grows too long.");
    }
    if (length < 0) return wrong(op, "(", before, ", ", after, ") takes more than axis ", axis, " has (", dim, ").");
    result[axis] = length;
  }
  return checked(op, result);
}

Result<Dims> gather_slices(std::string_view op, const Dims& dims, int32_t axis, const Dims& indices) {
  if (dims.empty()) return wrong(op, "the data must have at least one axis.");
  if (dims.rank() - 1 + indices.rank() > EP_MAX_RANK) {
    return wrong(op, "data of shape ", dims, " taken at indices of shape ", indices, " would have rank ",
                 dims.rank() - 1 + indices.rank(), ", more than ", EP_MAX_RANK, ".");
  }
  Dims result;
  for (int32_t i = 0; i < axis; ++i) result.push_back(dims[i]);
  for (int64_t dim : indices) result.push_back(dim);
  for (int32_t i = axis + 1; i < dims.rank(); ++i) result.push_back(dims[i]);
  if (dims[axis] == 0 && element_count(indices) > 0) {
    return wrong(op, "axis ", axis, " of shape ", dims, " has no elements to take.");
  }
  return checked(op, result);
}

Result<Dims> gather_elements(std::string_view op, const Dims& dims, int32_t axis, const Dims& indices) {
  if (dims.rank() != indices.rank()) {
    return wrong(op, "data ", dims, " and indices ", indices, " must have one rank.");
  }
  for (int32_t i = 0; i < dims.rank(); ++i) {
    if (i == axis || indices[i] <= dims[i]) continue;
    return wrong(op, "indices of shape ", indices, " are longer than data of shape ", dims, " along axis ", i, ".");
  }
  return checked(op, indices);
}

}  // namespace tenon::infer
