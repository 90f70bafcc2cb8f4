// Micro-batches: a batch in parts, of which the stages of a pipeline work on several at a time. Public.
//
//   const Placement first("cpu", {0}), last("cpu", {1});
//   Tensor loss = global::micro_batches(8, {x, wanted}, [&](const TensorList& part) {
//     const Tensor h = relu(matmul(part[0], w0));                               // on `first`
//     return mse_loss(matmul(to_global(h, last, {Sbp::broadcast()}), w1), part[1]);  // on `last`
//   });
//
// A stage is a placement; to_global moves values to the next one, and backward moves gradients back. Stages are found
// in the first part, by those moves. A stage of which k others follow begins forward of k + 1 parts, and from then on
// goes backward through one part and forward through another by turns (1F1B, Narayanan and others, 2019,
// arXiv:1806.03377); so it keeps what k + 1 parts need, however many there are. Stages that have a rank in common, or
// give to each other in a circle, count as one.
#pragma once

#include <cstdint>
#include <functional>

#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// Calls loss(part) for `count` parts of the tensors of `batch`, and goes backward through each: gradients add up to
// those of the mean loss of the batch, where each loss is the mean over the rows of its part. The result is that mean,
// without a history, where the losses are.
//
// A part has a `count`-th of the rows (axis 0), the first ones one more where it does not come out even. Where a tensor
// of the batch is split along its rows, a part has so many of the rows of each rank, the same ones of every tensor, so
// nothing moves. All ranks call it; what `loss` reads (item()) and local tensors that it spreads make the ranks wait
// for each other. Local tensors alone need no launch.
//
// Errors, on every rank: invalid_argument (count below 1; tensors without rows, with different numbers of them, or with
// rows that are split among different numbers of ranks; fewer rows than parts; a loss of more than one element); what
// `loss` throws, and backward.
TENON_API Tensor micro_batches(int64_t count, const TensorList& batch,
                               const std::function<Tensor(const TensorList&)>& loss);

}  // namespace tenon::global
