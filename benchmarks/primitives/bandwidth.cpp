// Ops that read and write memory once, with an output that the call allocates, against the best copy of as many bytes.
// The bar of a row is 1 / (the wanted share of the copy's speed). add moves three bytes for two bytes of the copy.
#include <omp.h>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "benchmarks/peers/stream_copy.h"
#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace {

using tenon::Tensor;
using tenon::bench::keep;
using tenon::bench::Row;
using tenon::bench::Side;

struct AlignedBuffer {
  explicit AlignedBuffer(size_t bytes) : data(static_cast<char*>(std::aligned_alloc(1 << 21, bytes)), std::free) {
    for (size_t i = 0; i < bytes; i += 4096) data.get()[i] = static_cast<char>(i >> 12);
  }
  std::unique_ptr<char, decltype(&std::free)> data;
};

std::vector<float> random_floats(size_t count) {
  std::mt19937 engine(7);
  std::normal_distribution<float> values(0.0f, 1.0f);
  std::vector<float> out(count);
  for (float& value : out) value = values(engine);
  return out;
}

// Compares a few elements with `wanted(i)`, computed in double.
template <class Wanted>
std::string differs(const Tensor& got, double tolerance, Wanted wanted) {
  const std::vector<float> values = got.to_host<float>();
  for (size_t i = 0; i < values.size(); i += values.size() / 997 + 1) {
    const double want = wanted(i);
    if (!(std::abs(values[i] - want) <= tolerance * (1e-3 + std::abs(want)))) {
      return fmt::format("element {} is {}, not {}", i, values[i], want);
    }
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  constexpr size_t kMaps = size_t{16} << 20;       // 64 MB of floats
  constexpr size_t kRows = 16384, kColumns = 768;  // 48 MB
  const tenon::Device device("cpu");
  const std::vector<float> map_values = random_floats(kMaps), row_values = random_floats(kRows * kColumns);
  const Tensor x = Tensor::from<float>(map_values, {static_cast<int64_t>(kMaps)}, device);
  const Tensor y = x.to(device);
  const Tensor rows = Tensor::from<float>(row_values, {kRows, kColumns}, device);
  const Tensor scale = tenon::ones({kColumns}, tenon::DType::f32, device);
  const Tensor shift = tenon::zeros({kColumns}, tenon::DType::f32, device);
  AlignedBuffer from(kMaps * 4), to(kMaps * 4);

  const auto copies = [&](size_t bytes) {
    std::vector<Side> sides;
    for (int threads = 1; threads <= std::min(2, omp_get_num_procs()); ++threads) {
      sides.push_back({fmt::format("copy, {} threads", threads), [&, bytes, threads](int64_t n) {
                         for (int64_t i = 0; i < n; ++i) {
                           tenon::bench::stream_copy(to.data.get(), from.data.get(), bytes, threads);
                         }
                       }});
    }
    return sides;
  };
  const auto ours = [&](auto op) {
    return Side{"tenon on " + device.spelling(), [op](int64_t n) {
                  for (int64_t i = 0; i < n; ++i) keep(op());
                }};
  };
  const auto row_of = [&](size_t i) { return &row_values[i / kColumns * kColumns]; };
  const auto softmax_wanted = [&](size_t i) {
    double sum = 0, top = -INFINITY;
    for (size_t c = 0; c < kColumns; ++c) top = std::max<double>(top, row_of(i)[c]);
    for (size_t c = 0; c < kColumns; ++c) sum += std::exp(row_of(i)[c] - top);
    return std::exp(row_values[i] - top) / sum;
  };
  const auto norm_wanted = [&](size_t i) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < kColumns; ++c) mean += row_of(i)[c] / static_cast<double>(kColumns);
    for (size_t c = 0; c < kColumns; ++c) variance += std::pow(row_of(i)[c] - mean, 2) / static_cast<double>(kColumns);
    return (row_values[i] - mean) / std::sqrt(variance + 1e-5);
  };
  const double map_bytes = 8.0 * kMaps, row_bytes = 8.0 * kRows * kColumns;
  const auto relu = [&] { return tenon::relu(x); };
  const auto add = [&] { return tenon::add(x, y); };
  const auto softmax = [&] { return tenon::softmax(rows, 1); };
  const auto norm = [&] { return tenon::layer_norm(rows, {kColumns}, scale, shift); };
  const std::vector<Row> table{
      {"relu, 64 MB", ours(relu), copies(kMaps * 4), 1 / 0.85,
       [&] { return differs(relu(), 0, [&](size_t i) { return std::max(map_values[i], 0.0f); }); }, map_bytes},
      {"add, 64 MB (reads twice)", ours(add), copies(kMaps * 4), 1.5 / 0.85,
       [&] { return differs(add(), 0, [&](size_t i) { return 2.0f * map_values[i]; }); }, 1.5 * map_bytes},
      {"softmax, 16384 x 768", ours(softmax), copies(kRows * kColumns * 4), 1 / 0.7,
       [&] { return differs(softmax(), 1e-5, softmax_wanted); }, row_bytes},
      {"layer norm, 16384 x 768", ours(norm), copies(kRows * kColumns * 4), 1 / 0.7,
       [&] { return differs(norm(), 1e-4, norm_wanted); }, row_bytes},
  };
  return tenon::bench::run(table, argc, argv);
}
