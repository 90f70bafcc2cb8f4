// Helpers of the rules: map axes of one tensor to axes of another. Internal.
#pragma once

#include <cstdint>
#include <optional>

#include "core/global/signatures.h"

namespace tenon::global {

// The split of a tensor of `dims`, broadcast to `all`, that matches a split of `all` along `axis`; broadcast if the
// tensor has one element along that axis.
inline Sbp aligned(const Dims& dims, const Dims& all, int32_t axis) {
  const int32_t own = axis - (all.rank() - dims.rank());
  return own >= 0 && dims[own] == all[axis] ? Sbp::split(own) : Sbp::broadcast();
}

// The axis; negative axes count from the end.
inline int32_t from_front(int64_t axis, int32_t rank) { return static_cast<int32_t>(axis < 0 ? axis + rank : axis); }

// Adds, for each axis of argument 0 except `except`: all arguments and results split along that axis.
void add_same_axis(const CallFacts& facts, int32_t except, Signatures* signatures);
// Adds: every argument and every result is a partial sum.
void add_partial(Signatures* signatures);
// Adds, for each axis of the only argument: if `to` maps it to an axis of every result, all are split along these axes.
template <class To>
void add_moved(const CallFacts& facts, Signatures* signatures, const To& to) {
  for (int32_t axis = 0; axis < facts.rank(0); ++axis) {
    const std::optional<int32_t> moved = to(axis);
    if (!moved) continue;
    Signature signature = signatures->blank();
    signature.inputs[0] = Sbp::split(axis);
    for (Sbp& output : signature.outputs) output = Sbp::split(*moved);
    signatures->add(std::move(signature));
  }
}

}  // namespace tenon::global
