// The tiles of byte products: every kernel of this processor against sums in 64 bits, for odd sizes, zero points, every
// type of result, and scales that are NaN or infinite.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "providers/cpu/quantised/avx2_tiles.h"
#include "providers/cpu/quantised/depth_tile.h"
#include "providers/cpu/quantised/vnni.h"

namespace tenon::provider::cpu {
namespace {

constexpr DotResult results[] = {DotResult::i32, DotResult::f32, DotResult::u8, DotResult::i8};

template <class Kernel>
using Kernels = std::vector<std::pair<std::string, Kernel>>;

Kernels<DotKernel> dot_kernels() {
  Kernels<DotKernel> all{{"portable", dot_kernel(SimdLevel::baseline)}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) all.emplace_back("avx2", avx2_dot_kernel(false));
  if (has_avx_vnni()) all.emplace_back("avx_vnni", avx2_dot_kernel(true));
  if (has_vnni(SimdLevel::avx3)) all.emplace_back("avx512_vnni", dot_kernel(SimdLevel::avx3));
#endif
  return all;
}
Kernels<DepthKernel> depth_kernels() {
  Kernels<DepthKernel> all{{"portable", depth_kernel(SimdLevel::baseline)}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) all.emplace_back("avx2", avx2_depth_kernel(false));
  if (has_avx_vnni()) all.emplace_back("avx_vnni", avx2_depth_kernel(true));
  if (has_vnni(SimdLevel::avx3)) all.emplace_back("avx512_vnni", depth_kernel(SimdLevel::avx3));
#endif
  return all;
}

class ByteTiles : public ::testing::Test {
 protected:
  int32_t number(int32_t low, int32_t high) { return std::uniform_int_distribution<int32_t>(low, high)(random_); }

  // Fills the scales, zero points and corrections of a tile with `columns` columns.
  void fill_results(DotResults* to, int32_t columns, DotResult result, bool has_zeros) {
    for (int32_t c = 0; c < kDotColumns; ++c) {
      added_[c] = number(-5000, 5000);
      zeros_[c] = number(-128, 127);
      factor_[c] = static_cast<float>(number(1, 100)) * 1e-4F;
      bias_[c] = static_cast<float>(number(-100, 100)) * .25F;
    }
    factor_[columns / 2] = std::numeric_limits<float>::infinity();
    bias_[columns / 3] = std::numeric_limits<float>::quiet_NaN();
    bias_[columns / 4] = 1e-41F;
    to->columns = columns;
    to->added = added_;
    to->weight_zero = has_zeros ? zeros_ : nullptr;
    to->result = result;
    to->factor = factor_;
    to->bias = bias_;
    to->zero_point = result == DotResult::i8 ? number(-128, 127) : number(0, 255);
    to->dst_row = columns + 3;
  }

  // Checks one result of a tile against the sum of its products.
  static void expect_result(const DotResults& to, int32_t row, int32_t c, int64_t sum, const std::string& label) {
    const auto exact = static_cast<int32_t>(sum + to.added[c]);
    const int64_t at = row * to.dst_row + c;
    if (to.result == DotResult::i32) {
      int32_t got = 0;
      std::memcpy(&got, to.dst + at * 4, 4);
      ASSERT_EQ(got, exact) << label;
      return;
    }
    const float real = std::fma(static_cast<float>(exact), to.factor[c], to.bias[c]);
    if (to.result == DotResult::f32) {
      float got = 0;
      std::memcpy(&got, to.dst + at * 4, 4);
      ASSERT_TRUE(got == real || (std::isnan(got) && std::isnan(real))) << label << ": " << got << ", not " << real;
      return;
    }
    const double low = to.result == DotResult::i8 ? -128 : 0;
    const double moved = std::nearbyint(static_cast<double>(real)) + to.zero_point;
    const double bounded = std::isnan(moved) ? low : std::min(std::max(moved, low), low + 255);
    const int32_t got = to.result == DotResult::i8 ? static_cast<int8_t>(to.dst[at]) : static_cast<uint8_t>(to.dst[at]);
    ASSERT_EQ(got, static_cast<int32_t>(bounded)) << label;
  }

