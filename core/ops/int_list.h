// IntList: an argument for shapes, axes and paddings. It takes `{2, 3}`, a vector, Dims, or one number.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "primitives/shape/shape.h"

namespace tenon {

// Borrows its source for the call; holds a single number itself. It has two words, so that it is passed in registers.
class IntList {
 public:
  IntList() = default;
  IntList(std::initializer_list<AnyInt> values) {
    data_ = reinterpret_cast<const int64_t*>(values.begin());  // lives as long as the full expression
    size_ = values.size();
  }
  IntList(const std::vector<int64_t>& values) : data_(values.data()), size_(values.size()) {}
  IntList(const Dims& dims) : data_(dims.data()), size_(dims.size()) {}
  IntList(std::span<const int64_t> values) : data_(values.data()), size_(values.size()) {}
  template <std::integral T>
  IntList(T value) : single_(static_cast<int64_t>(value)), size_(kSingle) {}

  const int64_t* data() const { return size_ == kSingle ? &single_ : data_; }
  size_t size() const { return size_ == kSingle ? 1 : size_; }
  bool empty() const { return size_ == 0; }
  int64_t operator[](size_t i) const { return data()[i]; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size(); }
  operator std::span<const int64_t>() const { return {data(), size()}; }

 private:
  static constexpr size_t kSingle = ~size_t{0};

  union {
    const int64_t* data_ = nullptr;
    int64_t single_;
  };
  size_t size_ = 0;
};

}  // namespace tenon
