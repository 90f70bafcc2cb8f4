// Norms as kernels at sizes around vectors, rows of registers and blocks, in every floating dtype, against sums in
// wider numbers. NORM_GRID=all tests every size; otherwise some.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "core/graph/recorder.h"
#include "core/graph/signature.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

using Row = std::vector<double>;

struct Norm {
  const char* name;
  Tensor (*code)(const Tensor& x, const Tensor& weight);
  Row (*row)(const Row& x, const Row& weight);
};

double mean_of(const Row& x, double (*term)(double v, double shift), double shift) {
  long double sum = 0;
  for (const double v : x) sum += term(v, shift);
  return static_cast<double>(sum / static_cast<long double>(x.size()));
}

Row scaled(const Row& x, const Row& weight, double shift, double factor) {
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = (x[i] - shift) * factor * weight[i];
  return y;
}

Row shares(const Row& x) {
  long double sum = 0;
  for (const double v : x) sum += std::exp(static_cast<long double>(v));
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = static_cast<double>(std::exp(static_cast<long double>(x[i])) / sum);
  return y;
}

constexpr double kEps = 1e-3;

const Norm kNorms[] = {
    {"rms_norm",
     [](const Tensor& x, const Tensor& weight) {
       return x * rsqrt(mean(square(x), Dims{-1}, true) + Scalar(kEps)) * weight;
     },
     [](const Row& x, const Row& weight) {
       const double squares = mean_of(
           x, [](double v, double) { return v * v; }, 0);
       return scaled(x, weight, 0, 1 / std::sqrt(squares + kEps));
     }},
    {"layer_norm",
     [](const Tensor& x, const Tensor& weight) {
       const Tensor centred = x - mean(x, Dims{-1}, true);
       return centred * rsqrt(mean(square(centred), Dims{-1}, true) + Scalar(kEps)) * weight;
     },
     [](const Row& x, const Row& weight) {
       const double mean = mean_of(
           x, [](double v, double) { return v; }, 0);
       const double spread = mean_of(
           x, [](double v, double shift) { return (v - shift) * (v - shift); }, mean);
       return scaled(x, weight, mean, 1 / std::sqrt(spread + kEps));
     }},
    {"softmax",
     [](const Tensor& x, const Tensor& weight) {
       const Tensor powers = exp(x - amax(x, Dims{-1}, true));
       return powers / sum(powers, Dims{-1}, true) * weight;
     },
     [](const Row& x, const Row& weight) { return scaled(shares(x), weight, 0, 1); }},
    {"log_softmax", [](const Tensor& x, const Tensor& weight) { return log_softmax(x, -1) * weight; },
     [](const Row& x, const Row& weight) {
       Row y = shares(x);
       for (size_t i = 0; i < y.size(); ++i) y[i] = std::log(y[i]) * weight[i];
       return y;
     }},
};

double step_of(DType dtype) {
  return dtype == DType::f64 ? 0x1p-52 : dtype == DType::f32 ? 0x1p-23 : dtype == DType::f16 ? 0x1p-10 : 0x1p-7;
}

// The rounding error of a sum in a tree of 16 lanes grows with the height of the tree; the stored value is rounded once
// more.
double bound(DType dtype) {
  const double computed = dtype == DType::f64 ? 0x1p-52 : 0x1p-23;
  return step_of(dtype) / 2 + 24 * computed;
}

bool all_sizes() {
  const char* text = std::getenv("NORM_GRID");
  return text != nullptr && std::string(text) == "all";
}

std::vector<int64_t> lengths() {
  if (!all_sizes()) return {1, 17, 257};
  return {1, 2, 17, 31, 32, 33, 255, 256, 257, 768, 1024, 2047, 2048, 2049, 4096, 8192};
}
std::vector<int64_t> row_counts() {
  return all_sizes() ? std::vector<int64_t>{0, 1, 7, 128, 16384} : std::vector<int64_t>{0, 1, 7};
}

Tensor random_tensor(const Dims& dims, DType dtype, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(0.25F, 2.0F);
  std::vector<float> block(65537);  // a prime: rows differ
  for (float& value : block) value = random() % 2 == 0 ? numbers(random) : -numbers(random);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < data.size(); i += block.size()) {
    std::copy_n(block.begin(), std::min(block.size(), data.size() - i), data.begin() + static_cast<ptrdiff_t>(i));
  }
  return cast(Tensor::from<float>(data, dims), dtype);
}

