#include "primitives/infer/axis.h"

#include "primitives/status/sentence.h"

namespace tenon::infer {

Result<int32_t> axis(std::string_view op, int64_t axis, int32_t rank) {
  const int64_t limit = rank == 0 ? 1 : rank;
  if (axis < -limit || axis >= limit) {
    return Status(Code::invalid_argument, sentence(op, ": axis ", axis, " is out of range for rank ", rank,
                                                   " (expected ", -limit, " to ", limit - 1, ")."));
  }
  return static_cast<int32_t>(axis < 0 ? axis + limit : axis);
}

Result<uint32_t> axis_mask(std::string_view op, std::span<const int64_t> axes, int32_t rank) {
  if (axes.empty()) return (uint32_t{1} << rank) - 1;
  uint32_t mask = 0;
  for (int64_t given : axes) {
    TENON_ASSIGN_OR_RETURN(const int32_t normal, axis(op, given, rank));
    const uint32_t bit = uint32_t{1} << normal;
    if (mask & bit) {
      return Status(Code::invalid_argument, sentence(op, ": axis ", given, " is named twice for rank ", rank, "."));
    }
    mask |= bit;
  }
  return rank == 0 ? 0 : mask;
}

Result<Dims> checked(std::string_view op, const Dims& dims) {
  for (int64_t dim : dims) {
    if (dim < 0) {
      return Status(Code::invalid_argument, sentence(op, ": the shape ", dims, " has a negative dim (", dim, ")."));
    }
  }
  if (!checked_count(dims)) {
    return Status(Code::invalid_argument,
                  sentence(op, ": a tensor of shape ", dims, " would have more than 9223372036854775807 bytes."));
  }
  return dims;
}

}  // namespace tenon::infer
