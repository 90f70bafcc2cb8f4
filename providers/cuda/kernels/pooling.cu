// pooling_<what>_<class>: one thread per element of the result. pooling_backward_<what>_<class>: one thread per element
// of the source, which sums over the windows that contain it; so the order of additions is fixed. ..._f32_small counts
// in 32 bits, which leaves registers for more threads.
#include "providers/cuda/kernels/fault.h"
#include "providers/cuda/kernels/team.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cuda {

// The taps [begin, end) of a window that lie inside the source along one axis; tap 0 is at `first`.
template <class Index>
struct Taps {
  Index first;
  Index begin;
  Index end;

  TENON_ON_GPU Taps(const PoolingArguments& pool, int axis, Index output) {
    const auto dilation = static_cast<Index>(pool.dilation[axis]);
    first = output * static_cast<Index>(pool.stride[axis]) - static_cast<Index>(pool.pad_low[axis]);
    begin = first >= 0 ? 0 : quotient(-first + dilation - 1, dilation);
    end = taps_in(pool, axis, static_cast<Index>(pool.src_dims[2 + axis]) - first);
  }
  TENON_ON_GPU Index count() const { return end > begin ? end - begin : 0; }
  // The number of taps of a window inside the source or its padding.
  TENON_ON_GPU Index padded(const PoolingArguments& pool, int axis) const {
    return taps_in(pool, axis, static_cast<Index>(pool.src_dims[2 + axis] + pool.pad_high[axis]) - first);
  }

 private:
  // The number of taps within `room` elements from tap 0 on.
  TENON_ON_GPU static Index taps_in(const PoolingArguments& pool, int axis, Index room) {
    const auto dilation = static_cast<Index>(pool.dilation[axis]);
    const auto taps = static_cast<Index>(pool.kernel[axis]);
    const Index inside = room <= 0 ? 0 : quotient(room + dilation - 1, dilation);
    return inside < taps ? inside : taps;
  }
};

// The result of a window: the maximum and its position, row-major in the plane.
template <class Class>
struct Maximum {
  Class value =
      std::is_floating_point_v<Class> ? -std::numeric_limits<Class>::infinity() : std::numeric_limits<Class>::lowest();
  int64_t at = -1;

