#include "providers/cpu/quantised/product.h"

#include <cstring>

#include "providers/cpu/quantised/depth_tile.h"

namespace tenon::provider::cpu {

void Panels::pack(char* dst, const char* src, const ByteProduct& product, bool flips) const {
  const ByteProduct& p = product;
  std::memset(dst, 0, static_cast<size_t>(bytes()));
  auto* sums = reinterpret_cast<int32_t*>(dst + count * panel_bytes());
  const char flip = flips ? static_cast<char>(0x80) : 0;
  const bool joined = !p.depthwise && taps != p.taps();
  for (int64_t column = 0; column < p.out; ++column) {
    char* of_columns = dst + column / kDotColumns * panel_bytes();
    char* panel = of_columns + column % kDotColumns * 4;
    int32_t sum = 0;
    for (int64_t number = 0; number < p.taps(); ++number) {
      const int64_t y = number / p.kernel[1], x = number % p.kernel[1];
      const char* from = src + column * p.weight_strides[0] + y * p.weight_strides[2] + x * p.weight_strides[3];
      if (p.depthwise) {
        const auto value = static_cast<int8_t>(*from ^ flip);
        const int64_t place = (x * groups + y / 4) * kDotColumns * 4 + depth_place(column % kDotColumns, y % 4);
        of_columns[place] = static_cast<char>(value);
        sum += value;
        continue;
      }
      char* tap = panel + (joined ? y : number) * groups * kDotColumns * 4;
      int64_t k = joined ? x * p.in : 0;
      for (int64_t channel = 0; channel < p.in; ++channel, ++k) {
        const auto value = static_cast<int8_t>(from[channel * p.weight_strides[1]] ^ flip);
        tap[k / 4 * (kDotColumns * 4) + k % 4] = static_cast<char>(value);
        sum += value;
      }
    }
    sums[column] = sum;
  }
}

}  // namespace tenon::provider::cpu
