// Products with packed panels, and the functions of the cells, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/recurrent/kernels.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <utility>

#include "ep_api/ep_api.h"
#include "providers/cpu/recurrent/kernel.h"
#include "providers/cpu/simd/prelude-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

template <class T>
using D = hn::ScalableTag<T>;
template <class T>
using V = hn::Vec<D<T>>;

template <class T>
HWY_INLINE int64_t lanes_of() {
  return static_cast<int64_t>(hn::Lanes(D<T>()));
}

// ---- products ----

// The sums of a block are rows x panels x 2 vectors. They fill the registers, 32 on AVX3 and 16 elsewhere. Few rows
// take several panels, since a sum of one product waits for the one before it.
constexpr int kMostRows = HWY_TARGET == HWY_AVX3 ? 14 : 6;
constexpr int kMostPanels = 4;
constexpr int panels_of(int rows) { return rows == 1 ? kMostPanels : rows <= 3 ? 2 : 1; }

template <int kRows, int kPanels, class T>
HWY_INLINE void run_block(const PanelProduct<T>& product, int64_t row, int64_t panel) {
  const D<T> d;
  const int64_t lanes = lanes_of<T>(), columns = 2 * lanes, size = product.depth * columns;
  const T* const weights = product.weights + panel * size;
  T* const dst = product.dst + row * product.dst_row + panel * columns;
  V<T> sum[kRows][2 * kPanels];
  for (int v = 0; v < 2 * kPanels; ++v) {
    const V<T> first = product.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, product.bias + panel * columns + v * lanes);
    for (int r = 0; r < kRows; ++r)
      sum[r][v] = product.adds ? hn::LoadU(d, dst + r * product.dst_row + v * lanes) : first;
  }
  const T* rows[kRows];
  for (int r = 0; r < kRows; ++r) rows[r] = product.rows[row + r];
  for (int64_t p = 0; p < product.depth; ++p) {
    V<T> right[2 * kPanels];
    for (int v = 0; v < 2 * kPanels; ++v) right[v] = hn::LoadU(d, weights + v / 2 * size + p * columns + v % 2 * lanes);
    for (int r = 0; r < kRows; ++r) {
      const V<T> left = hn::Set(d, rows[r][p]);
      for (int v = 0; v < 2 * kPanels; ++v) sum[r][v] = hn::MulAdd(left, right[v], sum[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < 2 * kPanels; ++v) hn::StoreU(sum[r][v], d, dst + r * product.dst_row + v * lanes);
  }
}

template <class T>
using Block = void (*)(const PanelProduct<T>& product, int64_t row, int64_t panel);

template <bool kSingle, class T, int... kRows>
Block<T> block_of(int64_t rows, std::integer_sequence<int, kRows...>) {
  constexpr Block<T> all[] = {run_block < kRows + 1, kSingle ? 1 : panels_of(kRows + 1), T > ...};
  return all[rows - 1];
}

template <class T>
void run_product(const PanelProduct<T>& product) {
  const auto all = std::make_integer_sequence<int, kMostRows>();
  const int64_t blocks = (product.count + kMostRows - 1) / kMostRows;
  const int64_t most = blocks == 0 ? 0 : (product.count + blocks - 1) / blocks;
  const int64_t together = panels_of(static_cast<int>(most));
  int64_t panel = 0;
  const auto run_rows = [&](bool single, int64_t step) {
    for (; panel + step <= product.panels; panel += step) {
      for (int64_t row = 0; row < product.count; row += most) {
        const int64_t rows = std::min(most, product.count - row);
        if (single || panels_of(static_cast<int>(rows)) != step) {
          const Block<T> run = block_of<true, T>(rows, all);
          for (int64_t i = 0; i < step; ++i) run(product, row, panel + i);
        } else {
          block_of<false, T>(rows, all)(product, row, panel);
        }
      }
    }
  };
  run_rows(false, together);
  run_rows(true, 1);
}

// ---- cells ----

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
HWY_INLINE V<double> exp_of(V<double> x) { return ep_exp(x); }
HWY_INLINE V<double> tanh_of(V<double> x) { return ep_tanh(x); }
#else
template <class F>
HWY_INLINE V<double> in_each_lane(V<double> x, F f) {
  const D<double> d;
  HWY_ALIGN double lanes[hn::MaxLanes(D<double>())];
  hn::Store(x, d, lanes);
  for (double& lane : lanes) lane = f(lane);
  return hn::Load(d, lanes);
}
HWY_INLINE V<double> exp_of(V<double> x) {
  return in_each_lane(x, [](double y) { return std::exp(y); });
}
HWY_INLINE V<double> tanh_of(V<double> x) {
  return in_each_lane(x, [](double y) { return std::tanh(y); });
}
#endif
HWY_INLINE V<float> exp_of(V<float> x) { return ep_exp(x); }
HWY_INLINE V<float> tanh_of(V<float> x) { return ep_tanh(x); }

template <class T>
HWY_INLINE V<T> logistic(V<T> x) {
  const V<T> one = hn::Set(D<T>(), T{1});
  return hn::Div(one, hn::Add(one, exp_of(hn::Neg(x))));
}

// NaN stays NaN.
template <class T>
HWY_INLINE V<T> limited(const CellRule<T>& rule, V<T> x) {
  if (!rule.clips) return x;
  const D<T> d;
  const V<T> most = hn::Set(d, rule.most), least = hn::Neg(most);
  x = hn::IfThenElse(hn::Gt(x, most), most, x);
  return hn::IfThenElse(hn::Lt(x, least), least, x);
}

// Whole vectors of a row, or its last n numbers.
template <class T>
struct Whole {
  static V<T> load(const T* from) { return hn::LoadU(D<T>(), from); }
  static void store(V<T> x, T* to) { hn::StoreU(x, D<T>(), to); }
};
template <class T>
struct Rest {
  int64_t n;
  V<T> load(const T* from) const {
    HWY_ALIGN T lanes[hn::MaxLanes(D<T>())] = {};
    std::copy_n(from, n, lanes);
    return hn::Load(D<T>(), lanes);
  }
  void store(V<T> x, T* to) const {
    HWY_ALIGN T lanes[hn::MaxLanes(D<T>())];
    hn::Store(x, D<T>(), lanes);
    std::copy_n(lanes, n, to);
  }
};

// Calls body(access, j) for each vector of the row, which begins at element j.
template <class T, class Body>
HWY_INLINE void for_vectors(int64_t n, const Body& body) {
  const int64_t lanes = lanes_of<T>();
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) body(Whole<T>{}, j);
  if (j < n) body(Rest<T>{n - j}, j);
}

