// Control flow on tensors: a branch, a loop, a scan. Eagerly the functions are called, and gradients pass through them
// as through the ops that they call. While a program is recorded (tenon::compile), each function is recorded once, and
// the program decides when it runs:
//
//   TensorList y = tenon::cond(tenon::gt(tenon::sum(x), 0), [&] { return TensorList{x * w}; },
//                              [&] { return TensorList{x}; });
//
// Results are row-major tensors of their own, even where a function gives back what it was given. The functions may
// read any tensor of the code around them. They are called in an order that nobody may count on, and both branches of a
// recorded cond are. In a recorded function these are errors: writing a tensor from outside of it, random numbers,
// reading elements on the host, keeping a tensor for the code outside, and an argument or a tensor that wants a
// gradient (`gradient: none` until a recorded backward has loops; call it outside of compile, or under NoGrad).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon {

// The results of `then_fn`, called with `operands`, where the one element of `pred` (bool) is true, else those of
// `else_fn`. Both give as many results, of the same dtypes, shapes and devices.
// Errors: invalid_argument (a predicate that is not one bool; branches that differ, with both types).
using Branch = std::function<TensorList(const TensorList&)>;
TENON_API TensorList cond(const Tensor& pred, const Branch& then_fn, const Branch& else_fn,
                          const TensorList& operands = {});
TENON_API TensorList cond(const Tensor& pred, const std::function<TensorList()>& then_fn,
                          const std::function<TensorList()>& else_fn);

struct WhileOptions {
  std::optional<int64_t> most = {};  // the loop ends after so many steps, whatever its condition says
};

// `state`, replaced by `body_fn(state)` as long as the one element of `cond_fn(state)` (bool) is true. A step keeps the
// number, dtypes, shapes and devices of the state. Errors: invalid_argument, with both types; a negative limit.
using StateBody = std::function<TensorList(const TensorList&)>;
using StateCondition = std::function<Tensor(const TensorList&)>;
TENON_API TensorList while_loop(const StateCondition& cond_fn, const StateBody& body_fn, const TensorList& state,
                                const WhileOptions& options = {});

// `carry`, and for each of `ys` the results of all steps.
struct Scanned {
  TensorList carry;
  TensorList ys;
};
struct ScanOptions {
  std::optional<int64_t> length = {};  // the number of steps; needed if `xs` is empty
};

// fn(carry, slices of xs) for each index of the first axis of `xs`, in order: step t gets xs[i][t] and gives the next
// carry and one element of each of `ys`, which are stacked along a new first axis. A step keeps the number, dtypes,
// shapes and devices of the carry. Errors: invalid_argument: steps that differ, with both types; `xs` of rank 0 or of
// different lengths; no length.
using ScanBody = std::function<Scanned(const TensorList& carry, const TensorList& slices)>;
TENON_API Scanned scan(const ScanBody& fn, const TensorList& init, const TensorList& xs,
                       const ScanOptions& options = {});

}  // namespace tenon
