// The cell functions: how a step turns gate sums into new states, over rows of T.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ep_api/ep_api.h"
#include "providers/cpu/elementwise/kernel.h"

namespace tenon::provider::cpu {

// The number of gates, and the block of a weight's rows that holds gate number `gate` in ONNX's order.
inline int64_t gate_count(int32_t cell) { return cell == EP_CELL_LSTM ? 4 : cell == EP_CELL_GRU ? 3 : 1; }
inline int64_t gate_block(const ep_recurrent_attributes& at, int64_t gate) {
  constexpr int64_t lstm[] = {0, 3, 1, 2};
  constexpr int64_t gru[] = {1, 0, 2};
  if ((at.flags & EP_RECURRENT_FLAG_TORCH) == 0) return gate;
  return at.cell == EP_CELL_LSTM ? lstm[gate] : at.cell == EP_CELL_GRU ? gru[gate] : 0;
}

template <class T>
class CellMath {
 public:
  CellMath(SimdLevel level, const ep_recurrent_attributes& at, int64_t width)
      : at_(at), width_(width), logistic_(kernel(level, EP_UNARY_sigmoid)), tanh_(kernel(level, EP_UNARY_tanh)) {}

  // Each function processes n contiguous elements of the state; all pointers refer to the first of them. `old_h` may be
  // `h`.

  // h = the new state from the gate sums a.
  void simple(T* a, T* h, int64_t n) const {
    limit(a, n);
    if (at_.cell == EP_CELL_TANH) return apply(tanh_, h, a, n);
    for (int64_t j = 0; j < n; ++j) h[j] = a[j] < 0 ? T{0} : a[j];
  }

  // The gates i, o, f and c are `step` apart. `peephole` holds `width` weights each for i, o and f, or is NULL.
  void lstm(T* gates, int64_t step, const T* peephole, T* h, T* c, int64_t n) const {
    T *const i = gates, *const o = gates + step, *const f = gates + 2 * step, *const g = gates + 3 * step;
    if (peephole != nullptr) {
      for (int64_t j = 0; j < n; ++j) i[j] += peephole[j] * c[j];
      for (int64_t j = 0; j < n; ++j) f[j] += peephole[2 * width_ + j] * c[j];
    }
    for (T* gate : {i, f, g}) limit(gate, n);
    apply(logistic_, i, i, n);
    apply(logistic_, f, f, n);
    apply(tanh_, g, g, n);
    if ((at_.flags & EP_RECURRENT_FLAG_COUPLED) != 0) {
      for (int64_t j = 0; j < n; ++j) f[j] = 1 - i[j];
    }
    for (int64_t j = 0; j < n; ++j) c[j] = f[j] * c[j] + i[j] * g[j];
    if (peephole != nullptr) {
      for (int64_t j = 0; j < n; ++j) o[j] += peephole[width_ + j] * c[j];
    }
    limit(o, n);
    apply(logistic_, o, o, n);
    apply(tanh_, g, c, n);
    for (int64_t j = 0; j < n; ++j) h[j] = o[j] * g[j];
  }

  // Replaces the sums of the gates z and r, which are `step` apart, by the gate values.
  void gru_gates(T* gates, int64_t step, int64_t n) const {
    for (T* gate : {gates, gates + step}) {
      limit(gate, n);
      apply(logistic_, gate, gate, n);
    }
  }
  // h = the new state from z, the gate sums b and the old state.
  void gru_state(const T* z, T* b, const T* old_h, T* h, int64_t n) const {
    limit(b, n);
    apply(tanh_, b, b, n);
    for (int64_t j = 0; j < n; ++j) h[j] = (1 - z[j]) * b[j] + z[j] * old_h[j];
  }

 private:
  static MapFunction kernel(SimdLevel level, int32_t op) {
    return unary_kernel(level, op, sizeof(T) == 4 ? EP_DTYPE_f32 : EP_DTYPE_f64).function;
  }
  static void apply(MapFunction function, T* dst, const T* src, int64_t n) {
    MapContext context;
    const void* const from[] = {src};
    function(dst, from, n, context);
  }
  void limit(T* a, int64_t n) const {
    if (!(at_.clip > 0)) return;
    const auto most = static_cast<T>(at_.clip);
    for (int64_t j = 0; j < n; ++j) a[j] = a[j] > most ? most : a[j] < -most ? -most : a[j];
  }

  ep_recurrent_attributes at_;
  int64_t width_;
  MapFunction logistic_;
  MapFunction tanh_;
};

}  // namespace tenon::provider::cpu
