// Ops that read and write memory once, with an output that the call allocates, against the best copy of as many bytes;
// reductions against the best read. The bar of a row is 1 / (the required share of the copy's speed).
#include <omp.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "benchmarks/peers/stream_copy.h"
#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace {

using tenon::DType;
using tenon::Tensor;
using tenon::bench::keep;
using tenon::bench::Row;
using tenon::bench::Side;

struct AlignedBuffer {
  explicit AlignedBuffer(size_t bytes) : data(static_cast<char*>(std::aligned_alloc(1 << 21, bytes)), std::free) {
    tenon::bench::fill_for_copy(data.get(), bytes);
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
std::string differs(const Tensor& got, double tolerance, const std::function<double(size_t)>& wanted) {
  const std::vector<float> values = tenon::cast(got, DType::f32).to_host<float>();
  for (size_t i = 0; i < values.size(); i += values.size() / 997 + 1) {
    const double want = wanted(i);
    if (!(std::abs(values[i] - want) <= tolerance * (1e-3 + std::abs(want)))) {
      return fmt::format("element {} is {}, not {}", i, values[i], want);
    }
  }
  return "";
}

constexpr size_t kMaps = size_t{16} << 20;       // 64 MB of floats
constexpr size_t kRows = 16384, kColumns = 768;  // 48 MB
constexpr size_t kCells = kRows * kColumns;

// One op: its computation, and the bytes that a run reads and writes.
struct Work {
  std::string name;
  std::function<Tensor()> run;
  size_t read, written;
  double share;  // required share of the copy's speed
  double tolerance;
  std::function<double(size_t)> wanted;
};

class Table {
 public:
  explicit Table(const tenon::Device& device)
      : device_(device.spelling()), most_(std::min(2, omp_get_num_procs())), from_(2 * kMaps * 4), to_(2 * kMaps * 4) {}

  void add(const Work& work) {
    Row row{work.name, ours(work.run), peers(work), 1 / work.share,
            [work] { return differs(work.run(), work.tolerance, work.wanted); }};
    row.bytes = static_cast<double>(work.read + work.written);
    rows_.push_back(row);
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  Side ours(const std::function<Tensor()>& run) const {
    return {"tenon on " + device_, [run](int64_t n) {
              for (int64_t i = 0; i < n; ++i) keep(run());
            }};
  }

  // The copy of half as many bytes; an op that writes next to nothing is compared with a read.
  std::vector<Side> peers(const Work& work) const {
    const bool reads = work.written * 64 < work.read;
    const size_t bytes = reads ? work.read : (work.read + work.written) / 128 * 64;
    std::vector<Side> sides;
    for (int threads = 1; threads <= most_; ++threads) {
      sides.push_back({fmt::format("{}, {} threads", reads ? "read" : "copy", threads), [=, this](int64_t n) {
                         for (int64_t i = 0; i < n; ++i) {
                           if (reads) {
                             keep(tenon::bench::stream_read(from_.data.get(), bytes, threads));
                           } else {
                             tenon::bench::stream_copy(to_.data.get(), from_.data.get(), bytes, threads);
                           }
                         }
                       }});
    }
    return sides;
  }

  std::string device_;
  int most_;
  AlignedBuffer from_, to_;
  std::vector<Row> rows_;
};

// Element-wise ops, 64 MB.
void add_maps(Table* table, const tenon::Device& device) {
  const auto values = std::make_shared<std::vector<float>>(random_floats(kMaps));
  const Tensor x = Tensor::from<float>(*values, {static_cast<int64_t>(kMaps)}, device);
  const Tensor y = x.to(device);
  const auto map = [&](const std::string& name, double share, double tolerance, auto op, auto wanted) {
    table->add({name + ", 64 MB", [=] { return op(x); }, kMaps * 4, kMaps * 4, share, tolerance,
                [=](size_t i) { return wanted(static_cast<double>((*values)[i])); }});
  };
  map(
      "relu", 0.85, 0, [](const Tensor& t) { return tenon::relu(t); }, [](double v) { return std::max(v, 0.0); });
  table->add({"add, 64 MB", [=] { return tenon::add(x, y); }, kMaps * 8, kMaps * 4, 0.85, 0,
              [=](size_t i) { return 2.0f * (*values)[i]; }});
  map(
      "exp", 0.8, 1e-6, [](const Tensor& t) { return tenon::exp(t); }, [](double v) { return std::exp(v); });
  map(
      "tanh", 0.8, 1e-6, [](const Tensor& t) { return tenon::tanh(t); }, [](double v) { return std::tanh(v); });
  map(
      "gelu", 0.8, 1e-4, [](const Tensor& t) { return tenon::gelu(t); },
      [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); });
  map(
      "silu", 0.8, 1e-5, [](const Tensor& t) { return tenon::silu(t); },
      [](double v) { return v / (1 + std::exp(-v)); });
}

// Ops on a matrix of 16384 x 768.
void add_rows(Table* table, const tenon::Device& device) {
  const auto values = std::make_shared<std::vector<float>>(random_floats(kCells));
  const Tensor x = Tensor::from<float>(*values, {kRows, kColumns}, device);
  const Tensor scale = tenon::ones({kColumns}, DType::f32, device);
  const Tensor shift = tenon::zeros({kColumns}, DType::f32, device);
  const auto at = [values](size_t row, size_t column) {
    return static_cast<double>((*values)[row * kColumns + column]);
  };
  const auto over_row = [at](size_t i, auto term) {
    double sum = 0;
    for (size_t c = 0; c < kColumns; ++c) sum += term(at(i / kColumns, c));
    return sum;
  };
  const auto rows = [&](const std::string& name, double tolerance, std::function<Tensor()> run, auto wanted) {
    table->add({name + ", 16384 x 768", std::move(run), kCells * 4, kCells * 4, 0.85, tolerance, wanted});
  };
  rows(
      "softmax", 1e-5, [=] { return tenon::softmax(x, 1); },
      [=](size_t i) { return std::exp((*values)[i]) / over_row(i, [](double v) { return std::exp(v); }); });
  rows(
      "layer norm", 1e-4, [=] { return tenon::layer_norm(x, {kColumns}, scale, shift); },
      [=](size_t i) {
        const double mean = over_row(i, [](double v) { return v; }) / kColumns;
        const double variance = over_row(i, [mean](double v) { return (v - mean) * (v - mean); }) / kColumns;
        return ((*values)[i] - mean) / std::sqrt(variance + 1e-5);
      });
  rows(
      "RMS norm", 1e-4, [=] { return tenon::rms_norm(x, {kColumns}, scale, 1e-5); },
      [=](size_t i) {
        return (*values)[i] / std::sqrt(over_row(i, [](double v) { return v * v; }) / kColumns + 1e-5);
      });
  rows(
      "transpose", 0, [=] { return tenon::contiguous(tenon::transpose(x, 0, 1)); },
      [=](size_t i) { return at(i % kRows, i / kRows); });

  const auto reduction = [&](const std::string& name, double tolerance, size_t written, std::function<Tensor()> run,
                             std::function<double(size_t)> wanted) {
    table->add({name + ", 16384 x 768", std::move(run), kCells * 4, written * 4, 0.85, tolerance, std::move(wanted)});
  };
  reduction(
      "sum of rows", 1e-3, kRows, [=] { return tenon::sum(x, {1}); },
      [=](size_t i) { return over_row(i * kColumns, [](double v) { return v; }); });
  reduction(
      "greatest of rows", 0, kRows, [=] { return tenon::amax(x, {1}); },
      [=](size_t i) {
        double most = at(i, 0);
        for (size_t c = 1; c < kColumns; ++c) most = std::max(most, at(i, c));
        return most;
      });
  reduction(
      "sum of columns", 1e-3, kColumns, [=] { return tenon::sum(x, {0}); },
      [=](size_t i) {
        double sum = 0;
        for (size_t r = 0; r < kRows; ++r) sum += at(r, i);
        return sum;
      });
  reduction(
      "sum of all", 1e-3, 1, [=] { return tenon::sum(x); },
      [=](size_t) {
        double sum = 0;
        for (const float value : *values) sum += static_cast<double>(value);
        return sum;
      });

  // Casts, both ways.
  const Tensor bytes = tenon::cast(tenon::clamp(tenon::mul(x, 40.0), 0.0, 255.0), DType::u8);
  const auto from_bytes = std::make_shared<std::vector<uint8_t>>(bytes.to_host<uint8_t>());
  const auto casts = [&](const Tensor& from, DType to, double tolerance, std::function<double(size_t)> wanted) {
    table->add({fmt::format("cast {} to {}, 16384 x 768", tenon::dtype_name(from.dtype()), tenon::dtype_name(to)),
                [=] { return tenon::cast(from, to); }, kCells * tenon::dtype_size(from.dtype()),
                kCells * tenon::dtype_size(to), 0.85, tolerance, std::move(wanted)});
  };
  const auto same = [values](size_t i) { return static_cast<double>((*values)[i]); };
  casts(x, DType::f16, 1e-3, same);
  casts(tenon::cast(x, DType::f16), DType::f32, 1e-3, same);
  casts(x, DType::bf16, 1e-2, same);
  casts(tenon::cast(x, DType::bf16), DType::f32, 1e-2, same);
  casts(bytes, DType::f32, 0, [from_bytes](size_t i) { return static_cast<double>((*from_bytes)[i]); });
  casts(x, DType::f64, 0, same);
}

}  // namespace

int main(int argc, char** argv) {
  const tenon::Device device("cpu");
  Table table(device);
  add_maps(&table, device);
  add_rows(&table, device);
  return tenon::bench::run(table.rows(), argc, argv);
}
