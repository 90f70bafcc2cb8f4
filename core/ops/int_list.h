// IntList: how functions of the API take shapes, axes and paddings: `{2, 3}`, a vector, Dims, or one number.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "primitives/shape/shape.h"

namespace tenon {

// Borrows what it was made from for the call; holds a single number itself.
class IntList {
 public:
  IntList() = default;
  IntList(std::initializer_list<int64_t> values) {
    data_ = values.begin();  // lives as long as the argument it stands in
    size_ = values.size();
  }
  IntList(const std::vector<int64_t>& values) : data_(values.data()), size_(values.size()) {}
  IntList(const Dims& dims) : data_(dims.data()), size_(dims.size()) {}
  IntList(std::span<const int64_t> values) : data_(values.data()), size_(values.size()) {}
  template <std::integral T>
  IntList(T value) : single_(static_cast<int64_t>(value)), size_(1), is_single_(true) {}

  const int64_t* data() const { return is_single_ ? &single_ : data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t operator[](size_t i) const { return data()[i]; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  operator std::span<const int64_t>() const { return {data(), size_}; }

 private:
  const int64_t* data_ = nullptr;
  int64_t single_ = 0;
  size_t size_ = 0;
  bool is_single_ = false;
};

}  // namespace tenon