template <class T>
void lstm(const CellRule<T>& rule, const CellStep<T>& step) {
  for_vectors<T>(step.n, [&](auto access, int64_t j) HWY_ATTR {
    const auto sum = [&](int64_t gate) HWY_ATTR { return access.load(step.gates + gate * step.gate_step + j); };
    const auto peep = [&](V<T> x, int64_t gate, V<T> c) HWY_ATTR {
      if (step.peephole == nullptr) return x;
      return hn::MulAdd(access.load(step.peephole + gate * step.peephole_step + j), c, x);
    };
    const V<T> old = access.load(step.c + j);
    const V<T> i = logistic<T>(limited<T>(rule, peep(sum(0), 0, old)));
    const V<T> f =
        rule.coupled ? hn::Sub(hn::Set(D<T>(), T{1}), i) : logistic<T>(limited<T>(rule, peep(sum(2), 2, old)));
    const V<T> c = hn::MulAdd(f, old, hn::Mul(i, tanh_of(limited<T>(rule, sum(3)))));
    const V<T> o = logistic<T>(limited<T>(rule, peep(sum(1), 1, c)));
    access.store(c, step.c + j);
    access.store(hn::Mul(o, tanh_of(c)), step.h + j);
  });
}

template <class T>
void gru(const CellRule<T>& rule, const CellStep<T>& step) {
  for_vectors<T>(step.n, [&](auto access, int64_t j) HWY_ATTR {
    const V<T> z = logistic<T>(limited<T>(rule, access.load(step.gates + j)));
    V<T> sum = access.load(step.gates + 2 * step.gate_step + j);
    if (step.state_sums != nullptr) {
      const V<T> r = logistic<T>(limited<T>(rule, access.load(step.gates + step.gate_step + j)));
      sum = hn::MulAdd(r, access.load(step.state_sums + j), sum);
    }
    const V<T> next = tanh_of(limited<T>(rule, sum)), old = access.load(step.old_h + j);
    const V<T> rest = hn::Mul(hn::Sub(hn::Set(D<T>(), T{1}), z), next);
    access.store(hn::MulAdd(z, old, rest), step.h + j);
  });
}

template <class T>
void simple(const CellRule<T>& rule, const CellStep<T>& step) {
  for_vectors<T>(step.n, [&](auto access, int64_t j) HWY_ATTR {
    const V<T> x = limited<T>(rule, access.load(step.gates + j)), zero = hn::Zero(D<T>());
    access.store(rule.cell == EP_CELL_TANH ? tanh_of(x) : hn::IfThenElse(hn::Lt(x, zero), zero, x), step.h + j);
  });
}

template <class T>
void new_state(const CellRule<T>& rule, const CellStep<T>& step) {
  if (rule.cell == EP_CELL_LSTM) return lstm(rule, step);
  if (rule.cell == EP_CELL_GRU) return gru(rule, step);
  simple(rule, step);
}

template <class T>
void reset_state(const CellRule<T>& rule, const CellStep<T>& step) {
  for_vectors<T>(step.n, [&](auto access, int64_t j) HWY_ATTR {
    const V<T> r = logistic<T>(limited<T>(rule, access.load(step.gates + step.gate_step + j)));
    access.store(hn::Mul(r, access.load(step.old_h + j)), step.h + j);
  });
}

template <class T>
RecurrentKernels<T> kernels() {
  return {2 * lanes_of<T>(), run_product<T>, new_state<T>, reset_state<T>};
}

}  // namespace

RecurrentKernels<float> recurrent_kernels_f32() { return kernels<float>(); }
RecurrentKernels<double> recurrent_kernels_f64() { return kernels<double>(); }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

template <>
RecurrentKernels<float> recurrent_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, recurrent_kernels_f32)();
}
template <>
RecurrentKernels<double> recurrent_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, recurrent_kernels_f64)();
}

}  // namespace tenon::provider::cpu
#endif
