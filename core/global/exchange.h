// Exchange: elements that the ranks along a line give each other. Internal.
//
// In a program it is a node, `global::exchange(list, token)`, which gives a list and the next token, a tensor without
// elements. A program takes its first token as an input and gives the last one as an output. So no pass removes an
// exchange, joins two, or changes their order, and every rank runs all of them in the order in which they were
// recorded. A program runs in the process that has recorded it: its text names exchanges by the numbers that they have
// there.
#pragma once

#include <cstdint>
#include <vector>

#include "core/global/communicator.h"
#include "core/global/moves.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

struct ExchangePlan {
  Communicator* line = nullptr;  // that of a placement, or the world: both stay until the process ends
  Collective kind = Collective::none;
  int64_t size = 0;                    // how many elements this rank gets
  std::vector<int64_t> sent = {};      // the counts of Communicator's function; of all_reduce none
  std::vector<int64_t> received = {};  // of all_to_all: dst_counts
};

// What this rank gets for `list`, which is dense, has one axis, and lies where the line takes it; sums are added.
// Where a program is recorded, a value of it. Errors: those of Communicator.
Tensor exchange(const Tensor& list, const ExchangePlan& plan);

// The first token of every program: a tensor without elements.
const Tensor& first_token();

}  // namespace tenon::global
