// Moves: the exchanges that take a tensor from one layout to another of the same placement, and what a rank sends in
// each. Boxing makes them (boxing.h), and a plan counts them (core/cluster). No rank is asked. Internal.
#pragma once

#include <cstdint>
#include <vector>

#include "core/global/collective.h"
#include "core/global/layout.h"

namespace tenon::global {

// What the ranks along the axis do together.
Collective collective_of(Sbp from, Sbp to);

// A change of the layout along one axis of the grid.
struct Move {
  int32_t axis = 0;
  Sbp from, to;
};
// Those that lead from one layout to the other, in order. Layouts of the same grid.
std::vector<Move> moves_between(const NdSbp& from, const NdSbp& to);

// What one rank gives to the other ones in an exchange; by the definition of the exchange, whatever the transport does:
// a sum over all ranks sends each part to the rank that adds it, and the sum back.
struct Sent {
  Collective collective = Collective::none;
  int32_t axis = 0;      // of the grid
  int64_t elements = 0;  // >= 0
};
// What the rank with these coordinates sends while a tensor of `dims` goes from one layout to another. Exchanges of
// which it has no part, since the grid has one rank along the axis, are left out.
std::vector<Sent> sent_between(const Dims& dims, const NdSbp& from, const NdSbp& to, const Dims& grid,
                               const Dims& coordinates);

}  // namespace tenon::global
