// Collective and Exchange: what ranks give each other, as data. Internal but for Reduction.
#pragma once

#include <cstdint>
#include <vector>

#include "ep_api/ep_api.h"
#include "ep_api/ep_collectives.h"

namespace tenon::global {

// What the ranks along one axis of a grid do together: those of the contract that boxing makes.
enum class Collective : int32_t {
  none = -1,
  all_reduce = EP_COLLECTIVE_all_reduce,
  all_gather = EP_COLLECTIVE_all_gather,
  reduce_scatter = EP_COLLECTIVE_reduce_scatter,
  all_to_all = EP_COLLECTIVE_all_to_all,
};

enum class Reduction : int32_t {
  sum = EP_REDUCE_sum,
  prod = EP_REDUCE_prod,
  max = EP_REDUCE_max,
  min = EP_REDUCE_min,
  any = EP_REDUCE_any,  // of bool alone, as the next one
  all = EP_REDUCE_all,
};

// One of the exchanges of Communicator, with the counts that its function takes.
struct Exchange {
  Collective kind = Collective::none;
  Reduction reduction = Reduction::sum;
  std::vector<int64_t> counts = {};      // of all_to_all: src_counts; of all_reduce none
  std::vector<int64_t> dst_counts = {};  // of all_to_all

  auto operator<=>(const Exchange&) const = default;
};

}  // namespace tenon::global
