// The entries of x.index({...}), as in NumPy and PyTorch:
//
//   x.index({0, Slice(1, 5), Ellipsis, None});  a view: numbers, slices, the rest of the axes, a new axis of length 1
//   x.index({mask}), x.index({rows, columns});  a copy: elements where a bool mask is true, or at positions
//   x[0] = 1; x.index({Slice(1, 5)}) = y;       writes through views
//   x.index_put_({mask}, 0);                    writes the elements that index() would copy
//
// index() reads the number of true elements of a mask; index_put_ reads it only if each true element gets its own
// value. Several index tensors broadcast. Their axes are placed at the first index tensor's axis, or in front if other
// axes lie between them.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <variant>

#include "core/tensor/tensor.h"

namespace tenon {

struct NoneType {
  operator std::optional<int64_t>() const { return std::nullopt; }
};
inline constexpr NoneType None;
struct EllipsisType {};
inline constexpr EllipsisType Ellipsis;

// Every step-th element from start to end (exclusive); negative numbers count from the end of the axis. A negative step
// makes a copy.
struct Slice {
  explicit Slice(std::optional<int64_t> first = {}, std::optional<int64_t> last = {}, int64_t by = 1)
      : start(first), end(last), step(by) {}
  std::optional<int64_t> start, end;
  int64_t step;
};

class Index {
 public:
  template <std::integral T>
  requires(!std::same_as<T, bool>) Index(T position) : held_(static_cast<int64_t>(position)) {}
  Index(NoneType none) : held_(none) {}
  Index(EllipsisType ellipsis) : held_(ellipsis) {}
  Index(Slice slice) : held_(slice) {}
  Index(Tensor positions) : held_(std::move(positions)) {}

  template <class T>
  const T* get() const {
    return std::get_if<T>(&held_);
  }

 private:
  std::variant<int64_t, NoneType, EllipsisType, Slice, Tensor> held_;
};

}  // namespace tenon
