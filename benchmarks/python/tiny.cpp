// The C++ side of costs.py, a library that Python loads with ctypes: tiny ops called as a C++ program would, in the
// same process as the extension module.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/report/keep.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"

namespace {

using tenon::Tensor;

const std::map<std::string, std::function<Tensor(const Tensor&)>>& ops() {
  static const std::map<std::string, std::function<Tensor(const Tensor&)>> all{
      {"relu", [](const Tensor& x) { return tenon::relu(x); }},
      {"add", [](const Tensor& x) { return x + x; }},
      {"add a number", [](const Tensor& x) { return tenon::add(x, 2.0); }},
      {"matmul", [](const Tensor& x) { return tenon::matmul(x, x); }},
      {"clamp", [](const Tensor& x) { return tenon::clamp(x, 0.0, 1.0); }},
      {"mul by a number", [](const Tensor& x) { return x * 2.0; }},
      {"select", [](const Tensor& x) { return tenon::select(x, 0, 0); }},
      {"view",
       [](const Tensor& x) {
         return tenon::view(x, {2, 2});
       }},
      {"sum", [](const Tensor& x) { return tenon::sum(x, {0}); }},
  };
  return all;
}

}  // namespace

// Seconds for `n` calls of op `name` on four floats; -1 if there is no such op.
extern "C" [[gnu::visibility("default")]] double tiny_seconds(const char* name, int64_t n) {
  const auto found = ops().find(name);
  if (found == ops().end()) return -1;
  static const Tensor x = Tensor::from<float>({1.0F, -1.0F, 1.0F, -1.0F}, {4}, tenon::Device("cpu"));
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < n; ++i) tenon::bench::keep(found->second(x));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
