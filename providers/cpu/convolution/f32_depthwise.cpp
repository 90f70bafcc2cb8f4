// A row of a depthwise convolution, compiled once per dispatch target. The weights for one vector of channels stay in
// registers while the loop processes the results of the row.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/convolution/f32_depthwise.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/convolution/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

constexpr int kResults = 4;  // summed in parallel, so that additions do not wait for each other

template <bool kWhole>
HWY_INLINE void finish(const DepthwiseRow& row, V sum, int64_t at, int64_t count) {
  if (row.finish.other != nullptr) sum = hn::Add(sum, load<kWhole>(row.finish.other + at, count));
  if (row.finish.bounded) sum = bounded(sum, hn::Set(D(), row.finish.low), hn::Set(D(), row.finish.high));
  store<kWhole>(sum, row.dst + at, count);
}

// Computes kCount results starting at x for channels [c, c + count). kTaps is the number of taps, or 0 for any number.
// kWhole: the channels fill a vector.
template <int kTaps, int kCount, bool kWhole>
HWY_INLINE void results_at(const DepthwiseRow& row, int64_t x, int64_t c, int64_t count, const V* held) {
  V sum[kCount];
  const V bias = row.bias == nullptr ? hn::Zero(D()) : load<kWhole>(row.bias + c, count);
  for (int i = 0; i < kCount; ++i) sum[i] = bias;
  const float* src = row.src + x * row.step + c;
  const int64_t taps = kTaps == 0 ? row.taps : kTaps;
  for (int64_t t = 0; t < taps; ++t) {
    const V weight = kTaps == 0 ? load<kWhole>(row.weights + row.places[t] * row.channels + c, count) : held[t];
    const float* from = src + row.offsets[t];
    for (int i = 0; i < kCount; ++i) {
      sum[i] = hn::MulAdd(load<kWhole>(from + i * row.step, count), weight, sum[i]);
    }
  }
  for (int i = 0; i < kCount; ++i) finish<kWhole>(row, sum[i], (x + i) * row.channels + c, count);
}

// Like the function above, for 3 x 3 adjacent taps and results that are kStep pixels apart: adjacent results share
// loads.
template <int kStep, int kCount>
HWY_INLINE void three_by_three_at(const DepthwiseRow& row, int64_t x, int64_t c, const V* held) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  V sum[kCount];
  const V bias = row.bias == nullptr ? hn::Zero(D()) : hn::LoadU(D(), row.bias + c);
  for (int i = 0; i < kCount; ++i) sum[i] = bias;
  for (int ky = 0; ky < 3; ++ky) {
    const float* from = row.src + x * row.step + c + row.offsets[3 * ky];
    for (int column = 0; column < (kCount - 1) * kStep + 3; ++column) {
      const V value = hn::LoadU(D(), from + column * row.channels);
      for (int i = 0; i < kCount; ++i) {
        const int kx = column - i * kStep;
        if (kx >= 0 && kx < 3) sum[i] = hn::MulAdd(value, held[3 * ky + kx], sum[i]);
      }
    }
  }
  for (int i = 0; i < kCount; ++i) finish<true>(row, sum[i], (x + i) * row.channels + c, lanes);
}

template <int kTaps, int kStep, bool kWhole>
HWY_INLINE void channels_at(const DepthwiseRow& row, int64_t c, int64_t count) {
  V held[kTaps == 0 ? 1 : kTaps];
  for (int t = 0; t < kTaps; ++t) held[t] = load<kWhole>(row.weights + row.places[t] * row.channels + c, count);
  int64_t x = 0;
  for (; x + kResults <= row.results; x += kResults) {
    if constexpr (kStep != 0) {
      three_by_three_at<kStep, kResults>(row, x, c, held);
    } else {
      results_at<kTaps, kResults, kWhole>(row, x, c, count, held);
    }
  }
  for (; x < row.results; ++x) results_at<kTaps, 1, kWhole>(row, x, c, count, held);
}

template <int kTaps, int kStep>
void all_channels(const DepthwiseRow& row) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t c = 0;
  for (; c + lanes <= row.channels; c += lanes) channels_at<kTaps, kStep, true>(row, c, lanes);
  if (c < row.channels) channels_at<0, 0, false>(row, c, row.channels - c);
}

// True if the taps are 3 x 3 and adjacent along a row.
bool is_three_by_three(const DepthwiseRow& row) {
  for (int t = 0; t < 9; ++t) {
    if (row.taps != 9 || row.offsets[t] != row.offsets[t / 3 * 3] + t % 3 * row.channels) return false;
  }
  return true;
}

void depthwise(const DepthwiseRow& row) {
  if (is_three_by_three(row) && row.step == row.channels) return all_channels<9, 1>(row);
  if (is_three_by_three(row) && row.step == 2 * row.channels) return all_channels<9, 2>(row);
  switch (row.taps) {
    case 9: return all_channels<9, 0>(row);
    case 6: return all_channels<6, 0>(row);
    case 4: return all_channels<4, 0>(row);
    default: return all_channels<0, 0>(row);
  }
}

DepthwiseKernel depthwise_of_target() { return depthwise; }

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

DepthwiseKernel depthwise_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, depthwise_of_target)(); }

}  // namespace tenon::provider::cpu
#endif
