// Layout: the ranks that hold a tensor and how its elements are spread over them. Also computes the part of each rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/device/export.h"
#include "core/global/placement.h"
#include "core/global/sbp.h"
#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

namespace tenon::global {

struct TENON_API Layout {
  Placement placement;
  NdSbp sbp;  // one per axis of the placement's grid

  std::string to_string() const;  // "cpu [0, 1], S(0)"
  friend bool operator==(const Layout&, const Layout&) = default;
};

// A range of positions along an axis.
struct Range {
  int64_t begin = 0, length = 0;
  int64_t end() const { return begin + length; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Part `index` of `length` positions divided among `parts`. The lengths are equal; if they do not divide evenly, the
// first parts have one more.
constexpr Range part_of(int64_t length, int64_t parts, int64_t index) {
  const int64_t least = length / parts, longer = length % parts;
  return {index * least + (index < longer ? index : longer), least + (index < longer ? 1 : 0)};
}

// The elements of a tensor that a rank holds: a range along each axis.
struct Box {
  Dims begin, dims;
  bool empty() const { return element_count(dims) == 0; }
  friend bool operator==(const Box&, const Box&) = default;
};

// The elements that the rank with these coordinates holds of a tensor of `dims`. If several axes of the grid split the
// same axis of the tensor, each splits the part that the previous one gives.
TENON_API Box box_of(const Dims& dims, const NdSbp& sbp, const Dims& grid, const Dims& coordinates);
// The common elements of both; nothing if there are none.
std::optional<Box> overlap(const Box& a, const Box& b);

// `layout` with broadcast in place of partial sums: the layout of gradients, and of reduced sums.
Layout without_partial(Layout layout);

// Ok if tensors of `dims` can have the layout. Errors: invalid_argument.
TENON_API Status check_layout(std::string_view caller, const Dims& dims, const Layout& layout);

}  // namespace tenon::global
