// Dims: a short vector of int64 stored inline, up to EP_MAX_RANK. It holds shapes and strides (in elements). Its
// template, BasicDims, also holds sizes that are expressions (core/symbolic).
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "ep_api/ep_api.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// An element of a braced list of sizes: any integer type, so that one list may mix int, size_t and int64_t.
struct AnyInt {
  template <class T>
  requires(std::is_convertible_v<T, int64_t> && !std::is_floating_point_v<T>) constexpr AnyInt(T number)
      : value(static_cast<int64_t>(number)) {}
  explicit constexpr operator int64_t() const { return value; }
  int64_t value;
};
static_assert(sizeof(AnyInt) == sizeof(int64_t) && std::is_standard_layout_v<AnyInt>);  // read as an array of int64

[[noreturn]] void refuse_rank(size_t rank);  // throws the error of a list longer than EP_MAX_RANK

// `T` is the type of one size: int64_t, or SymDim.
template <class T>
class BasicDims {
 public:
  using value_type = T;
  using Item = std::conditional_t<std::is_same_v<T, int64_t>, AnyInt, T>;

  BasicDims() = default;
  BasicDims(std::initializer_list<Item> values) : rank_(checked_rank(values.size())) {
    std::transform(values.begin(), values.end(), values_, [](Item each) { return static_cast<T>(each); });
  }
  // Errors, also of functions that add values: invalid_argument for more than EP_MAX_RANK.
  explicit BasicDims(std::span<const T> values) : rank_(checked_rank(values.size())) {
    std::copy(values.begin(), values.end(), values_);
  }
  // A list of any integers.
  template <class U>
  requires(std::is_integral_v<U>&& std::is_same_v<T, int64_t>) BasicDims(const std::vector<U>& values)
      : rank_(checked_rank(values.size())) {
    std::copy(values.begin(), values.end(), values_);
  }
  static BasicDims filled(int32_t rank, T value) {
    BasicDims dims;
    dims.rank_ = checked_rank(static_cast<size_t>(rank));
    std::fill_n(dims.values_, rank, value);
    return dims;
  }

  int32_t rank() const { return rank_; }
  size_t size() const { return static_cast<size_t>(rank_); }
  bool empty() const { return rank_ == 0; }
  T* data() { return values_; }
  const T* data() const { return values_; }
  T& operator[](int64_t axis) { return values_[axis]; }
  T operator[](int64_t axis) const { return values_[axis]; }
  T* begin() { return values_; }
  T* end() { return values_ + rank_; }
  const T* begin() const { return values_; }
  const T* end() const { return values_ + rank_; }
  T back() const { return values_[rank_ - 1]; }

  void push_back(T value) {
    checked_rank(size() + 1);
    values_[rank_++] = value;
  }
  void resize(int32_t rank, T value = 0) {
    checked_rank(static_cast<size_t>(rank));
    for (int32_t axis = rank_; axis < rank; ++axis) values_[axis] = value;
    rank_ = rank;
  }
  // New elements are uninitialised; the caller must write them.
  void resize_for_overwrite(int32_t rank) { rank_ = checked_rank(static_cast<size_t>(rank)); }
  void erase(int64_t axis) {
    std::copy(values_ + axis + 1, values_ + rank_, values_ + axis);
    --rank_;
  }
  void insert(int64_t axis, T value) {
    checked_rank(size() + 1);
    std::copy_backward(values_ + axis, values_ + rank_, values_ + rank_ + 1);
    values_[axis] = value;
    ++rank_;
  }

  friend bool operator==(const BasicDims& a, const BasicDims& b) {
    if (a.rank_ != b.rank_) return false;
    for (int32_t axis = 0; axis < a.rank_; ++axis) {  // memcmp is slower for so few elements
      if (a.values_[axis] != b.values_[axis]) return false;
    }
    return true;
  }

 private:
  static int32_t checked_rank(size_t rank) {
    if (rank > EP_MAX_RANK) refuse_rank(rank);
    return static_cast<int32_t>(rank);
  }

  int32_t rank_ = 0;
  T values_[EP_MAX_RANK];
};

using Dims = BasicDims<int64_t>;

// The number of elements: the product of `dims`, 1 for rank 0. `dims` must have passed checked_count.
template <class T>
T element_count(const BasicDims<T>& dims) {
  T count = 1;
  for (const T dim : dims) count *= dim;
  return count;
}

// The number of elements. Nothing if a dim is negative or the number of bytes (count * bytes_per_element) overflows
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

// True if the elements are consecutive in row-major order (dims of 1 may have any stride; empty tensors are
// contiguous).
bool is_contiguous(const Dims& dims, const Dims& strides);

// "[2, 3, 4]"
std::string to_string(const Dims& dims);

}  // namespace tenon

#pragma GCC visibility pop
