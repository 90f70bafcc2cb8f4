// SizeList: sizes that may be expressions, passed where an IntList is expected. A general functor uses the expressions;
// any other reads numbers, which binds the recording to them. Internal.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/symbolic/sym_dim.h"
#include "core/tensor/int_list.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

class SizeList {
 public:
  SizeList() = default;
  SizeList(std::initializer_list<SymDim> sizes) : sizes_(sizes) {}
  explicit SizeList(std::vector<SymDim> sizes) : sizes_(std::move(sizes)) {}
  explicit SizeList(const SymDims& sizes) : sizes_(sizes.begin(), sizes.end()) {}

  const std::vector<SymDim>& sizes() const { return sizes_; }
  // The sizes as numbers; binds each of them.
  const std::vector<int64_t>& numbers() const;

 private:
  std::vector<SymDim> sizes_;
  mutable std::vector<int64_t> numbers_;
};

// True if one of the numbers of `list` is an expression.
bool has_open(const SizeList& list);
inline bool is_open(const IntList& list) { return list.sizes() != nullptr && has_open(*list.sizes()); }
// The numbers of `list`, including its expressions. Numbers beyond 63 bits saturate.
std::vector<SymDim> sizes_of(const IntList& list);

}  // namespace tenon
#pragma GCC visibility pop
