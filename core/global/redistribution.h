// Redistribution: moves elements between two placements. Internal.
//
// Elements travel over the link of the two placements, a communicator of the ranks of both. Each direction has its own
// link. So a stage of a pipeline can send to the next stage in the order of the batches, independently of what returns;
// ranks outside both placements do not wait. A rank that only sends begins to send and continues.
#pragma once

#include <utility>
#include <vector>

#include "core/global/exchange.h"
#include "core/global/layout.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// Like box(), between two placements; `from` has no partial sums. Every rank of the launch calls it.
Tensor redistribute(const Tensor& local, DType dtype, const Dims& dims, const Layout& from, const Layout& to,
                    Needed needed);

// While this object lives, records the pairs of placements between which its thread redistributes, each pair once; the
// same on every rank.
class SeenMoves {
 public:
  SeenMoves();
  ~SeenMoves();
  SeenMoves(const SeenMoves&) = delete;
  SeenMoves& operator=(const SeenMoves&) = delete;

  const std::vector<std::pair<Placement, Placement>>& pairs() const { return pairs_; }
  void note(const Placement& from, const Placement& to);

 private:
  std::vector<std::pair<Placement, Placement>> pairs_;
  SeenMoves* previous_;
};

}  // namespace tenon::global
