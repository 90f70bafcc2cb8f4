#include "tests/unit/compiler/compiled.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "core/compiler/loop/interpret.h"
#include "primitives/reference/element.h"
#include "primitives/text/format.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::compiler {

Compiled::Compiled(const KernelText& text) : local_bytes_(text.shared_bytes) {
  static int number = 0;
  const ScratchFolder folder;
  const std::string base = fmt::format("{}/kernel{}", folder.path(), number++);
  std::ofstream(fmt::format("{}.c", base)) << text.text;
  const std::string command = fmt::format(
      "{} -std=gnu11 -O2 -march=native -mprefer-vector-width=512 -ffp-contract=off -fno-math-errno -fno-trapping-math"
      " -fwrapv -fno-strict-aliasing -Wall -Werror -Wno-psabi -Wno-unused -fPIC -shared -o {}.so {}.c -lm 2> {}.txt",
      TENON_CC, base, base, base);
  if (std::system(command.c_str()) != 0) {
    std::ifstream messages(fmt::format("{}.txt", base));
    ADD_FAILURE() << std::string(std::istreambuf_iterator<char>(messages), {}).substr(0, 4000) << "\n" << text.text;
    return;
  }
  library_ = dlopen(fmt::format("{}.so", base).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ != nullptr) function_ = dlsym(library_, text.entry.c_str());
  EXPECT_NE(function_, nullptr) << dlerror();
}

Compiled::~Compiled() {
  if (library_ != nullptr) dlclose(library_);
}

void Compiled::run(const std::vector<void*>& buffers, const std::vector<int64_t>& parameters, int64_t items,
                   int64_t at_once) const {
  std::vector<unsigned char> local(local_bytes_ + 64, 0xa5);
  void* aligned = local.data();
  size_t space = local.size();
  ASSERT_NE(std::align(64, local_bytes_, aligned, space), nullptr);
  for (int64_t end = items; end > 0; end -= at_once) {
    std::fill_n(static_cast<unsigned char*>(aligned), local_bytes_, 0xa5);
    symbol<Entry>()(buffers.data(), parameters.data(), std::max<int64_t>(0, end - at_once), end, aligned);
  }
}

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

void expect_compiles(const Kernel& kernel, const std::vector<std::vector<int64_t>>& parameters, double ulps,
                     double absolute) {
  const Result<KernelText> text = emit_c(kernel);
  ASSERT_TRUE(text.ok()) << text.status().message() << "\n" << to_string(kernel);
  const Compiled compiled(text.value());
  ASSERT_TRUE(compiled.ok()) << to_string(kernel);
  for (const std::vector<int64_t>& sizes : parameters) {
    std::string what = kernel.name;
    for (const int64_t size : sizes) what += fmt::format(" {}", size);
    Memory expected(kernel, sizes, 7);
    const Status status = interpret(kernel, sizes, expected.addresses());
    ASSERT_TRUE(status.ok()) << what << ": " << status.message();
    const int64_t items = value_or_throw(item_count(kernel, sizes));
    for (const int64_t at_once : {int64_t{1}, std::max<int64_t>(items, 1)}) {
      Memory actual(kernel, sizes, 7);
      compiled.run(actual.addresses(), sizes, items, at_once);
      expect_near(kernel, expected, actual, ulps, absolute, what);
    }
  }
}

Kernel parsed(const std::string& text) { return value_or_throw(parse_kernel(text)); }

}  // namespace tenon::compiler
