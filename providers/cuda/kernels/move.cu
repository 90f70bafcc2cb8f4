// Kernels that move elements: bits_<size> (fill, and copy between equal types), cast_<class of the source> (casts),
// where_<size>, and the other ternary rows, <name>_<class>.
#include "providers/cuda/kernels/map.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cuda {

template <class Bits>
TENON_ON_GPU void store_bits(const Bits* values, const MapArguments& map, const MapPlace& place) {
  const MapOperand& to = map.operands[0];
  store_chunk_as<map_chunk, Bits>(values, to.address, place.offsets[0], to.strides[map.rank - 1], to.vector != 0,
                                  place.count);
}

template <class Bits>
TENON_ON_GPU void move_bits(const MapArguments& map) {
  for_each_chunk_of<BitsOf<Bits>>(map, [&](const MapPlace& place, const auto& ahead) {
    Bits x[map_chunk] = {};
    load_source(x, map, place, ahead);
    store_bits(x, map, place);
  });
}

template <class Bits>
TENON_ON_GPU void where_bits(const MapArguments& map) {
  for_each_chunk_of<Numbers<bool>, BitsOf<Bits>, BitsOf<Bits>>(map, [&](const MapPlace& place, const auto& ahead) {
    bool condition[map_chunk] = {};
    Bits x[map_chunk] = {};
    Bits y[map_chunk] = {};
    load_source(condition, map, place, ahead);
    load_source(x, map, place, ahead.rest);
    load_source(y, map, place, ahead.rest.rest);
    TENON_UNROLL
    for (int i = 0; i < map_chunk; ++i) x[i] = condition[i] ? x[i] : y[i];
    store_bits(x, map, place);
  });
}

template <class Class>
TENON_ON_GPU void cast_elements(const MapArguments& map) {
  for_each_chunk_of<Numbers<Class>>(map, [&](const MapPlace& place, const auto& ahead) {
    Class x[map_chunk] = {};
    load_source(x, map, place, ahead);
    const MapOperand& to = map.operands[0];
    with_any_storage(to.dtype, [&](auto storage) {
      store_chunk_as<map_chunk, decltype(storage)>(x, to.address, place.offsets[0], to.strides[map.rank - 1],
                                                   to.vector != 0, place.count);
    });
  });
}

template <int32_t op, class Class>
TENON_ON_GPU void ternary_row(const MapArguments& map) {
  for_each_chunk<4, 1>(map, [&](const MapPlace& place) {
    Class x[1] = {};
    Class y[1] = {};
    Class z[1] = {};
    load_operand<Class, 1>(x, map, 1, place);
    load_operand<Class, 1>(y, map, 2, place);
    load_operand<Class, 1>(z, map, 3, place);
    const Class value[1] = {scalar::ternary_row(scalar::Op<op>(), x[0], y[0], z[0])};
    store_result<Class, 1>(value, map, place);
  });
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using tenon::provider::cuda::MapArguments;

TENON_KERNEL bits_1(TENON_ARGUMENT(MapArguments) map) { kernels::move_bits<uint8_t>(map); }
TENON_KERNEL bits_2(TENON_ARGUMENT(MapArguments) map) { kernels::move_bits<uint16_t>(map); }
TENON_KERNEL bits_4(TENON_ARGUMENT(MapArguments) map) { kernels::move_bits<uint32_t>(map); }
TENON_KERNEL bits_8(TENON_ARGUMENT(MapArguments) map) { kernels::move_bits<uint64_t>(map); }

TENON_KERNEL where_1(TENON_ARGUMENT(MapArguments) map) { kernels::where_bits<uint8_t>(map); }
TENON_KERNEL where_2(TENON_ARGUMENT(MapArguments) map) { kernels::where_bits<uint16_t>(map); }
TENON_KERNEL where_4(TENON_ARGUMENT(MapArguments) map) { kernels::where_bits<uint32_t>(map); }
TENON_KERNEL where_8(TENON_ARGUMENT(MapArguments) map) { kernels::where_bits<uint64_t>(map); }

TENON_KERNEL cast_f32(TENON_ARGUMENT(MapArguments) map) { kernels::cast_elements<float>(map); }
TENON_KERNEL cast_f64(TENON_ARGUMENT(MapArguments) map) { kernels::cast_elements<double>(map); }
TENON_KERNEL cast_i64(TENON_ARGUMENT(MapArguments) map) { kernels::cast_elements<int64_t>(map); }
TENON_KERNEL cast_u64(TENON_ARGUMENT(MapArguments) map) { kernels::cast_elements<uint64_t>(map); }
TENON_KERNEL cast_bool(TENON_ARGUMENT(MapArguments) map) { kernels::cast_elements<bool>(map); }

#define TENON_TERNARY(name, type, Class) \
  TENON_KERNEL name##_##type(TENON_ARGUMENT(MapArguments) map) { kernels::ternary_row<EP_TERNARY_##name, Class>(map); }
#define TENON_ROW_FLOAT(name) TENON_TERNARY(name, f32, float) TENON_TERNARY(name, f64, double)
#define TENON_ROW_NUMERIC(name) \
  TENON_ROW_FLOAT(name) TENON_TERNARY(name, i64, int64_t) TENON_TERNARY(name, u64, uint64_t)
#define TENON_ROW_COND(name)
#define EP_TERNARY(name, id, domain, result, expression) TENON_ROW_##domain(name)
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
