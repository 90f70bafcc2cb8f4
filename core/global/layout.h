// Layout: where the elements of a tensor are, on which ranks and how they are spread. And which part each rank holds.
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

// The part `index` of `length` positions that are dealt to `parts`: of the same length each, the first ones one longer
// where it does not come out even.
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

// What the rank with these coordinates holds of a tensor of `dims`. Where several axes of the grid split one axis of
// the tensor, each splits the part that the one before gives.
TENON_API Box box_of(const Dims& dims, const NdSbp& sbp, const Dims& grid, const Dims& coordinates);
// The elements of both, if there are some.
std::optional<Box> overlap(const Box& a, const Box& b);

// `layout` with broadcast in the place of partial sums: where the elements of a sum, or gradients, go.
Layout without_partial(Layout layout);

// Ok if tensors of `dims` can be spread so. Errors: invalid_argument.
TENON_API Status check_layout(std::string_view caller, const Dims& dims, const Layout& layout);

}  // namespace tenon::global
