#include "primitives/shape/shape.h"

#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon {

void refuse_rank(size_t rank) {
  throw Error(Code::invalid_argument,
              fmt::format("A shape or a list of strides of rank {} cannot be made: at most rank {} is possible.", rank,
                          EP_MAX_RANK));
}

std::optional<int64_t> checked_count(const Dims& dims, int64_t bytes_per_element) {
  int64_t count = 1;
  int64_t bytes = bytes_per_element;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      empty = true;
      continue;
    }
    if (__builtin_mul_overflow(count, dim, &count) || __builtin_mul_overflow(bytes, dim, &bytes)) return std::nullopt;
  }
  return empty ? 0 : count;
}

bool is_contiguous(const Dims& dims, const Dims& strides) {
  int64_t expected = 1;
  for (int32_t axis = dims.rank() - 1; axis >= 0; --axis) {
    if (dims[axis] == 1) continue;
    if (strides[axis] != expected) return element_count(dims) == 0;
    expected *= dims[axis];
  }
  return true;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if (axis > 0) text += ", ";
    text += fmt::format("{}", dims[axis]);
  }
  text += ']';
  return text;
}

}  // namespace tenon
