// The unary scalar functions. unary_<function>_f32: one kernel per function, for floats computed in f32. unary_<class>:
// one kernel for all functions of any other class.
#include "providers/cuda/kernels/map.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cuda {

template <int32_t op>
TENON_ON_GPU void unary_row(const MapArguments& map) {
  const auto a = scalar_of<float>(map.parameters[0]);
  const auto b = scalar_of<float>(map.parameters[1]);
  for_each_chunk_of<Numbers<float>>(map, [&](const MapPlace& place, const auto& ahead) {
    float x[map_chunk] = {};
    load_source(x, map, place, ahead);
    decltype(scalar::unary_row(scalar::Op<op>(), a, a, b)) y[map_chunk];
    TENON_UNROLL
    for (int i = 0; i < map_chunk; ++i) y[i] = scalar::unary_row(scalar::Op<op>(), x[i], a, b);
    store_result<float, map_chunk>(y, map, place);
  });
}

// The value of scalar function `op`: a number or a bool.
template <class Class>
TENON_ON_GPU Class unary_value(int32_t op, Class x, Class a, Class b) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression)                         \
  case id:                                                                     \
    if constexpr (scalar::in_domain<Class>(scalar::Domain::domain))            \
      return static_cast<Class>(scalar::unary_row(scalar::Op<id>(), x, a, b)); \
    else                                                                       \
      return x;
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
    default: return x;
  }
}

template <class Class>
TENON_ON_GPU void unary_rows(const MapArguments& map) {
  const auto a = scalar_of<Class>(map.parameters[0]);
  const auto b = scalar_of<Class>(map.parameters[1]);
  const bool truth = map.operands[0].dtype == EP_DTYPE_bool;
  for_each_chunk<2, 1>(map, [&](const MapPlace& place) {
    Class x[1] = {};
    load_operand<Class, 1>(x, map, 1, place);
    const Class y[1] = {unary_value(map.op, x[0], a, b)};
    const bool answer[1] = {y[0] != Class{0}};
    if (truth)
      store_result<Class, 1>(answer, map, place);
    else
      store_result<Class, 1>(y, map, place);
  });
}

}  // namespace tenon::provider::cuda

using tenon::provider::cuda::MapArguments;

#define TENON_ROW_KERNEL(name, id) \
  TENON_KERNEL unary_##name##_f32(TENON_ARGUMENT(MapArguments) map) { tenon::provider::cuda::unary_row<id>(map); }
#define TENON_ROW_FLOAT(name, id) TENON_ROW_KERNEL(name, id)
#define TENON_ROW_SIGNED(name, id) TENON_ROW_KERNEL(name, id)
#define TENON_ROW_NUMERIC(name, id) TENON_ROW_KERNEL(name, id)
#define TENON_ROW_ANY(name, id) TENON_ROW_KERNEL(name, id)
#define TENON_ROW_BITS(name, id)
#define EP_UNARY(name, id, domain, result, expression) TENON_ROW_##domain(name, id)
#include "ep_api/scalar_ops.def"
#undef EP_UNARY

TENON_KERNEL unary_f64(TENON_ARGUMENT(MapArguments) map) { tenon::provider::cuda::unary_rows<double>(map); }
TENON_KERNEL unary_i64(TENON_ARGUMENT(MapArguments) map) { tenon::provider::cuda::unary_rows<int64_t>(map); }
TENON_KERNEL unary_u64(TENON_ARGUMENT(MapArguments) map) { tenon::provider::cuda::unary_rows<uint64_t>(map); }
TENON_KERNEL unary_bool(TENON_ARGUMENT(MapArguments) map) { tenon::provider::cuda::unary_rows<bool>(map); }
