// Reads and writes elements of any dtype as one of three types: double for floating dtypes, int64_t for signed
// integers, uint64_t for unsigned integers and bool.
#pragma once

#include <cstdint>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"

namespace tenon::reference {

// Element `index` (in elements from `base`), converted to T as `cast` does: integers wrap, floats truncate toward zero
// and saturate, NaN becomes 0.
template <class T>
T load(DType dtype, const void* base, int64_t index);

// The inverse: rounds once, wraps, saturates; bool stores `value != 0`.
template <class T>
void store(DType dtype, void* base, int64_t index, T value);

// A launch scalar, whatever its dtype, as T.
template <class T>
T scalar_value(const ep_scalar& scalar);
// Like the function above, rounded to the scalar's dtype like an element.
template <class T>
T scalar_element(const ep_scalar& scalar);

// Calls function(T{}), where T is the type for computing with elements of `dtype`.
template <class Function>
auto with_compute_type(DType dtype, Function&& function) {
  switch (dtype_info(dtype).type_class) {
    case DTypeClass::FLOAT: return function(double{});
    case DTypeClass::INT: return function(int64_t{});
    default: return function(uint64_t{});
  }
}

}  // namespace tenon::reference
