// Micro-batches: divides a batch into parts, so that the stages of a pipeline work on several parts at once. Public.
//
//   const Placement first("cpu", {0}), last("cpu", {1});
//   Tensor loss = global::micro_batches(8, {x, wanted}, [&](const TensorList& part) {
//     const Tensor h = relu(matmul(part[0], w0));                               // on `first`
//     return mse_loss(matmul(to_global(h, last, {Sbp::broadcast()}), w1), part[1]);  // on `last`
//   });
//
// A stage is a placement. to_global moves values to the next stage, and backward moves gradients back. The first part
// finds the stages by these moves. A stage with k stages behind it begins forward of k + 1 parts; then it alternates
// between backward of one part and forward of another (1F1B, Narayanan and others, 2019, arXiv:1806.03377). So it keeps
// the saved tensors of at most k + 1 parts, however many parts there are. Stages that share a rank, or that send to
// each other in a cycle, count as one.
#pragma once

#include <cstdint>
#include <functional>

#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// Calls loss(part) for `count` parts of the tensors of `batch` and runs backward through each. The gradients add up to
// those of the mean loss of the batch, if each loss is the mean over the rows of its part. Returns that mean, without a
// history, in the layout of the losses.
//
// A part has 1 / `count` of the rows (axis 0); if they do not divide evenly, the first parts have one more. If a tensor
// of the batch is split along its rows, a part takes its share of the rows of each rank, the same rows for every
// tensor, so nothing moves. All ranks must call it. If `loss` reads elements (item()) or spreads local tensors, the
// ranks wait for each other. A batch of local tensors needs no launch.
//
// Errors, on every rank: invalid_argument (count below 1; tensors without rows, with different numbers of rows, or with
// rows split among different numbers of ranks; fewer rows than parts; a loss of more than one element); errors of
// `loss` and of backward.
TENON_API Tensor micro_batches(int64_t count, const TensorList& batch,
                               const std::function<Tensor(const TensorList&)>& loss);

}  // namespace tenon::global
