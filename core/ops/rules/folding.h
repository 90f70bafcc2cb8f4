// Folding: the operands of one primitive, folded for its descriptor. Operands share `dims`; `simplify` merges axes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/primitive/lowering.h"
#include "primitives/simplify/simplify.h"

namespace tenon::ops {

class Folding {
 public:
  explicit Folding(const Dims& dims) : rank_(dims.rank()) {
    for (int32_t axis = 0; axis < rank_; ++axis) dims_[axis] = dims[axis];
  }

  // Adds an operand with `strides`, one per axis. The first operand added is the output.
  void add(const Dims& strides) {
    for (int32_t axis = 0; axis < rank_; ++axis) strides_[count_][static_cast<size_t>(axis)] = strides[axis];
    pointers_[count_] = strides_[count_].data();
    ++count_;
  }

  void fold_elementwise() { rank_ = simplify::fold_elementwise(rank_, dims_, pointers_, count_); }
  void fold_reduce(uint32_t* axes) { rank_ = simplify::fold_reduce(rank_, dims_, axes, pointers_, count_); }
  void fold_marked(uint32_t* marked) { rank_ = simplify::fold_marked(rank_, dims_, marked, pointers_, count_); }
  void fold_halves(int32_t* axis) { rank_ = simplify::fold_halves(rank_, dims_, axis, pointers_, count_); }
  void fold_batch() { rank_ = simplify::fold_batch(rank_, dims_, pointers_, count_); }
  // Sorts the axes by the strides of the first operand, the greatest first, so that kernels access it in memory order,
  // channels-last or not. Reorders the bits of `marked` too. Entry i of the result is the old number of the axis that
  // is now the i-th.
  std::array<int32_t, EP_MAX_RANK> sort_axes(uint32_t* marked) {
    std::array<int32_t, EP_MAX_RANK> from{0, 1, 2, 3, 4, 5, 6, 7};
    const auto key = [&](int32_t axis) {
      const bool matters = dims_[axis] != 1 || (*marked >> axis & 1) != 0;
      return matters ? strides_[0][static_cast<size_t>(axis)] : std::numeric_limits<int64_t>::max();
    };
    for (int32_t axis = 1; axis < rank_; ++axis) {
      for (int32_t at = axis; at > 0 && key(at - 1) < key(at); --at) swap_axes(at - 1, at, marked, from);
    }
    return from;
  }
  // sort_axes and fold_marked with one marked axis. Returns the new position of that axis.
  int32_t fold_around(int32_t axis) {
    uint32_t marked = 1u << axis;
    sort_axes(&marked);
    fold_marked(&marked);
    return std::countr_zero(marked);
  }

  int32_t rank() const { return rank_; }
  Dims dims() const { return Dims(std::span<const int64_t>(dims_, static_cast<size_t>(rank_))); }
  // `dims` with `length` at `axis`.
  Dims dims_with(int32_t axis, int64_t length) const {
    Dims dims = this->dims();
    dims[axis] = length;
    return dims;
  }
  Dims strides(size_t operand) const {
    return Dims(std::span<const int64_t>(strides_[operand].data(), static_cast<size_t>(rank_)));
  }

 private:
  void swap_axes(int32_t a, int32_t b, uint32_t* marked, std::array<int32_t, EP_MAX_RANK>& from) {
    const auto left = static_cast<size_t>(a), right = static_cast<size_t>(b);
    std::swap(dims_[left], dims_[right]);
    std::swap(from[left], from[right]);
    for (int32_t i = 0; i < count_; ++i) std::swap(strides_[i][left], strides_[i][right]);
    if ((*marked >> a & 1) != (*marked >> b & 1)) *marked ^= 1u << a | 1u << b;
  }

  int32_t rank_;
  int32_t count_ = 0;
  int64_t dims_[EP_MAX_RANK] = {};
  std::array<int64_t, EP_MAX_RANK> strides_[EP_MAX_OPERANDS] = {};
  int64_t* pointers_[EP_MAX_OPERANDS] = {};
};

// The dtype of input `index` of `call`.
inline DType input_dtype(const OpCall& call, size_t index) { return call.inputs[index]->dtype(); }

// The stride of a list of parameters. A list of one element gets stride 1, so that equal work has equal descriptors.
inline Dims list_strides(const Tensor& list) { return Dims{list.dims()[0] == 1 ? 1 : list.strides()[0]}; }

}  // namespace tenon::ops
