// Redistribution: moves elements between two placements. Internal.
//
// Elements travel on the link of the two placements, a communicator of the ranks of both. Each direction has its own,
// so a stage of a pipeline sends to the next one in the order of the batches, whatever comes back meanwhile; and ranks
// outside of both go on without waiting. A rank that only gives begins to give and goes on.
#pragma once

#include <utility>
#include <vector>

#include "core/global/exchange.h"
#include "core/global/layout.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// box() between two placements; `from` has no partial sums. Every rank of the launch calls it.
Tensor redistribute(const Tensor& local, DType dtype, const Dims& dims, const Layout& from, const Layout& to,
                    Needed needed);

// While it lives, it sees from where to where its thread redistributes, on every rank alike; each pair once.
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
