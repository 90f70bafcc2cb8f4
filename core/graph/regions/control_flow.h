// Control flow on tensors: a branch, a loop, a scan. In eager mode the functions are called, and gradients pass through
// the ops that they call. While a program is recorded (tenon::compile), each function is recorded once, and each run of
// the program decides when it runs:
//
//   TensorList y = tenon::cond(tenon::gt(tenon::sum(x), 0), [&] { return TensorList{x * w}; },
//                              [&] { return TensorList{x}; });
//
// Results are new row-major tensors, even if a function returns one of its arguments. The functions may read any tensor
// of the surrounding code. The order of their calls is not specified, and both branches of a recorded cond are called.
// In a recorded function these are errors: writing a tensor from outside, drawing random numbers, reading elements on
// the host, keeping a tensor for the code outside, and an argument or tensor that wants a gradient (recorded backward
// has no loops; call the function outside of compile, or under NoGrad).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon {

// Calls `then_fn` with `operands` if the one element of `pred` (bool) is true, else `else_fn`, and returns the results.
// Both must return the same number of results, with the same dtypes, shapes and devices. Errors: invalid_argument if
// the predicate is not one bool, or if the branches differ, with both types.
using Branch = std::function<TensorList(const TensorList&)>;
TENON_API TensorList cond(const Tensor& pred, const Branch& then_fn, const Branch& else_fn,
                          const TensorList& operands = {});
TENON_API TensorList cond(const Tensor& pred, const std::function<TensorList()>& then_fn,
                          const std::function<TensorList()>& else_fn);

struct WhileOptions {
  std::optional<int64_t> most = {};  // the loop ends after this many steps, even if its condition is true
};

// Replaces `state` by `body_fn(state)` as long as the one element of `cond_fn(state)` (bool) is true. A step must keep
// the number, dtypes, shapes and devices of the state. Errors: invalid_argument for a state that changes, with both
// types, or a negative limit.
using StateBody = std::function<TensorList(const TensorList&)>;
using StateCondition = std::function<Tensor(const TensorList&)>;
TENON_API TensorList while_loop(const StateCondition& cond_fn, const StateBody& body_fn, const TensorList& state,
                                const WhileOptions& options = {});

// The final `carry`, and for each of `ys` the results of all steps.
struct Scanned {
  TensorList carry;
  TensorList ys;
};
struct ScanOptions {
  std::optional<int64_t> length = {};  // the number of steps; needed if `xs` is empty
};

// Calls fn(carry, slices of xs) for each index of the first axis of `xs`, in order. Step t gets xs[i][t] and returns
// the next carry and one element of each of `ys`; these are stacked along a new first axis. A step must keep the
// number, dtypes, shapes and devices of the carry. Errors: invalid_argument if steps differ, with both types; if `xs`
// have rank 0 or different lengths; if the length is unknown.
using ScanBody = std::function<Scanned(const TensorList& carry, const TensorList& slices)>;
TENON_API Scanned scan(const ScanBody& fn, const TensorList& init, const TensorList& xs,
                       const ScanOptions& options = {});

}  // namespace tenon
