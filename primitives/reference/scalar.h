// The rows of scalar_ops.def, computed with plain <cmath> functions on double, int64_t and uint64_t.
#pragma once

#include <cstdint>

#include "primitives/dtype/dtype.h"

namespace tenon::reference {

// T is double, int64_t or uint64_t; the op must be defined on T's dtypes. Booleans are 0 and 1.
template <class T>
T unary(int32_t op, T x, T a, T b);
template <class T>
T binary(int32_t op, T x, T y);
template <class T>
T ternary(int32_t op, T x, T y, T z);

// The steps of a reduction of n elements: start, combine(so far, map(x)) for each element, finish.
template <class T>
T reduce_init(int32_t op);
template <class T>
T reduce_map(int32_t op, T x);
template <class T>
T reduce_combine(int32_t op, T x, T y);
template <class T>
T reduce_finish(int32_t op, T x, int64_t n);

// The EP_FAULT_* code of a division by the integer y; 0 if y is valid. Floats have no fault.
template <class T>
int32_t divisor_fault(T y);

}  // namespace tenon::reference
