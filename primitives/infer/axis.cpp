#include "primitives/infer/axis.h"
#include "primitives/text/format.h"

namespace tenon::infer {
namespace {

int64_t limit_of(int32_t rank) { return rank == 0 ? 1 : rank; }

// Returns -1 if there is no such axis.
int32_t counted_from_front(int64_t axis, int32_t rank) {
  const int64_t limit = limit_of(rank);
  if (axis < -limit || axis >= limit) return -1;
  return static_cast<int32_t>(axis < 0 ? axis + limit : axis);
}

Status no_axis(std::string_view op, int64_t axis, int32_t rank) {
  const int64_t limit = limit_of(rank);
  return Status(Subject{op}, Code::invalid_argument,
                fmt::format("axis {} is out of range for rank {} (expected {} to {}).", axis, rank, -limit, limit - 1));
}

}  // namespace

Result<int32_t> axis(std::string_view op, int64_t axis, int32_t rank) {
  const int32_t normal = counted_from_front(axis, rank);
  if (normal < 0) return no_axis(op, axis, rank);
  return normal;
}

Result<uint32_t> axis_mask(std::string_view op, std::span<const int64_t> axes, int32_t rank) {
  if (axes.empty()) return (uint32_t{1} << rank) - 1;
  uint32_t mask = 0;
  for (int64_t given : axes) {
    const int32_t normal = counted_from_front(given, rank);
    if (normal < 0) return no_axis(op, given, rank);
    const uint32_t bit = uint32_t{1} << normal;
    if (mask & bit) {
      return Status(Subject{op}, Code::invalid_argument,
                    fmt::format("axis {} is named twice for rank {}.", given, rank));
    }
    mask |= bit;
  }
  return rank == 0 ? 0 : mask;
}

Result<Dims> checked(std::string_view op, const Dims& dims) {
  if (checked_count(dims)) return dims;
  for (int64_t dim : dims) {
    if (dim < 0) {
      return Status(Subject{op}, Code::invalid_argument,
                    fmt::format("the shape {} has a negative dim ({}).", dims, dim));
    }
  }
  return Status(Subject{op}, Code::invalid_argument,
                fmt::format("a tensor of shape {} would have more than 9223372036854775807 bytes.", dims));
}

}  // namespace tenon::infer
