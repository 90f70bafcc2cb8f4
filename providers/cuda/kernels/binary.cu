// The binary scalar functions. binary_<function>_f32: one kernel per function, for floats computed in f32.
// binary_<class>: one kernel for all functions of any other class. It reports the faults of integer division.
#include "providers/cuda/kernels/map.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cuda {

template <int32_t op>
TENON_ON_GPU void binary_row(const MapArguments& map) {
  for_each_chunk_of<Numbers<float>, Numbers<float>>(map, [&](const MapPlace& place, const auto& ahead) {
    float x[map_chunk] = {};
    float y[map_chunk] = {};
    load_source(x, map, place, ahead);
    load_source(y, map, place, ahead.rest);
    decltype(scalar::binary_row(scalar::Op<op>(), x[0], y[0])) z[map_chunk];
    TENON_UNROLL
    for (int i = 0; i < map_chunk; ++i) z[i] = scalar::binary_row(scalar::Op<op>(), x[i], y[i]);
    store_result<float, map_chunk>(z, map, place);
  });
}

template <class Class>
TENON_ON_GPU Class binary_value(int32_t op, Class x, Class y) {
  switch (op) {
#define EP_BINARY(name, id, domain, result, check, expression)               \
  case id:                                                                   \
    if constexpr (scalar::in_domain<Class>(scalar::Domain::domain))          \
      return static_cast<Class>(scalar::binary_row(scalar::Op<id>(), x, y)); \
    else                                                                     \
      return x;
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
    default: return x;
  }
}

template <class Class>
TENON_ON_GPU void binary_rows(const MapArguments& map) {
  const bool truth = map.operands[0].dtype == EP_DTYPE_bool;
  for_each_chunk<3, 1>(map, [&](const MapPlace& place) {
    Class x[1] = {};
    Class y[1] = {};
    load_operand<Class, 1>(x, map, 1, place);
    load_operand<Class, 1>(y, map, 2, place);
    Class z[1] = {};
    int32_t fault = 0;
    if constexpr (scalar::is_int<Class>) {
      if (map.fault.claim != 0) fault = scalar::divisor_fault(y[0]);
    }
    if (fault == 0)
      z[0] = binary_value(map.op, x[0], y[0]);
    else
      report_fault(map.fault, fault, static_cast<int64_t>(y[0]));
    const bool answer[1] = {z[0] != Class{0}};
    if (truth)
      store_result<Class, 1>(answer, map, place);
    else
      store_result<Class, 1>(z, map, place);
  });
}

}  // namespace tenon::provider::cuda

using tenon::provider::cuda::MapArguments;

#define TENON_ROW_KERNEL(name, id) \
  TENON_KERNEL binary_##name##_f32(TENON_ARGUMENT(MapArguments) map) { tenon::provider::cuda::binary_row<id>(map); }
#define TENON_ROW_FLOAT(name, id) TENON_ROW_KERNEL(name, id)
#define TENON_ROW_SIGNED(name, id) TENON_ROW_KERNEL(name, id)
#define TENON_ROW_NUMERIC(name, id) TENON_ROW_KERNEL(name, id)
#define TENON_ROW_ANY(name, id) TENON_ROW_KERNEL(name, id)
#define TENON_ROW_BITS(name, id)
#define TENON_ROW_INTEGER(name, id)
#define EP_BINARY(name, id, domain, result, check, expression) TENON_ROW_##domain(name, id)
#include "ep_api/scalar_ops.def"
#undef EP_BINARY

TENON_KERNEL binary_f64(TENON_ARGUMENT(MapArguments) map) { tenon::provider::cuda::binary_rows<double>(map); }
TENON_KERNEL binary_i64(TENON_ARGUMENT(MapArguments) map) { tenon::provider::cuda::binary_rows<int64_t>(map); }
TENON_KERNEL binary_u64(TENON_ARGUMENT(MapArguments) map) { tenon::provider::cuda::binary_rows<uint64_t>(map); }
TENON_KERNEL binary_bool(TENON_ARGUMENT(MapArguments) map) { tenon::provider::cuda::binary_rows<bool>(map); }
