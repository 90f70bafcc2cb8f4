// The compute types of the scalar kernels: all but f32, which has vector kernels.
#pragma once

#include <cstdint>

#include "ep_api/ep_api.h"
#include "providers/cpu/elementwise/kernel.h"

namespace tenon::provider::cpu {

// Calls `choose` with a value of the C++ type for `dtype` and returns its result; NULL if `dtype` is not a compute
// type. If a target `fuses` products and sums, f64 would give other bits, so it returns NULL for f64.
template <bool fuses, class Choose>
MapFunction for_scalar_type(int32_t dtype, Choose choose) {
  switch (dtype) {
    case EP_DTYPE_bool: return choose(bool());
    case EP_DTYPE_i8: return choose(int8_t());
    case EP_DTYPE_i16: return choose(int16_t());
    case EP_DTYPE_i32: return choose(int32_t());
    case EP_DTYPE_i64: return choose(int64_t());
    case EP_DTYPE_u8: return choose(uint8_t());
    case EP_DTYPE_u16: return choose(uint16_t());
    case EP_DTYPE_u32: return choose(uint32_t());
    case EP_DTYPE_u64: return choose(uint64_t());
    case EP_DTYPE_f64:
      if constexpr (fuses)
        return nullptr;
      else
        return choose(double());
    default: return nullptr;
  }
}

}  // namespace tenon::provider::cpu
