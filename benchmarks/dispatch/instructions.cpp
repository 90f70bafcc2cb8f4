// Runs one tiny op N times and nothing else, so that callgrind can count: bench_instructions OP N.
// tests/e2e/instructions.py compares the difference of two counts with instructions.txt.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/report/keep.h"
#include "core/ops/ops.h"

// callgrind counts only in this function: starting the program takes about a million instructions, and the number
// varies.
extern "C" [[gnu::noinline]] void tenon_counted(const std::function<void()>& op, long n) {
  for (long i = 0; i < n; ++i) op();
}

int main(int argc, char** argv) {
  using tenon::Tensor;
  const tenon::Device device("cpu");
  const std::vector<float> values{-1.5f, 2.25f, -0.125f, 3.0f};
  const Tensor a = Tensor::from<float>(values, {4}, device);
  const Tensor b = Tensor::from<float>(values, {4}, device);
  const Tensor square = tenon::view(a, {2, 2});
  const Tensor x = Tensor::from<float>(std::vector<float>(16, 1.5f), {4, 4}, device);
  const Tensor half = tenon::slice(Tensor::from<float>(std::vector<float>(32, 1.5f), {4, 8}, device), 1, {}, {}, 2);
  const Tensor turned = tenon::t(x);
  Tensor out = Tensor::empty({4}, tenon::DType::f32, device);
  const std::map<std::string, std::function<void()>> ops{
      {"relu", [&] { tenon::bench::keep(tenon::relu(a)); }},
      {"add", [&] { tenon::bench::keep(tenon::add(a, b)); }},
      {"add_out", [&] { tenon::bench::keep(tenon::add_out(out, a, b)); }},
      {"view",
       [&] {
         tenon::bench::keep(tenon::view(a, {2, 2}));
       }},
      {"bias", [&] { tenon::bench::keep(tenon::add(x, a)); }},
      {"strided", [&] { tenon::bench::keep(tenon::add(half, half)); }},
      {"transposed", [&] { tenon::bench::keep(tenon::mul(turned, turned)); }},
      {"matmul", [&] { tenon::bench::keep(tenon::matmul(square, square)); }},
  };
  if (argc != 3 || ops.count(argv[1]) == 0) {
    std::fprintf(stderr, "usage: bench_instructions OP N, where OP is one of:");
    for (const auto& [name, op] : ops) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  tenon_counted(ops.at(argv[1]), std::atol(argv[2]));
  return 0;
}
