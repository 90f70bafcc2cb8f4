#include "core/global/layout.h"

#include <algorithm>

#include "primitives/text/format.h"

namespace tenon::global {

std::string Layout::to_string() const { return fmt::format("{}, {}", placement.to_string(), global::to_string(sbp)); }

Box box_of(const Dims& dims, const NdSbp& sbp, const Dims& grid, const Dims& coordinates) {
  Box box{Dims::filled(dims.rank(), 0), dims};
  for (int32_t axis = 0; axis < sbp.rank(); ++axis) {
    if (!sbp[axis].is_split()) continue;
    const int32_t split = sbp[axis].axis();
    const Range part = part_of(box.dims[split], grid[axis], coordinates[axis]);
    box.begin[split] += part.begin;
    box.dims[split] = part.length;
  }
  return box;
}

std::optional<Box> overlap(const Box& a, const Box& b) {
  Box both{a.begin, a.dims};
  for (int32_t axis = 0; axis < a.dims.rank(); ++axis) {
    const int64_t begin = std::max(a.begin[axis], b.begin[axis]);
    const int64_t end = std::min(a.begin[axis] + a.dims[axis], b.begin[axis] + b.dims[axis]);
    if (end <= begin) return std::nullopt;
    both.begin[axis] = begin;
    both.dims[axis] = end - begin;
  }
  return both;
}

Layout without_partial(Layout layout) {
  for (Sbp& sbp : layout.sbp) {
    if (sbp.is_partial()) sbp = Sbp::broadcast();
  }
  return layout;
}

Status check_layout(std::string_view caller, const Dims& dims, const Layout& layout) {
  if (!layout.placement.defined()) {
    return Status(Subject{caller}, Code::invalid_argument, "the placement is undefined.");
  }
  if (layout.sbp.rank() != layout.placement.grid().rank()) {
    return Status(Subject{caller}, Code::invalid_argument,
                  fmt::format("{} has {} entries, and the grid of the placement {} has {} axes.", to_string(layout.sbp),
                              layout.sbp.rank(), layout.placement.to_string(), layout.placement.grid().rank()));
  }
  for (const Sbp sbp : layout.sbp) {
    if (sbp.is_split() && sbp.axis() >= dims.rank()) {
      return Status(
          Subject{caller}, Code::invalid_argument,
          fmt::format("a tensor of shape {} has no axis {} to split: {}.", dims, sbp.axis(), to_string(layout.sbp)));
    }
  }
  return {};
}

}  // namespace tenon::global
