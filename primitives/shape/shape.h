// Dims: a short vector of int64 held inline, up to EP_MAX_RANK; used for shapes and for strides (in elements).
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "ep_api/ep_api.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// An element of a braced list of sizes: any integer, so that one list may hold int, size_t and int64_t.
struct AnyInt {
  template <class T>
  requires(std::is_convertible_v<T, int64_t> && !std::is_floating_point_v<T>) constexpr AnyInt(T number)
      : value(static_cast<int64_t>(number)) {}
  int64_t value;
};
static_assert(sizeof(AnyInt) == sizeof(int64_t) && std::is_standard_layout_v<AnyInt>);  // read as an array of int64

class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<AnyInt> values) : rank_(checked_rank(values.size())) {
    std::transform(values.begin(), values.end(), values_, [](AnyInt each) { return each.value; });
  }
  // Errors, here and where values are added: invalid_argument for more than EP_MAX_RANK.
  explicit Dims(std::span<const int64_t> values) : rank_(checked_rank(values.size())) {
    std::copy(values.begin(), values.end(), values_);
  }
  static Dims filled(int32_t rank, int64_t value) {
    Dims dims;
    dims.rank_ = checked_rank(static_cast<size_t>(rank));
    std::fill_n(dims.values_, rank, value);
    return dims;
  }

  int32_t rank() const { return rank_; }
  size_t size() const { return static_cast<size_t>(rank_); }
  bool empty() const { return rank_ == 0; }
  int64_t* data() { return values_; }
  const int64_t* data() const { return values_; }
  int64_t& operator[](int64_t axis) { return values_[axis]; }
  int64_t operator[](int64_t axis) const { return values_[axis]; }
  int64_t* begin() { return values_; }
  int64_t* end() { return values_ + rank_; }
  const int64_t* begin() const { return values_; }
  const int64_t* end() const { return values_ + rank_; }
  int64_t back() const { return values_[rank_ - 1]; }

  void push_back(int64_t value) {
    checked_rank(size() + 1);
    values_[rank_++] = value;
  }
  void resize(int32_t rank, int64_t value = 0) {
    checked_rank(static_cast<size_t>(rank));
    for (int32_t axis = rank_; axis < rank; ++axis) values_[axis] = value;
    rank_ = rank;
  }
  // What is new is for the caller to write.
  void resize_for_overwrite(int32_t rank) { rank_ = checked_rank(static_cast<size_t>(rank)); }
  void erase(int64_t axis) {
    std::copy(values_ + axis + 1, values_ + rank_, values_ + axis);
    --rank_;
  }
  void insert(int64_t axis, int64_t value) {
    checked_rank(size() + 1);
    std::copy_backward(values_ + axis, values_ + rank_, values_ + rank_ + 1);
    values_[axis] = value;
    ++rank_;
  }

  friend bool operator==(const Dims& a, const Dims& b) {
    if (a.rank_ != b.rank_) return false;
    for (int32_t axis = 0; axis < a.rank_; ++axis) {  // memcmp costs more than these few
      if (a.values_[axis] != b.values_[axis]) return false;
    }
    return true;
  }

 private:
  static int32_t checked_rank(size_t rank) {
    if (rank > EP_MAX_RANK) refuse_rank(rank);
    return static_cast<int32_t>(rank);
  }
  [[noreturn]] static void refuse_rank(size_t rank);

  int32_t rank_ = 0;
  int64_t values_[EP_MAX_RANK];
};

// The number of elements: the product of `dims`, 1 for rank 0. `dims` must have passed checked_count.
inline int64_t element_count(const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

// Number of elements, or nothing if a dim is negative or the number of bytes (count * bytes_per_element) overflows
// int64.
std::optional<int64_t> checked_count(const Dims& dims, int64_t bytes_per_element = 8);

// Row-major strides of `dims`: {12, 4, 1} for {2, 3, 4}.
inline Dims contiguous_strides(const Dims& dims) {
  Dims strides;
  strides.resize_for_overwrite(dims.rank());
  int64_t stride = 1;
  for (int32_t axis = dims.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    if (axis > 0) stride *= std::max<int64_t>(dims[axis], 1);
  }
  return strides;
}

// True if elements lie one after the other in row-major order (dims of 1 may have any stride; empty tensors are
// contiguous).
bool is_contiguous(const Dims& dims, const Dims& strides);

// "[2, 3, 4]"
std::string to_string(const Dims& dims);

}  // namespace tenon

#pragma GCC visibility pop
