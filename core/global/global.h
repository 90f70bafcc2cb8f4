// Global tensors: one tensor spread over many ranks. Every rank runs the same program and holds a part of each global
// tensor, as its layout says. Public.
//
//   const Placement all = Placement::all("cpu");
//   Tensor x = global::to_global(part, all, {Sbp::split(0)});       // rows of this rank
//   Tensor w = global::to_global(weight, all, {Sbp::broadcast()});  // the same on every rank
//   Tensor y = matmul(x, w);                                        // rows again, without a message
//   double loss = y.sum().item<double>();                           // the sum over all ranks, on each of them
//
// dims(), dtype() and every op refer to the whole tensor. The layout of an op's results follows from the layouts of its
// arguments: the column `sbp` of the op list says which parts of the arguments give parts of the results, and the
// interpreter takes the choice that moves the fewest bytes. Reading elements (item(), to_host()) brings all of them to
// every rank. So all ranks of the placement must call ops, reads and to_global in the same order; if a rank does not,
// every other rank gets an error (communicator.h).
// tenon::compile records functions of global tensors (core/compile/compile.h). Each rank records its own program, which
// contains the exchanges. So all ranks must also call a compiled function together.
// An op cannot mix a local tensor with global ones, unless the local one is a number (rank 0). Random tensors are made
// from the same seed on every rank, so they are equal before they are spread.
#pragma once

#include "core/device/export.h"
#include "core/global/layout.h"
#include "core/global/placement.h"
#include "core/global/sbp.h"
#include "core/tensor/int_list.h"
#include "core/tensor/scalar.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// The number of this process in the launch (mpirun -n 4 program), and the number of processes; 0 and 1 without a
// launcher. The first call joins the launch and waits until every rank has joined. Errors: those of
// Communicator::world.
TENON_API int32_t rank();
TENON_API int32_t world_size();

// True if the elements of `tensor` are spread over ranks.
TENON_API bool is_global(const Tensor& tensor);
// The layout of a global tensor. Errors: invalid_argument (a local tensor).
TENON_API Layout layout_of(const Tensor& tensor);

// For a local tensor: combines the parts of all ranks into one global tensor, which shares their memory. With
// Sbp::split(axis) the parts are consecutive along the axis, with lengths as in part_of; with broadcast each rank
// passes the same elements; with partial the tensor is the sum of the parts. For a global tensor: the same elements in
// another layout, and on another placement if one is given. Gradients return to the layout of `tensor`, with broadcast
// in place of partial. Errors, on every rank: invalid_argument (parts that do not fit together, an invalid axis),
// unsupported (partial sums of bool).
TENON_API Tensor to_global(const Tensor& tensor, const Placement& placement, const NdSbp& sbp);
TENON_API Tensor to_global(const Tensor& tensor, const NdSbp& sbp);  // for a global tensor, on its own placement

// Factories. Each rank makes only its part. Of random numbers each rank makes all and keeps its part, so that they do
// not depend on the layout.
TENON_API Tensor full(IntList size, Scalar value, const Placement& placement, const NdSbp& sbp,
                      DType dtype = DType::f32);
TENON_API Tensor zeros(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype = DType::f32);
TENON_API Tensor ones(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype = DType::f32);
TENON_API Tensor rand(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype = DType::f32);
TENON_API Tensor randn(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype = DType::f32);

// The part of this rank; undefined outside the placement. It shares the elements of `tensor`: each sees writes to the
// other.
TENON_API Tensor to_local(const Tensor& tensor);

}  // namespace tenon::global
