#include "core/global/moves.h"

namespace tenon::global {
namespace {

// True if `behind` splits an axis that an earlier axis of the grid splits before or after its move.
bool is_in_the_way(Sbp behind, Sbp from, Sbp to) { return behind.is_split() && (behind == from || behind == to); }

// Elements that rank `index` of `ranks` sends in an exchange of a tensor of `dims`, which the other axes of the grid
// leave to it.
int64_t elements_sent(const Dims& dims, Sbp from, Sbp to, int64_t ranks, int64_t index) {
  const int64_t all = element_count(dims);
  const auto part = [&](Sbp split) {
    Dims own = dims;
    own[split.axis()] = part_of(dims[split.axis()], ranks, index).length;
    return own;
  };
  switch (collective_of(from, to)) {
    case Collective::none: return 0;
    case Collective::all_gather: return element_count(part(from)) * (ranks - 1);
    case Collective::reduce_scatter: return all - element_count(part(to));
    case Collective::all_reduce: {
      const int64_t own = part_of(all, ranks, index).length;
      return all - own + own * (ranks - 1);
    }
    case Collective::all_to_all: {
      Dims own = part(from);
      const int64_t had = element_count(own);
      own[to.axis()] = part_of(own[to.axis()], ranks, index).length;
      return had - element_count(own);
    }
  }
  return 0;
}

}  // namespace

Collective collective_of(Sbp from, Sbp to) {
  if (from == to || from.is_broadcast() || to.is_partial()) return Collective::none;
  if (from.is_partial()) return to.is_split() ? Collective::reduce_scatter : Collective::all_reduce;
  return to.is_broadcast() ? Collective::all_gather : Collective::all_to_all;
}

std::vector<Move> moves_between(const NdSbp& from, const NdSbp& to) {
  std::vector<Move> moves;
  NdSbp at = from;
  const auto go = [&](int32_t axis, Sbp target) {
    if (at[axis] == target) return;
    moves.push_back({axis, at[axis], target});
    at[axis] = target;
  };
  for (int32_t axis = 0; axis < at.rank(); ++axis) {
    if (at[axis] == to[axis]) continue;
    for (int32_t behind = at.rank() - 1; behind > axis; --behind) {
      if (is_in_the_way(at[behind], at[axis], to[axis])) go(behind, Sbp::broadcast());
    }
    go(axis, to[axis]);
  }
  return moves;
}

std::vector<Sent> sent_between(const Dims& dims, const NdSbp& from, const NdSbp& to, const Dims& grid,
                               const Dims& coordinates) {
  std::vector<Sent> all;
  NdSbp at = from;
  for (const Move& move : moves_between(from, to)) {
    NdSbp rest = at;
    rest[move.axis] = Sbp::broadcast();
    at[move.axis] = move.to;
    const Collective collective = collective_of(move.from, move.to);
    if (collective == Collective::none || grid[move.axis] == 1) continue;
    const Dims left = box_of(dims, rest, grid, coordinates).dims;
    all.push_back(
        {collective, move.axis, elements_sent(left, move.from, move.to, grid[move.axis], coordinates[move.axis])});
  }
  return all;
}

}  // namespace tenon::global