  std::mt19937 random_{7};
  int32_t added_[kDotColumns] = {}, zeros_[kDotColumns] = {};
  float factor_[kDotColumns] = {}, bias_[kDotColumns] = {};
};

TEST_F(ByteTiles, SumsAreExact) {
  for (int32_t round = 0; round < 400; ++round) {
    const int32_t rows = number(1, kDotRows), columns = number(1, kDotColumns);
    const int64_t taps = number(1, 3), depth = round < 20 ? 1024 : number(1, 37);
    const int64_t padded = (depth + 3) / 4 * 4;
    const bool extreme = round % 4 == 0;  // the largest products
    std::vector<uint8_t> src(static_cast<size_t>(rows * taps * padded));
    for (uint8_t& byte : src) byte = extreme ? 255 : static_cast<uint8_t>(number(0, 255));
    std::vector<int8_t> weights(static_cast<size_t>(taps * padded * kDotColumns));
    const auto weight = [&](int64_t tap, int64_t p, int32_t c) -> int8_t& {
      return weights[static_cast<size_t>(((tap * padded / 4 + p / 4) * kDotColumns + c) * 4 + p % 4)];
    };
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t p = 0; p < depth; ++p) {
        for (int32_t c = 0; c < kDotColumns; ++c) {
          weight(tap, p, c) = static_cast<int8_t>(extreme ? (c % 2 == 0 ? 127 : -128) : number(-128, 127));
        }
      }
    }
    std::vector<const uint8_t*> lines;
    for (int64_t i = 0; i < taps * rows; ++i) lines.push_back(src.data() + i * padded);
    std::vector<int32_t> sums(static_cast<size_t>(rows));
    DotTile tile{};
    fill_results(&tile, columns, results[number(0, 3)], round % 2 == 0);
    tile.src = lines.data();
    tile.weights = weights.data();
    tile.taps = taps;
    tile.depth = depth;
    tile.rows = rows;
    tile.flips = number(0, 1) != 0;
    tile.reads_on = number(0, 1) != 0;
    tile.row_sums = sums.data();
    const int32_t flip = tile.flips ? 0x80 : 0;
    for (int32_t r = 0; r < rows; ++r) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t p = 0; p < depth; ++p) sums[static_cast<size_t>(r)] += lines[tap * rows + r][p] ^ flip;
      }
    }
    for (const auto& [name, kernel] : dot_kernels()) {
      std::vector<char> dst(static_cast<size_t>(rows * tile.dst_row * 4), char{77});
      tile.dst = dst.data();
      kernel(tile);
      for (int32_t r = 0; r < rows; ++r) {
        for (int32_t c = 0; c < columns; ++c) {
          int64_t sum = 0;
          for (int64_t tap = 0; tap < taps; ++tap) {
            for (int64_t p = 0; p < depth; ++p) sum += (lines[tap * rows + r][p] ^ flip) * weight(tap, p, c);
          }
          if (tile.weight_zero != nullptr) sum -= int64_t{zeros_[c]} * sums[static_cast<size_t>(r)];
          const std::string label = fmt::format("{} round {} row {} column {}", name, round, r, c);
          expect_result(tile, r, c, sum, label);
          if (HasFatalFailure()) return;
        }
        const int64_t bytes = tile.result == DotResult::i32 || tile.result == DotResult::f32 ? 4 : 1;
        ASSERT_EQ(dst[static_cast<size_t>((r * tile.dst_row + columns) * bytes)], 77) << name << " writes on";
      }
    }
  }
}

TEST_F(ByteTiles, DepthwiseSumsAreExact) {
  for (int32_t round = 0; round < 200; ++round) {
    const int32_t columns = number(1, kDotColumns), quads = number(1, 2), taps = number(1, 4);
    const int32_t pixels = number(0, 1) != 0 ? kDepthPixels : 1;
    const int32_t src_columns = taps + pixels - 1, lines = quads * 4;
    const bool extreme = round % 4 == 0;
    std::vector<uint8_t> src(static_cast<size_t>(src_columns * lines * kDotColumns));
    for (uint8_t& byte : src) byte = extreme ? 255 : static_cast<uint8_t>(number(0, 255));
    std::vector<int8_t> weights(static_cast<size_t>(taps * quads * kDotColumns * 4));
    for (int8_t& byte : weights) byte = static_cast<int8_t>(extreme ? -128 : number(-128, 127));
    std::vector<const uint8_t*> pixel_lines;
    for (int32_t i = 0; i < src_columns * lines; ++i) pixel_lines.push_back(src.data() + i * kDotColumns);
    std::vector<int32_t> tap_of(static_cast<size_t>(src_columns * kDepthPixels), -1);
    for (int32_t column = 0; column < src_columns; ++column) {
      for (int32_t pixel = 0; pixel < pixels; ++pixel) {
        const int32_t tap = column - pixel;
        if (tap >= 0 && tap < taps) tap_of[static_cast<size_t>(column * kDepthPixels + pixel)] = tap;
      }
    }
    DepthTile tile{};
    fill_results(&tile, columns, results[number(0, 3)], round % 2 == 0);
    tile.src = pixel_lines.data();
    tile.weights = weights.data();
    tile.taps = tap_of.data();
    tile.quads = quads;
    tile.pixels = pixels;
    tile.src_columns = src_columns;
    tile.flips = number(0, 1) != 0;
    const int32_t flip = tile.flips ? 0x80 : 0;
    for (const auto& [name, kernel] : depth_kernels()) {
      std::vector<char> dst(static_cast<size_t>(pixels * tile.dst_row * 4), char{77});
      tile.dst = dst.data();
      kernel(tile);
      for (int32_t pixel = 0; pixel < pixels; ++pixel) {
        for (int32_t c = 0; c < columns; ++c) {
          int64_t sum = 0;
          for (int32_t tap = 0; tap < taps; ++tap) {
            for (int32_t line = 0; line < lines; ++line) {
              const int32_t byte = pixel_lines[static_cast<size_t>((pixel + tap) * lines + line)][c] ^ flip;
              const int64_t at = (tap * quads + line / 4) * kDotColumns * 4 + depth_place(c, line % 4);
              sum += byte * weights[static_cast<size_t>(at)];
              if (tile.weight_zero != nullptr) sum -= zeros_[c] * byte;
            }
          }
          const std::string label = fmt::format("{} round {} pixel {} column {}", name, round, pixel, c);
          expect_result(tile, pixel, c, sum, label);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::provider::cpu
