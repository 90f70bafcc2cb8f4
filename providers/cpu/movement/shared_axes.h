// Axes of several operands at once, for gather and scatter.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {

// A step or an offset in each operand, in elements. `whole` is the operand with the axis that INDICES address: SRC of
// gather, DST of scatter or its copy in the workspace. `taken` are the selected elements: DST of gather, SRC_B of
// scatter.
struct Steps {
  int64_t taken = 0, indices = 0, whole = 0, src = 0;

  Steps operator*(int64_t n) const { return {taken * n, indices * n, whole * n, src * n}; }
  Steps operator+(const Steps& b) const { return {taken + b.taken, indices + b.indices, whole + b.whole, src + b.src}; }
  bool operator==(const Steps&) const = default;
};

// Axes that all operands share, in row-major order. Adjacent axes are merged if every operand walks them alike.
struct SharedAxes {
  int32_t rank = 0;
  int64_t dims[2 * EP_MAX_RANK];
  Steps steps[2 * EP_MAX_RANK];

  void add(int64_t dim, const Steps& step) {
    if (dim == 1) return;
    if (rank > 0 && steps[rank - 1] == step * dim) {
      dims[rank - 1] *= dim;
      steps[rank - 1] = step;
      return;
    }
    dims[rank] = dim;
    steps[rank++] = step;
  }
  void add(const SharedAxes& more) {
    for (int32_t k = 0; k < more.rank; ++k) add(more.dims[k], more.steps[k]);
  }
  void remove(int32_t axis) {
    --rank;
    std::copy(dims + axis + 1, dims + rank + 1, dims + axis);
    std::copy(steps + axis + 1, steps + rank + 1, steps + axis);
  }
  int64_t count() const {
    int64_t product = 1;
    for (int32_t k = 0; k < rank; ++k) product *= dims[k];
    return product;
  }
  Steps offset(int64_t index) const {
    Steps sum;
    for (int32_t k = rank - 1; k > 0; --k) {
      sum = sum + steps[k] * (index % dims[k]);
      index /= dims[k];
    }
    return rank == 0 ? sum : sum + steps[0] * index;
  }
  // The length and the steps of the last axis. Without an axis the length is 1 and the steps are 0.
  int64_t last_dim() const { return rank == 0 ? 1 : dims[rank - 1]; }
  Steps last_steps() const { return rank == 0 ? Steps() : steps[rank - 1]; }
};

}  // namespace tenon::provider::cpu
