// libtorch doing the same work, behind plain functions, so that its headers are compiled only once. All in inference
// mode, except work that records gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "benchmarks/report/row.h"

namespace tenon::bench {

enum class Work {
  relu,
  add,
  view,
  add_out,
  bias,
  strided,
  transposed,
  recorded_relu,
  recorded_mul,
  backward_relu,
  backward_mul,
  chain,
  physics,
  adamw
};

// Nodes of a backward_ work, each of which counts as one run; ops of a chain.
constexpr int64_t kChain = 1000;

// The operands of a work. Both sides make them from `values`; all are f32.
//   relu, add, view, add_out: `values` as a vector; view sees it as [rows, columns]
//   bias: x[rows, columns] + b[columns]; b is the first row of x
//   strided: w[:, ::2] + w[:, ::2], where w is [rows, 2 * columns], so it takes twice as many values
//   transposed: x.t() * x.t()
//   recorded_relu, recorded_mul: relu(x), x * x of an x that requires a gradient
//   backward_relu, backward_mul: backward through a chain of kChain ops, y = relu(y) or y = y * c, graph retained
//   chain: kChain ops, alternately y = relu(y) and y = y * c, then backward, which drops the graph
//   physics: a step of a net with layers [2, columns, columns, 1] and tanh whose loss has gradients of gradients, and
//     gradient descent by 0.01; `values` are its weights and biases, with `rows` points, and as many at time 0
//   adamw: one fused step of AdamW for `rows` parameters of `columns` elements; `values` is one of them
struct Operands {
  std::vector<float> values;
  int64_t rows = 0, columns = 0;
};

// The side in which libtorch does `work` on `threads` threads; without a function if this libtorch lacks the work.
Side torch_side(Work work, const Operands& operands, int threads);

}  // namespace tenon::bench
