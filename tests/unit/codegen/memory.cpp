#include "tests/unit/codegen/memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/codegen/loop/interpret.h"
#include "primitives/reference/element.h"
#include "primitives/text/format.h"

namespace tenon::codegen {

Memory::Memory(const Kernel& kernel, const std::vector<int64_t>& parameters, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> draw(0.25, 2.0);
  for (const Buffer& buffer : kernel.buffers) {
    const int64_t count = value_or_throw(size_of(kernel, buffer.elements, parameters));
    buffers_.emplace_back(static_cast<size_t>(count * dtype_size(buffer.dtype)), 0xc5);
    if (buffer.output) continue;
    for (int64_t i = 0; i < count; ++i) {
      const double number = (random() % 2 == 0 ? -1 : 1) * draw(random);
      reference::with_compute_type(buffer.dtype, [&](auto t) {
        using T = decltype(t);
        const T value = is_floating(buffer.dtype)        ? static_cast<T>(number)
                        : buffer.dtype == DType::boolean ? static_cast<T>(number > 0)
                                                         : static_cast<T>(static_cast<int64_t>(1 + random() % 100));
        reference::store<T>(buffer.dtype, buffers_.back().data(), i, value);
      });
    }
  }
}

std::vector<void*> Memory::addresses() {
  std::vector<void*> result;
  for (std::vector<unsigned char>& buffer : buffers_) result.push_back(buffer.data());
  return result;
}

void expect_near(const Kernel& kernel, const Memory& expected, const Memory& actual, double ulps, double absolute,
                 const std::string& what) {
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const Buffer& buffer = kernel.buffers[b];
    if (!buffer.output) continue;
    const double epsilon = buffer.dtype == DType::f64   ? 0x1p-52
                           : buffer.dtype == DType::f32 ? 0x1p-23
                           : buffer.dtype == DType::f16 ? 0x1p-10
                                                        : 0x1p-7;
    const auto count = static_cast<int64_t>(expected.bytes(b).size()) / dtype_size(buffer.dtype);
    for (int64_t i = 0; i < count; ++i) {
      if (!is_floating(buffer.dtype)) {
        const auto want = reference::load<int64_t>(buffer.dtype, expected.bytes(b).data(), i);
        const auto have = reference::load<int64_t>(buffer.dtype, actual.bytes(b).data(), i);
        ASSERT_EQ(want, have) << what << ": element " << i << " of " << buffer.name;
        continue;
      }
      const auto want = reference::load<double>(buffer.dtype, expected.bytes(b).data(), i);
      const auto have = reference::load<double>(buffer.dtype, actual.bytes(b).data(), i);
      const bool same = want == have || (std::isnan(want) && std::isnan(have));
      const double allowed = std::max(absolute, ulps * epsilon * std::abs(want));
      ASSERT_TRUE(same || std::abs(want - have) <= allowed)
          << what << ": element " << i << " of " << buffer.name << " is " << have << ", but must be " << want;
    }
  }
}

Kernel parsed(const std::string& text) { return value_or_throw(parse_kernel(text)); }

}  // namespace tenon::codegen
