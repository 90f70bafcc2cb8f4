// Boxing: moves the elements of a tensor from one layout to another. Internal.
#pragma once

#include <cstdint>

#include "core/global/exchange.h"
#include "core/global/layout.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// The part of this rank under `to` of a tensor of `dtype` and `dims`, whose part is `local` under `from`; undefined
// outside of the placements. All ranks of both placements call it, and all ranks of the launch if these differ. It may
// share memory with `local`. Sums go in the order of ranks in deterministic mode, else as the transport likes.
// What is needed later goes on beside the caller (exchange.h); on a device that works beside the host everything does.
// Errors: those of Communicator.
Tensor box(const Tensor& local, DType dtype, const Dims& dims, const Layout& from, const Layout& to,
           Needed needed = Needed::now);

// What the move between the ranks of one axis of a grid costs, in bytes that a rank sends, messages included as so many
// bytes. `bytes`: of the tensor, as far as the other axes leave it to a rank; `ranks`: along this axis.
double move_cost(Sbp from, Sbp to, double bytes, int64_t ranks);

}  // namespace tenon::global
