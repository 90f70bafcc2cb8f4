// scan_<class>_<team> combines the elements of each row in order; scan_sum_f32_<team> adds in double, so that rounding
// errors do not accumulate. A team scans a row in tiles of one chunk per thread, and carries the total of each tile
// into the next.
#include "providers/cuda/kernels/team.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cuda {

// A combination chosen at run time.
template <class Class>
TENON_ON_GPU_CALL Class combined_by(int32_t op, Class x, Class y) {
  if constexpr (std::is_same_v<Class, bool>) {
    return op == EP_SCAN_MAX ? x || y : x && y;
  } else {
    if constexpr (std::is_floating_point_v<Class>) {
      if (op == EP_SCAN_LOG_SUM_EXP) return scalar::binary_row(scalar::Op<EP_BINARY_logaddexp>(), x, y);
    }
    if (op == EP_SCAN_SUM) return scalar::ep_add(x, y);
    if (op == EP_SCAN_PROD) return scalar::ep_mul(x, y);
    return op == EP_SCAN_MAX ? scalar::ep_max(x, y) : scalar::ep_min(x, y);
  }
}
template <class Class>
struct AnyCombination {
  int32_t op;
  TENON_ON_GPU explicit AnyCombination(int32_t which) : op(which) {}
  TENON_ON_GPU Class operator()(Class x, Class y) const { return combined_by(op, x, y); }
};
struct Addition {
  TENON_ON_GPU explicit Addition(int32_t) {}
  TENON_ON_GPU double operator()(double x, double y) const { return x + y; }
};

// The neutral element, in the stored type, since the least i8 is not the least value of its class.
template <class Class, class Storage>
TENON_ON_GPU Class neutral_of(int32_t op) {
  if (op == EP_SCAN_SUM) return static_cast<Class>(0);
  if (op == EP_SCAN_PROD) return static_cast<Class>(1);
  if constexpr (std::is_floating_point_v<Class>) {
    const Class infinity = std::numeric_limits<Class>::infinity();
    return op == EP_SCAN_MIN ? infinity : -infinity;
  } else if constexpr (std::is_same_v<Class, bool>) {
    return op == EP_SCAN_MIN;
  } else {
    return op == EP_SCAN_MIN ? static_cast<Class>(std::numeric_limits<Storage>::max())
                             : static_cast<Class>(std::numeric_limits<Storage>::lowest());
  }
}

template <class Class, class Storage, class Team, class Combination>
TENON_ON_GPU void scan_row(const ScanArguments& scan, Team& team, int64_t row) {
  const Combination combine(scan.op);
  const auto neutral = neutral_of<Class, Storage>(scan.op);
  const uint64_t src = scan.src + static_cast<uint64_t>(offset_in(scan.rows, scan.rows.src, row)) * sizeof(Storage);
  const uint64_t dst = scan.dst + static_cast<uint64_t>(offset_in(scan.rows, scan.rows.dst, row)) * sizeof(Storage);
  const bool reverse = scan.reverse != 0;
  const int64_t src_step = reverse ? -scan.src_stride : scan.src_stride;
  const int64_t dst_step = reverse ? -scan.dst_stride : scan.dst_stride;
  Class carry = neutral;
  TENON_ROLLED
  for (int64_t tile = 0; tile < scan.length; tile += Team::size * map_chunk) {
    const int64_t start = tile + team.rank() * map_chunk;
    const int64_t left = scan.length - start;
    const int64_t count = left < 0 ? 0 : left < map_chunk ? left : map_chunk;
    const int64_t first = reverse ? scan.length - 1 - start : start;
    Class x[map_chunk] = {neutral, neutral, neutral, neutral};
    if (count > 0)
      load_chunk_as<map_chunk, Storage>(x, src, first * scan.src_stride, src_step, scan.vector != 0, count);
    Class sum = x[0];
    TENON_UNROLL
    for (int i = 1; i < map_chunk; ++i) sum = combine(sum, x[i]);
    Class total;
    Class value = combine(carry, team.before(sum, neutral, combine, &total));
    carry = combine(carry, total);
    TENON_UNROLL
    for (int i = 0; i < map_chunk; ++i) {
      const Class with = combine(value, x[i]);
      x[i] = scan.exclusive != 0 ? value : with;
      value = with;
    }
    if (count > 0)
      store_chunk_as<map_chunk, Storage>(x, dst, first * scan.dst_stride, dst_step, scan.vector != 0, count);
  }
}

// Class is the compute class, Stored the class of the dtype.
template <class Class, class Stored, class Team, class Combination>
TENON_ON_GPU void scan_rows(const ScanArguments& scan) {
  Team team;
  for (int64_t row = team.number(); row < scan.rows.count; row += team.count()) {
    with_storage<Stored>(scan.dtype,
                         [&](auto storage) { scan_row<Class, decltype(storage), Team, Combination>(scan, team, row); });
  }
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::ScanArguments;

#define TENON_SCAN(name, Class, Stored, Combination)                                 \
  TENON_TEAM_KERNEL(3) scan_##name##_solo(TENON_ARGUMENT(ScanArguments) scan) {      \
    kernels::scan_rows<Class, Stored, kernels::SoloTeam<Class>, Combination>(scan);  \
  }                                                                                  \
  TENON_TEAM_KERNEL(3) scan_##name##_warp(TENON_ARGUMENT(ScanArguments) scan) {      \
    kernels::scan_rows<Class, Stored, kernels::WarpTeam<Class>, Combination>(scan);  \
  }                                                                                  \
  TENON_TEAM_KERNEL(3) scan_##name##_block(TENON_ARGUMENT(ScanArguments) scan) {     \
    kernels::scan_rows<Class, Stored, kernels::BlockTeam<Class>, Combination>(scan); \
  }
TENON_SCAN(sum_f32, double, float, kernels::Addition)
TENON_SCAN(f32, float, float, kernels::AnyCombination<float>)
TENON_SCAN(f64, double, double, kernels::AnyCombination<double>)
TENON_SCAN(i64, int64_t, int64_t, kernels::AnyCombination<int64_t>)
TENON_SCAN(u64, uint64_t, uint64_t, kernels::AnyCombination<uint64_t>)
TENON_SCAN(bool, bool, bool, kernels::AnyCombination<bool>)