// The norm as a program for x [rows, length]. 0 and 1 are recorded as numbers, other numbers of rows are open, and
// other lengths are open if `open`.
Graph record(const Norm& norm, DType dtype, int64_t rows, int64_t length, bool open) {
  Recorder recorder(Device::current());
  const InterpreterScope scope(recorder);
  const std::vector<std::string> names{rows > 1 ? "rows" : "", open && length > 1 ? "n" : ""}, last{names[1]};
  const Tensor x = recorder.input(dtype, {rows, length}, names), w = recorder.input(dtype, {length}, last);
  const bool narrow = dtype == DType::f16 || dtype == DType::bf16;
  const auto wide = [&](const Tensor& value) { return narrow ? cast(value, DType::f32) : value; };
  const Tensor y = norm.code(wide(x), wide(w));
  Graph graph = recorder.finish(TensorList{narrow ? cast(y, dtype) : y});
  find_pass("fuse").run(&graph, {});
  return graph;
}

// Returns what is wrong with the program for x [rows, length], or nothing.
std::string wrong_with(const Graph& graph, const Norm& norm, DType dtype, int64_t rows, int64_t length) {
  const Tensor x = random_tensor({rows, length}, dtype, 7), w = random_tensor({length}, dtype, 8);
  const TensorList inputs{x, w};
  symbolic::Values sizes(graph.arena());
  if (std::string no = why_not(graph, inputs, &sizes); !no.empty()) return no;
  const std::string poison(static_cast<size_t>(x.bytes()), '\x5a');
  const TensorList outputs{Tensor::copy_from_host(poison.data(), x.dims(), dtype, x.device())};
  std::vector<StepExecution> executions;
  const Tensor y = run(prepare(graph, &sizes), inputs, outputs, &executions)[0];
  if (y.dims() != x.dims()) return "the result has other dims";
  if (rows == 0) return "";
  if (executions.size() != 1 || executions[0].entry.rung != Rung::compiled) return "it is not one kernel";
  const Row weight = cast(w, DType::f64).to_host<double>();
  const int64_t stride = std::max<int64_t>(1, rows / 61);
  for (int64_t i = 0; i < rows; i = i + stride < rows || i == rows - 1 ? i + stride : rows - 1) {
    const auto row = [i](const Tensor& of) { return cast(slice(of, 0, i, i + 1), DType::f64).to_host<double>(); };
    const Row got = row(y), expected = norm.row(row(x), weight);
    for (size_t k = 0; k < got.size(); ++k) {
      if (!(std::fabs(got[k] - expected[k]) <= bound(dtype) * (1 + std::fabs(expected[k])))) {
        return fmt::format("element [{}, {}] is {}, not {}", i, k, got[k], expected[k]);
      }
    }
  }
  return "";
}

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

// Each number of rows beyond 1 runs the same program.
void check_one_length(const Norm& norm, DType dtype, int64_t length) {
  std::optional<Graph> general;
  for (const int64_t rows : row_counts()) {
    if (rows > 1 && !general) general = record(norm, dtype, rows, length, false);
    const Graph own = rows > 1 ? general->copy() : record(norm, dtype, rows, length, false);
    EXPECT_EQ(wrong_with(own, norm, dtype, rows, length), "") << norm.name << " of " << rows << " x " << length;
  }
}

// One kernel for all rows of more than one element.
void check_every_length(const Norm& norm, DType dtype) {
  std::optional<Graph> general;
  for (const int64_t length : lengths()) {
    if (length == 1) continue;
    if (!general) general = record(norm, dtype, 7, length, true);
    for (const int64_t rows : row_counts()) {
      if (rows < 2) continue;
      EXPECT_EQ(wrong_with(*general, norm, dtype, rows, length), "") << norm.name << " of " << rows << " x " << length;
    }
  }
}

using Case = std::tuple<DType, const Norm*>;
std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}", dtype_name(std::get<0>(info.param)), std::get<1>(info.param)->name);
}
std::vector<const Norm*> norms() {
  std::vector<const Norm*> all;
  for (const Norm& norm : kNorms) all.push_back(&norm);
  return all;
}

class NormGridOneLength : public ::testing::TestWithParam<Case> {};
TEST_P(NormGridOneLength, KernelsOfThatLength) {
  for (const int64_t length : lengths()) check_one_length(*std::get<1>(GetParam()), std::get<0>(GetParam()), length);
}
INSTANTIATE_TEST_SUITE_P(Norms, NormGridOneLength,
                         ::testing::Combine(::testing::ValuesIn(all_sizes() ? std::vector<DType>(std::begin(kDTypes),
                                                                                                 std::end(kDTypes))
                                                                            : std::vector<DType>{DType::f32}),
                                            ::testing::ValuesIn(norms())),
                         name_of);

class NormGridEveryLength : public ::testing::TestWithParam<Case> {};
TEST_P(NormGridEveryLength, OneKernel) { check_every_length(*std::get<1>(GetParam()), std::get<0>(GetParam())); }
INSTANTIATE_TEST_SUITE_P(Norms, NormGridEveryLength,
                         ::testing::Combine(::testing::ValuesIn(kDTypes), ::testing::ValuesIn(norms())), name_of);

}  // namespace
}  // namespace tenon::graph
