#include "providers/nccl/plugin.h"
#include "sdk/provider/descriptor.h"

namespace tenon::provider::nccl {
namespace {

template <class Test>
uint64_t bits_where(const Test& test) {
  uint64_t mask = 0;
  for (int32_t id = 1; id < 64; ++id) {
    if (test(id)) mask |= UINT64_C(1) << id;
  }
  return mask;
}

}  // namespace

Type reduced_type(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_i8: return int8;
    case EP_DTYPE_u8: return uint8;
    case EP_DTYPE_i32: return int32;
    case EP_DTYPE_u32: return uint32;
    case EP_DTYPE_i64: return int64;
    case EP_DTYPE_u64: return uint64;
    case EP_DTYPE_f16: return float16;
    case EP_DTYPE_bf16: return bfloat16;
    case EP_DTYPE_f32: return float32;
    case EP_DTYPE_f64: return float64;
    default: return no_type;
  }
}

int64_t bytes_of(int32_t dtype) { return dtype_size(dtype); }

int op_of(int32_t reduction) {
  switch (reduction) {
    case EP_REDUCE_sum: return sum;
    case EP_REDUCE_prod: return prod;
    default: return -1;
  }
}

uint64_t carried_dtypes() {
  return bits_where([](int32_t dtype) { return bytes_of(dtype) > 0; });
}
uint64_t reduced_dtypes() {
  return bits_where([](int32_t dtype) { return reduced_type(dtype) != no_type; });
}
uint64_t known_reductions() {
  return bits_where([](int32_t reduction) { return op_of(reduction) >= 0; });
}

}  // namespace tenon::provider::nccl
