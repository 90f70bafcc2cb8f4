// Collective and Exchange: descriptions of communication between ranks. Internal, except Reduction.
#pragma once

#include <cstdint>
#include <vector>

#include "ep_api/ep_api.h"
#include "ep_api/ep_collectives.h"

namespace tenon::global {

// An operation of the ranks along one axis of a grid; only those of the contract that boxing uses.
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
  any = EP_REDUCE_any,  // bool only, like the next one
  all = EP_REDUCE_all,
};

// One exchange of Communicator, with the counts that its function takes.
struct Exchange {
  Collective kind = Collective::none;
  Reduction reduction = Reduction::sum;
  std::vector<int64_t> counts = {};      // for all_to_all: src_counts; for all_reduce empty
  std::vector<int64_t> dst_counts = {};  // for all_to_all

  auto operator<=>(const Exchange&) const = default;
};

}  // namespace tenon::global
