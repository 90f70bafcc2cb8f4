// Host loops of products: outer products and cross products.
#include <cmath>

#include "core/interpreter/host_loops/parts.h"
#include "core/ops/attributes.h"
#include "core/ops/floating_point.h"

namespace tenon::host_loops {
namespace {

// Cross product of vectors whose three numbers are `step` apart.
template <class T>
void cross_of(T* to, const T* a, const T* b, int64_t outer, int64_t step) {
  for (int64_t o = 0; o < outer; ++o, a += 3 * step, b += 3 * step, to += 3 * step) {
    for (int64_t i = 0; i < step; ++i) {
      const T a0 = a[i], a1 = a[i + step], a2 = a[i + 2 * step];
      const T b0 = b[i], b1 = b[i + step], b2 = b[i + 2 * step];
      to[i] = a1 * b2 - a2 * b1;
      to[i + step] = a2 * b0 - a0 * b2;
      to[i + 2 * step] = a0 * b1 - a1 * b0;
    }
  }
}

template <class T>
void kron_of(T* to, const T* a, const T* b, const Dims& of_a, const Dims& of_b) {
  for (int64_t i = 0; i < of_a[0]; ++i) {
    for (int64_t k = 0; k < of_b[0]; ++k) {
      for (int64_t j = 0; j < of_a[1]; ++j, to += of_b[1]) {
        const T x = a[i * of_a[1] + j];
        const T* from = b + k * of_b[1];
        for (int64_t l = 0; l < of_b[1]; ++l) to[l] = x * from[l];
      }
    }
  }
}

// to[i][j] = x[i] * y[j]
template <class T>
[[gnu::always_inline]] inline void rows_of_products(T* to, const T* x, const T* y, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i, to += columns) {
    const T factor = x[i];
    in_blocks(
        columns, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
          for (int32_t k = 0; k < n; ++k) to[first + k] = factor * y[first + k];
        });
  }
}

#if defined(__x86_64__)
// All rows in one call: with a call per row, the calls took a third of the time for 256 rows of 256.
template <class T>
[[gnu::target("avx2")]] void products_by_avx2(T* to, const T* x, const T* y, int64_t rows, int64_t columns) {
  rows_of_products(to, x, y, rows, columns);
}
#endif

template <class T>
void products_of(T* to, const T* x, const T* y, int64_t rows, int64_t columns) {
#if defined(__x86_64__)
  if (columns > 16 && __builtin_cpu_supports("avx2") != 0) return products_by_avx2(to, x, y, rows, columns);
#endif
  rows_of_products(to, x, y, rows, columns);
}

#if defined(__x86_64__)
bool rounds_once() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }
#define TENON_FUSED [[gnu::target("avx2,fma")]]
#else
bool rounds_once() { return true; }
#define TENON_FUSED
#endif

// to[i][j] = x[i] * y[j] + added[i][j], rounded once, like the device does.
template <class T>
TENON_FUSED void sums_of(T* to, const T* x, const T* y, const T* added, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i, to += columns, added += columns) {
    const T factor = x[i];
    in_blocks(
        columns, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
          for (int32_t k = 0; k < n; ++k) to[first + k] = std::fma(factor, y[first + k], added[first + k]);
        });
  }
}
#undef TENON_FUSED

// True if inputs `first` and `first` + 1 are lists with few products; for more, the device's wide vectors are faster.
bool two_lists(const OpCall& call, size_t first) {
  constexpr int64_t most = int64_t{64} << 10;  // bytes
  if (!alike(call, first) || !alike(call, first + 1)) return false;
  const TensorImpl &x = *call.inputs[first]->impl(), &y = *call.inputs[first + 1]->impl();
  return real(x.dtype) && x.dims.rank() == 1 && y.dims.rank() == 1 && x.elements <= most && y.elements <= most &&
         x.elements * y.elements * dtype_size(x.dtype) <= most;
}

}  // namespace

