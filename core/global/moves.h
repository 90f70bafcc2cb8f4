// Moves: the exchanges that bring a tensor from one layout to another of the same placement, and the elements that a
// rank sends in each. Boxing carries them out (boxing.h), and a plan counts them (core/cluster). Computed without
// communication. Internal.
#pragma once

#include <cstdint>
#include <vector>

#include "core/global/collective.h"
#include "core/global/layout.h"

namespace tenon::global {

// The collective that changes `from` to `to` along one axis.
Collective collective_of(Sbp from, Sbp to);

// A change of the layout along one axis of the grid.
struct Move {
  int32_t axis = 0;
  Sbp from, to;
};
// The moves from one layout to the other, in order. Both have the same grid.
std::vector<Move> moves_between(const NdSbp& from, const NdSbp& to);

// The elements that one rank sends to others in an exchange. The number follows the definition of the exchange, not the
// transport: a sum over all ranks sends each part to the rank that adds it, and the sum back.
struct Sent {
  Collective collective = Collective::none;
  int32_t axis = 0;      // the axis of the grid
  int64_t elements = 0;  // at least 0
};
// The elements that the rank with these coordinates sends while a tensor of `dims` moves from one layout to another.
// Exchanges along an axis with one rank are left out.
std::vector<Sent> sent_between(const Dims& dims, const NdSbp& from, const NdSbp& to, const Dims& grid,
                               const Dims& coordinates);

}  // namespace tenon::global