  template <class Index>
  TENON_ON_GPU void see(const PoolingArguments&, Class x, Index place) {
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

constexpr int taps_ahead = 4;

template <class Class, class Window, class Storage, class Index>
TENON_ON_GPU void pool_one(const PoolingArguments& pool, const Index* out) {
  const Taps<Index> z(pool, 0, out[2]);
  const Taps<Index> y(pool, 1, out[3]);
  const Taps<Index> x(pool, 2, out[4]);
  const auto stride = [&](int axis) { return static_cast<Index>(pool.src_strides[axis]); };
  const auto dilation = [&](int axis) { return static_cast<Index>(pool.dilation[axis]); };
  const auto* src = reinterpret_cast<const Storage*>(pool.src);
  const Index image = out[0] * stride(0) + out[1] * stride(1);
  const Index step = dilation(2) * stride(4);
  Window window;
  TENON_ROLLED
  for (Index tz = z.begin; tz < z.end; ++tz) {
    const Index sz = z.first + tz * dilation(0);
    TENON_ROLLED
    for (Index ty = y.begin; ty < y.end; ++ty) {
      const Index sy = y.first + ty * dilation(1);
      const Index first = x.first + x.begin * dilation(2);
      Index from = image + sz * stride(2) + sy * stride(3) + first * stride(4);
      Index place = (sz * static_cast<Index>(pool.src_dims[3]) + sy) * static_cast<Index>(pool.src_dims[4]) + first;
      // Several loads are issued before the first is used.
      TENON_ROLLED
      for (Index tx = x.begin; tx < x.end; tx += taps_ahead) {
        Storage values[taps_ahead];
        TENON_UNROLL
        for (int j = 0; j < taps_ahead; ++j) {
          if (tx + j < x.end) values[j] = src[from + j * step];
        }
        TENON_UNROLL
        for (int j = 0; j < taps_ahead; ++j) {
          if (tx + j < x.end) window.see(pool, widen<Class>(values[j]), place + j * dilation(2));
        }
        from += taps_ahead * step;
        place += taps_ahead * dilation(2);
      }
    }
  }
  const Index taps = pool.op == EP_POOLING_AVERAGE_INCLUDE_PAD
                         ? z.padded(pool, 0) * y.padded(pool, 1) * x.padded(pool, 2)
                         : z.count() * y.count() * x.count();
  Index to = 0;
  Index index = 0;
  TENON_UNROLL
  for (int axis = 0; axis < 5; ++axis) {
    to += out[axis] * static_cast<Index>(pool.dst_strides[axis]);
    index += out[axis] * static_cast<Index>(pool.index_strides[axis]);
  }
  reinterpret_cast<Storage*>(pool.dst)[to] = cast<Storage>(window.finish(pool, taps));
  if (pool.indices != 0) reinterpret_cast<int64_t*>(pool.indices)[index] = window.position();
}

// The index of element `rest`, in the order in which elements are numbered.
template <class Index>
TENON_ON_GPU void find_index(const PoolingArguments& pool, const int64_t* dims, Index rest, Index* out) {
  const auto take = [&](int axis) {
    const auto dim = static_cast<Index>(dims[axis]);
    const Index next = quotient(rest, dim);
    out[axis] = rest - next * dim;
    rest = next;
  };
  if (pool.channels_first == 0) take(1);
  take(4);
  take(3);
  take(2);
  if (pool.channels_first != 0) take(1);
  out[0] = rest;
}

template <class Class, class Window, class Index>
TENON_ON_GPU void pooling(const PoolingArguments& pool) {
  for (int64_t i = thread_in_grid(); i < pool.count; i += threads_in_grid()) {
    Index out[5];
    find_index(pool, pool.dst_dims, static_cast<Index>(i), out);
    with_storage<Class>(pool.dtype,
                        [&](auto storage) { pool_one<Class, Window, decltype(storage), Index>(pool, out); });
  }
}

// --- the gradient ---

// Calls visit(output) for each window along `axis` that has a tap at `position`.
template <class Index, class Visit>
TENON_ON_GPU void for_each_window(const PoolingArguments& pool, int axis, Index position, const Visit& visit) {
  const auto stride = static_cast<Index>(pool.stride[axis]);
  TENON_ROLLED
  for (Index tap = 0; tap < static_cast<Index>(pool.kernel[axis]); ++tap) {
    const Index first =
        position + static_cast<Index>(pool.pad_low[axis]) - tap * static_cast<Index>(pool.dilation[axis]);
    if (first < 0) return;
    const Index output = quotient(first, stride);
    if (output * stride == first && output < static_cast<Index>(pool.dst_dims[2 + axis])) visit(output);
  }
}

// The number of taps that an average divides by, along one axis.
template <class Index>
TENON_ON_GPU Index divisor_along(const PoolingArguments& pool, int axis, Index output) {
  const Taps<Index> taps(pool, axis, output);
  return pool.op == EP_POOLING_AVERAGE_INCLUDE_PAD ? taps.padded(pool, axis) : taps.count();
}

template <class Class, bool is_max, class Storage, class Index>
TENON_ON_GPU Class gradient_of(const PoolingArguments& pool, const Index* at) {
  const auto along = [](const int64_t* strides, int axis) { return static_cast<Index>(strides[axis]); };
  const auto* gradient = reinterpret_cast<const Storage*>(pool.dst);
  const auto* indices = reinterpret_cast<const int64_t*>(pool.indices);
  const int64_t place = (at[2] * pool.src_dims[3] + at[3]) * pool.src_dims[4] + at[4];
  const Index image = at[0] * along(pool.dst_strides, 0) + at[1] * along(pool.dst_strides, 1);
  const Index index_image = at[0] * along(pool.index_strides, 0) + at[1] * along(pool.index_strides, 1);
  Class total = 0;
  for_each_window(pool, 0, at[2], [&](Index z) {
    const Index of_z = is_max ? 1 : divisor_along(pool, 0, z);
    for_each_window(pool, 1, at[3], [&](Index y) {
      const Index of_y = is_max ? 1 : of_z * divisor_along(pool, 1, y);
      for_each_window(pool, 2, at[4], [&](Index x) {
        const Index from =
            image + z * along(pool.dst_strides, 2) + y * along(pool.dst_strides, 3) + x * along(pool.dst_strides, 4);
        if constexpr (is_max) {
          const Index index = index_image + z * along(pool.index_strides, 2) + y * along(pool.index_strides, 3) +
                              x * along(pool.index_strides, 4);
          if (indices[index] == place) total += widen<Class>(gradient[from]);
        } else {
          total += widen<Class>(gradient[from]) / static_cast<Class>(of_y * divisor_along(pool, 2, x));
        }
      });
    });
  });
  return total;
}

// Reports an index outside its plane.
template <class Index>
TENON_ON_GPU void check_indices(const PoolingBackwardArguments& back) {
  const PoolingArguments& pool = back.pool;
  const int64_t plane = pool.src_dims[2] * pool.src_dims[3] * pool.src_dims[4];
  for (int64_t i = thread_in_grid(); i < back.windows; i += threads_in_grid()) {
    Index out[5];
    find_index(pool, pool.dst_dims, static_cast<Index>(i), out);
    Index at = 0;
    TENON_UNROLL
    for (int axis = 0; axis < 5; ++axis) at += out[axis] * static_cast<Index>(pool.index_strides[axis]);
    const int64_t given = reinterpret_cast<const int64_t*>(pool.indices)[at];
    if (given < 0 || given >= plane) report_fault(back.fault, EP_FAULT_INDEX_OUT_OF_RANGE, given, plane);
  }
}

template <class Class, bool is_max, class Index>
TENON_ON_GPU void pooling_backward(const PoolingBackwardArguments& back) {
  const PoolingArguments& pool = back.pool;
  if constexpr (is_max) check_indices<Index>(back);
  for (int64_t i = thread_in_grid(); i < pool.count; i += threads_in_grid()) {
    Index at[5];
    find_index(pool, pool.src_dims, static_cast<Index>(i), at);
    Index to = 0;
    TENON_UNROLL
    for (int axis = 0; axis < 5; ++axis) to += at[axis] * static_cast<Index>(pool.src_strides[axis]);
    with_storage<Class>(pool.dtype, [&](auto storage) {
      using Storage = decltype(storage);
      const Class sum = gradient_of<Class, is_max, Storage, Index>(pool, at);
      reinterpret_cast<Storage*>(pool.src)[to] = cast<Storage>(sum);
    });
  }
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::PoolingArguments;
using kernels::PoolingBackwardArguments;

#define TENON_POOLING(blocks, name, type, Class, Window, Index)                              \
  TENON_TEAM_KERNEL(blocks) pooling_##name##_##type(TENON_ARGUMENT(PoolingArguments) pool) { \
    kernels::pooling<Class, kernels::Window<Class>, Index>(pool);                            \
  }
TENON_POOLING(5, max, f32_small, float, Maximum, int32_t)
TENON_POOLING(5, average, f32_small, float, Average, int32_t)
TENON_POOLING(5, lp, f32_small, float, Powers, int32_t)
TENON_POOLING(3, max, f32, float, Maximum, int64_t)
TENON_POOLING(3, max, f64, double, Maximum, int64_t)
TENON_POOLING(3, max, i64, int64_t, Maximum, int64_t)
TENON_POOLING(3, max, u64, uint64_t, Maximum, int64_t)
TENON_POOLING(3, average, f32, float, Average, int64_t)
TENON_POOLING(3, average, f64, double, Average, int64_t)
TENON_POOLING(3, lp, f32, float, Powers, int64_t)
TENON_POOLING(3, lp, f64, double, Powers, int64_t)

#define TENON_POOLING_BACKWARD(blocks, name, type, Class, is_max, Index)                                      \
  TENON_TEAM_KERNEL(blocks) pooling_backward_##name##_##type(TENON_ARGUMENT(PoolingBackwardArguments) back) { \
    kernels::pooling_backward<Class, is_max, Index>(back);                                                    \
  }
TENON_POOLING_BACKWARD(5, max, f32_small, float, true, int32_t)
TENON_POOLING_BACKWARD(5, average, f32_small, float, false, int32_t)
TENON_POOLING_BACKWARD(3, max, f32, float, true, int64_t)
TENON_POOLING_BACKWARD(3, max, f64, double, true, int64_t)
TENON_POOLING_BACKWARD(3, average, f32, float, false, int64_t)
TENON_POOLING_BACKWARD(3, average, f64, double, false, int64_t)
