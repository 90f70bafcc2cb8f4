// IntList: an argument for shapes, axes and paddings. It takes `{2, 3}`, a vector, Dims, or one number.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "primitives/shape/shape.h"

namespace tenon {

class SizeList;

// Borrows its source for the call; stores a single number itself. It has two words, so that it is passed in registers.
class IntList {
 public:
  IntList() = default;
  IntList(std::initializer_list<AnyInt> values) {
    data_ = reinterpret_cast<const int64_t*>(values.begin());  // lives as long as the full expression
    size_ = values.size();
  }
  IntList(const std::vector<int64_t>& values) : data_(values.data()), size_(values.size()) {}
  // Converts numbers of another integer type into `wide`, which lives for the call.
  template <std::integral T>
  requires(!std::same_as<T, int64_t>) IntList(const std::vector<T>& values, std::vector<int64_t>&& wide = {}) {
    wide.assign(values.begin(), values.end());
    data_ = wide.data();
    size_ = wide.size();
  }
  IntList(const Dims& dims) : data_(dims.data()), size_(dims.size()) {}
  IntList(std::span<const int64_t> values) : data_(values.data()), size_(values.size()) {}
  // Sizes, some of which may be expressions (size_list.h). Reading them as numbers binds the recording to these
  // numbers.
  IntList(const SizeList& sizes) : sizes_(&sizes), size_(kSizes) {}
  template <std::integral T>
  IntList(T value) : single_(static_cast<int64_t>(value)), size_(kSingle) {}

  const int64_t* data() const {
    if (size_ < kSizes) [[likely]]
      return data_;
    return size_ == kSingle ? &single_ : numbers();
  }
  size_t size() const {
    if (size_ < kSizes) [[likely]]
      return size_;
    return size_ == kSingle ? 1 : count();
  }
  bool empty() const { return size() == 0; }
  // The sizes that the list was made from; null: it was made from numbers.
  const SizeList* sizes() const { return size_ == kSizes ? sizes_ : nullptr; }
  int64_t operator[](size_t i) const { return data()[i]; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size(); }
  operator std::span<const int64_t>() const { return {data(), size()}; }

 private:
  static constexpr size_t kSingle = ~size_t{0};
  static constexpr size_t kSizes = kSingle - 1;

  const int64_t* numbers() const;  // for a list of sizes
  size_t count() const;

  union {
    const int64_t* data_ = nullptr;
    int64_t single_;
    const SizeList* sizes_;
  };
  size_t size_ = 0;
};

}  // namespace tenon
