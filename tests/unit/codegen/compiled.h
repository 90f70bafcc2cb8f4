// A kernel's text in C, compiled by the compiler that builds the tests, and called as a provider calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/codegen/emit/emit.h"
#include "tests/unit/codegen/memory.h"

namespace tenon::codegen {

class Compiled {
 public:
  // Fails the test if the text does not compile.
  explicit Compiled(const KernelText& text);
  ~Compiled();
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  bool ok() const { return function_ != nullptr; }
  // The entry as a function of another type.
  template <class Function>
  Function* symbol() const {
    return reinterpret_cast<Function*>(function_);
  }
  // Runs all items in calls of `at_once` items, in reverse order.
  void run(const std::vector<void*>& buffers, const std::vector<int64_t>& parameters, int64_t items,
           int64_t at_once) const;

 private:
  using Entry = void(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local);

  void* library_ = nullptr;
  void* function_ = nullptr;
  size_t local_bytes_;
};

// Runs `kernel` through the interpreter, and its text in C, for each list of parameters, and compares the results.
void expect_compiles(const Kernel& kernel, const std::vector<std::vector<int64_t>>& parameters, double ulps,
                     double absolute);

}  // namespace tenon::codegen
