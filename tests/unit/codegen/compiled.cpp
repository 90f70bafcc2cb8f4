#include "tests/unit/codegen/compiled.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "core/codegen/loop/interpret.h"
#include "primitives/text/format.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::codegen {

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

}  // namespace tenon::codegen
