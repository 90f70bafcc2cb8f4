// Folding: the operands of one primitive, folded for its descriptor. Operands share `dims`; `simplify` merges axes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "core/kernel/lowering.h"
#include "primitives/simplify/simplify.h"

namespace tenon::ops {

class Folding {
 public:
  explicit Folding(const Dims& dims) : rank_(dims.rank()) { std::copy(dims.begin(), dims.end(), dims_); }

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
  // fold_marked with one marked axis. Returns the new position of that axis.
  int32_t fold_around(int32_t axis) {
    uint32_t marked = 1u << axis;
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
