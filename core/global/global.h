// Global tensors: one tensor over many ranks. Every rank runs the same program, and holds a part of each global tensor,
// as its layout says. Public.
//
//   const Placement all = Placement::all("cpu");
//   Tensor x = global::to_global(part, all, {Sbp::split(0)});       // rows of this rank
//   Tensor w = global::to_global(weight, all, {Sbp::broadcast()});  // the same on every rank
//   Tensor y = matmul(x, w);                                        // rows again, without a message
//   double loss = y.sum().item<double>();                           // the sum over all ranks, on each of them
//
// dims(), dtype() and every op speak of the whole tensor. How the results of an op are spread follows from its
// arguments: of the ways in which parts of the arguments give parts of the results (the column `sbp` of the op list),
// the one that moves the fewest bytes. Reading elements (item(), to_host()) brings all of them to every rank. So ops,
// reads and to_global are calls that all ranks of the placement make, in the same order; a rank that does not is an
// error on every other one (communicator.h).
//
// tenon::compile records functions of global tensors (core/compile/compile.h). Each rank records a program of its own,
// and what the ranks give each other stands in it. So all ranks call a compiled function alike too.
//
// A local tensor is refused beside a global one, unless it is a number (rank 0). Random tensors are made from the same
// seed on every rank and so are the same, before they are spread.
#pragma once

#include "core/device/export.h"
#include "core/global/layout.h"
#include "core/global/placement.h"
#include "core/global/sbp.h"
#include "core/tensor/int_list.h"
#include "core/tensor/scalar.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// The number of this process in the launch (mpirun -n 4 program), and how many there are; 0 and 1 without a launcher.
// The first call joins the launch, and waits until every rank has. Errors: those of Communicator::world.
TENON_API int32_t rank();
TENON_API int32_t world_size();

// True if elements of `tensor` are spread over ranks.
TENON_API bool is_global(const Tensor& tensor);
// Where they are. Errors: invalid_argument (a local tensor).
TENON_API Layout layout_of(const Tensor& tensor);

// A local tensor: the parts of all ranks as one tensor, which shares their memory. Of Sbp::split(axis) the parts lie
// one behind the other, along an axis as part_of deals its positions; of broadcast each rank gives the same elements;
// of partial the tensor is the sum. A global tensor: the same elements in another layout, on another placement if it is
// given. Gradients go back to the layout of `tensor`, broadcast where it is partial. Errors, on every rank:
// invalid_argument (parts that do not fit together, an axis that is not there), unsupported (partial sums of bool).
TENON_API Tensor to_global(const Tensor& tensor, const Placement& placement, const NdSbp& sbp);
TENON_API Tensor to_global(const Tensor& tensor, const NdSbp& sbp);  // of a global tensor, where it is

// Factories. Each rank makes its part alone; of random numbers it makes them all, and keeps its part, so that they are
// the same however they are spread.
TENON_API Tensor full(IntList size, Scalar value, const Placement& placement, const NdSbp& sbp,
                      DType dtype = DType::f32);
TENON_API Tensor zeros(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype = DType::f32);
TENON_API Tensor ones(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype = DType::f32);
TENON_API Tensor rand(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype = DType::f32);
TENON_API Tensor randn(IntList size, const Placement& placement, const NdSbp& sbp, DType dtype = DType::f32);

// The part of this rank; undefined outside of the placement. Its elements are those of `tensor`: writes are seen by
// both.
TENON_API Tensor to_local(const Tensor& tensor);

}  // namespace tenon::global
