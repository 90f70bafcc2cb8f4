// pooling_<what>_<class>: one thread per element of the result.
#include "providers/cuda/kernels/team.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cuda {

// The taps [begin, end) of a window along one axis that lie inside the source, where tap 0 is at `first`.
struct Taps {
  int64_t first;
  int64_t begin;
  int64_t end;

  TENON_ON_GPU Taps(const PoolingArguments& pool, int axis, int64_t output) {
    const int64_t dilation = pool.dilation[axis];
    first = output * pool.stride[axis] - pool.pad_low[axis];
    begin = first >= 0 ? 0 : quotient(-first + dilation - 1, dilation);
    const int64_t room = pool.src_dims[2 + axis] - first;
    const int64_t inside = room <= 0 ? 0 : quotient(room + dilation - 1, dilation);
    end = inside < pool.kernel[axis] ? inside : pool.kernel[axis];
  }
  TENON_ON_GPU int64_t count() const { return end > begin ? end - begin : 0; }
};

// The number of taps of a window inside the source or its padding.
TENON_ON_GPU int64_t padded_taps(const PoolingArguments& pool, int axis, int64_t first) {
  const int64_t room = pool.src_dims[2 + axis] + pool.pad_high[axis] - first;
  const int64_t taps = room <= 0 ? 0 : quotient(room + pool.dilation[axis] - 1, pool.dilation[axis]);
  return taps < pool.kernel[axis] ? taps : pool.kernel[axis];
}

// What a window gives: the maximum and its position, row-major in the plane.
template <class Class>
struct Maximum {
  Class value =
      std::is_floating_point_v<Class> ? -std::numeric_limits<Class>::infinity() : std::numeric_limits<Class>::lowest();
  int64_t at = -1;

  TENON_ON_GPU void see(const PoolingArguments&, Class x, int64_t place) {
    bool wins = at < 0 || x > value;
    if constexpr (std::is_floating_point_v<Class>) wins = at < 0 || (value == value && !(x <= value));
    value = wins ? x : value;
    at = wins ? place : at;
  }
  TENON_ON_GPU Class finish(const PoolingArguments&, int64_t) const { return value; }
  TENON_ON_GPU int64_t position() const { return at < 0 ? 0 : at; }
};

template <class Class>
struct Average {
  Class total = 0;

  TENON_ON_GPU void see(const PoolingArguments&, Class x, int64_t) { total += x; }
  TENON_ON_GPU Class finish(const PoolingArguments&, int64_t taps) const { return total / static_cast<Class>(taps); }
  TENON_ON_GPU int64_t position() const { return 0; }
};

template <class Class>
struct Powers {
  Class total = 0;

  TENON_ON_GPU void see(const PoolingArguments& pool, Class x, int64_t) {
    total += std::pow(std::fabs(x), static_cast<Class>(pool.p));
  }
  TENON_ON_GPU Class finish(const PoolingArguments& pool, int64_t) const {
    return std::pow(total, static_cast<Class>(1 / pool.p));
  }
  TENON_ON_GPU int64_t position() const { return 0; }
};

template <class Class, class Window, class Storage>
TENON_ON_GPU void pool_one(const PoolingArguments& pool, const int64_t* out) {
  const Taps z(pool, 0, out[2]);
  const Taps y(pool, 1, out[3]);
  const Taps x(pool, 2, out[4]);
  const int64_t* strides = pool.src_strides;
  const auto* src = reinterpret_cast<const Storage*>(pool.src) + out[0] * strides[0] + out[1] * strides[1];
  Window window;
  TENON_ROLLED
  for (int64_t tz = z.begin; tz < z.end; ++tz) {
    const int64_t sz = z.first + tz * pool.dilation[0];
    TENON_ROLLED
    for (int64_t ty = y.begin; ty < y.end; ++ty) {
      const int64_t sy = y.first + ty * pool.dilation[1];
      const int64_t first = x.first + x.begin * pool.dilation[2];
      const Storage* from = src + sz * strides[2] + sy * strides[3] + first * strides[4];
      int64_t place = (sz * pool.src_dims[3] + sy) * pool.src_dims[4] + first;
      TENON_UNROLL_4
      for (int64_t tx = x.begin; tx < x.end; ++tx) {
        window.see(pool, widen<Class>(*from), place);
        from += pool.dilation[2] * strides[4];
        place += pool.dilation[2];
      }
    }
  }
  const int64_t taps =
      pool.op == EP_POOLING_AVERAGE_INCLUDE_PAD
          ? padded_taps(pool, 0, z.first) * padded_taps(pool, 1, y.first) * padded_taps(pool, 2, x.first)
          : z.count() * y.count() * x.count();
  int64_t to = 0;
  int64_t index = 0;
  TENON_UNROLL
  for (int axis = 0; axis < 5; ++axis) {
    to += out[axis] * pool.dst_strides[axis];
    index += out[axis] * pool.index_strides[axis];
  }
  reinterpret_cast<Storage*>(pool.dst)[to] = cast<Storage>(window.finish(pool, taps));
  if (pool.indices != 0) reinterpret_cast<int64_t*>(pool.indices)[index] = window.position();
}

template <class Class, class Window>
TENON_ON_GPU void pooling(const PoolingArguments& pool) {
  for (int64_t i = thread_in_grid(); i < pool.count; i += threads_in_grid()) {
    int64_t out[5];
    int64_t rest = i;
    const auto take = [&](int axis) {
      const int64_t next = quotient(rest, pool.dst_dims[axis]);
      out[axis] = rest - next * pool.dst_dims[axis];
      rest = next;
    };
    if (pool.channels_first == 0) take(1);
    take(4);
    take(3);
    take(2);
    if (pool.channels_first != 0) take(1);
    out[0] = rest;
    with_storage<Class>(pool.dtype, [&](auto storage) { pool_one<Class, Window, decltype(storage)>(pool, out); });
  }
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::PoolingArguments;

#define TENON_POOLING(name, type, Class, Window)                                        \
  TENON_TEAM_KERNEL(3) pooling_##name##_##type(TENON_ARGUMENT(PoolingArguments) pool) { \
    kernels::pooling<Class, kernels::Window<Class>>(pool);                              \
  }
TENON_POOLING(max, f32, float, Maximum)
TENON_POOLING(max, f64, double, Maximum)
TENON_POOLING(max, i64, int64_t, Maximum)
TENON_POOLING(max, u64, uint64_t, Maximum)
TENON_POOLING(average, f32, float, Average)
TENON_POOLING(average, f64, double, Average)
TENON_POOLING(lp, f32, float, Powers)
TENON_POOLING(lp, f64, double, Powers)
