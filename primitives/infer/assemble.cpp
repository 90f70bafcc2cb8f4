#include "primitives/infer/assemble.h"

#include <algorithm>

#include "primitives/infer/assemble-inl.h"

namespace tenon::infer {

Result<Dims> concat(std::string_view op, std::span<const Dims> shapes, int32_t axis) {
  return concat<int64_t>(op, shapes, axis);
}

Result<std::vector<Dims>> split(std::string_view op, const Dims& dims, int32_t axis, std::span<const int64_t> sizes) {
  return split<int64_t>(op, dims, axis, sizes);
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
  return pad<int64_t>(op, dims, mode, low, high);
}

Result<Dims> gather_slices(std::string_view op, const Dims& dims, int32_t axis, const Dims& indices) {
  return gather_slices<int64_t>(op, dims, axis, indices);
}

Result<Dims> gather_elements(std::string_view op, const Dims& dims, int32_t axis, const Dims& indices) {
  return gather_elements<int64_t>(op, dims, axis, indices);
}

}  // namespace tenon::infer
