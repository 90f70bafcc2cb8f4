// Boxing: moves the elements of a tensor from one layout to another. Internal.
#pragma once

#include <cstdint>

#include "core/global/exchange.h"
#include "core/global/layout.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// This rank's part, under `to`, of a tensor of `dtype` and `dims` whose part under `from` is `local`; undefined outside
// the placements. All ranks of both placements call it, and all ranks of the launch if the placements differ. The
// result may share memory with `local`. In deterministic mode sums add in the order of ranks, else in an order of the
// transport's choice. With Needed::later the exchange runs in the background (exchange.h); on an asynchronous device
// all exchanges do. Errors: those of Communicator.
Tensor box(const Tensor& local, DType dtype, const Dims& dims, const Layout& from, const Layout& to,
           Needed needed = Needed::now);

// The cost of a move between the ranks of one axis of a grid, in bytes that a rank sends; each message counts as a
// fixed number of bytes. `bytes`: the size of the tensor that the other axes leave to a rank; `ranks`: the ranks along
// this axis.
double move_cost(Sbp from, Sbp to, double bytes, int64_t ranks);

}  // namespace tenon::global