bool run_cross(const OpCall& call) {
  if (!same_shape(call, 0) || !same_shape(call, 1)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (!real(input.dtype)) return false;
  const auto& a = call.attributes_as<CrossAttributes>();
  const int32_t rank = input.dims.rank();
  int64_t axis = 0;
  if (a.dim_given != 0) {
    axis = a.dim < 0 ? a.dim + rank : a.dim;
  } else {
    while (axis < rank && input.dims[static_cast<int32_t>(axis)] != 3) ++axis;
  }
  if (axis < 0 || axis >= rank || input.dims[static_cast<int32_t>(axis)] != 3) return false;
  int64_t step = 1;
  for (int32_t k = static_cast<int32_t>(axis) + 1; k < rank; ++k) step *= input.dims[k];
  const int64_t outer = input.elements / (3 * step);
  Tensor result = made(input.dims, input.dtype, input.device);
  const DefaultFloatingPoint floating_point;
  if (input.dtype == DType::f32) {
    cross_of(static_cast<float*>(result.data()), elements_of<float>(*call.inputs[0]),
             elements_of<float>(*call.inputs[1]), outer, step);
  } else {
    cross_of(static_cast<double*>(result.data()), elements_of<double>(*call.inputs[0]),
             elements_of<double>(*call.inputs[1]), outer, step);
  }
  call.outputs[0] = std::move(result);
  return true;
}

// Only for two matrices.
bool run_kron(const OpCall& call) {
  constexpr int64_t most = int64_t{512} << 10;  // bytes; for longer ones several threads are faster
  if (!alike(call, 0) || !alike(call, 1)) return false;
  const TensorImpl &a = *call.inputs[0]->impl(), &b = *call.inputs[1]->impl();
  if (!real(a.dtype) || a.dims.rank() != 2 || b.dims.rank() != 2) return false;
  if (a.elements > most || b.elements > most || a.elements * b.elements * dtype_size(a.dtype) > most) return false;
  Tensor result = made(Dims{a.dims[0] * b.dims[0], a.dims[1] * b.dims[1]}, a.dtype, a.device);
  const DefaultFloatingPoint floating_point;
  if (a.dtype == DType::f32) {
    kron_of(static_cast<float*>(result.data()), elements_of<float>(*call.inputs[0]),
            elements_of<float>(*call.inputs[1]), a.dims, b.dims);
  } else {
    kron_of(static_cast<double*>(result.data()), elements_of<double>(*call.inputs[0]),
            elements_of<double>(*call.inputs[1]), a.dims, b.dims);
  }
  call.outputs[0] = std::move(result);
  return true;
}

bool run_outer(const OpCall& call) {
  if (!two_lists(call, 0)) return false;
  const TensorImpl &x = *call.inputs[0]->impl(), &y = *call.inputs[1]->impl();
  Tensor result = made(Dims{x.elements, y.elements}, x.dtype, x.device);
  const DefaultFloatingPoint floating_point;
  if (x.dtype == DType::f32) {
    products_of(static_cast<float*>(result.data()), elements_of<float>(*call.inputs[0]),
                elements_of<float>(*call.inputs[1]), x.elements, y.elements);
  } else {
    products_of(static_cast<double*>(result.data()), elements_of<double>(*call.inputs[0]),
                elements_of<double>(*call.inputs[1]), x.elements, y.elements);
  }
  call.outputs[0] = std::move(result);
  return true;
}

// Only without factors.
bool run_addr(const OpCall& call) {
  if (call.scalars[0].to_double() != 1 || call.scalars[1].to_double() != 1 || !rounds_once()) return false;
  if (!at_hand(call, 0) || !two_lists(call, 1)) return false;
  const TensorImpl &input = *call.inputs[0]->impl(), &x = *call.inputs[1]->impl(), &y = *call.inputs[2]->impl();
  const Dims dims{x.elements, y.elements};
  if (!(input.dims == dims)) return false;
  Tensor result = made(dims, x.dtype, x.device);
  const DefaultFloatingPoint floating_point;
  if (x.dtype == DType::f32) {
    sums_of(static_cast<float*>(result.data()), elements_of<float>(*call.inputs[1]),
            elements_of<float>(*call.inputs[2]), elements_of<float>(*call.inputs[0]), x.elements, y.elements);
  } else {
    sums_of(static_cast<double*>(result.data()), elements_of<double>(*call.inputs[1]),
            elements_of<double>(*call.inputs[2]), elements_of<double>(*call.inputs[0]), x.elements, y.elements);
  }
  call.outputs[0] = std::move(result);
  return true;
}

}  // namespace tenon::host_loops
