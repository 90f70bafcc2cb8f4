// Kernels that the compiler makes from loop IR, compiled by the C compiler of this build and run on threads of OpenMP,
// against the best copy of as many bytes. The bar of a row is 1 / (the wanted share of the copy's speed).
#include <dlfcn.h>
#include <omp.h>
#include <stdlib.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "benchmarks/peers/stream_copy.h"
#include "benchmarks/report/report.h"
#include "core/compiler/emit/emit.h"
#include "core/compiler/loop/interpret.h"
#include "core/compiler/tactics/tactics.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace {

using tenon::compiler::Kernel;
using tenon::compiler::KernelText;

constexpr int64_t kRows = 16384;
constexpr int64_t kColumns = 768;
constexpr int64_t kCells = kRows * kColumns;

struct AlignedBuffer {
  explicit AlignedBuffer(size_t bytes)
      : data(static_cast<char*>(std::aligned_alloc(1 << 21, rounded(bytes))), std::free) {
    for (size_t i = 0; i < bytes; i += 4096) data.get()[i] = static_cast<char>(i >> 12);
  }
  static size_t rounded(size_t bytes) { return (bytes + (size_t{1} << 21) - 1) >> 21 << 21; }
  float* floats() const { return reinterpret_cast<float*>(data.get()); }

  std::unique_ptr<char, decltype(&std::free)> data;
};

// A kernel of two inputs x and w and an output y, ready to run.
class Compiled {
 public:
  explicit Compiled(const std::string& text) {
    Kernel kernel = tenon::value_or_throw(tenon::compiler::parse_kernel(text));
    tenon::throw_if_error(tenon::compiler::schedule_for_cpu(&kernel));
    const KernelText made = tenon::value_or_throw(tenon::compiler::emit_c(kernel));
    items_ = tenon::value_or_throw(tenon::compiler::item_count(kernel, parameters_));
    local_bytes_ = (made.shared_bytes + 63) / 64 * 64 + 64;
    std::string folder = std::filesystem::temp_directory_path() / "tenon-bench-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("No folder for kernels could be made.");
    const std::string base = fmt::format("{}/{}", folder, kernel.name);
    std::ofstream(fmt::format("{}.c", base)) << made.text;
    const std::string command = fmt::format(
        "{} -std=gnu11 -O2 -march=native -mprefer-vector-width=512 -ffp-contract=off -fno-math-errno"
        " -fno-trapping-math -fwrapv -fno-strict-aliasing -Wno-psabi -fPIC -shared -o {}.so {}.c -lm",
        TENON_CC, base, base);
    if (std::system(command.c_str()) != 0) throw std::runtime_error("A kernel does not compile.");
    void* library = dlopen(fmt::format("{}.so", base).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    std::filesystem::remove_all(folder);
    entry_ = reinterpret_cast<Entry*>(dlsym(library, made.entry.c_str()));
  }

  void run(void* const* buffers, int threads) const {
#pragma omp parallel num_threads(threads)
    {
      const int64_t chunk = std::max<int64_t>(1, items_ / (16 * threads));
      alignas(64) static thread_local char local[1 << 17];
      if (local_bytes_ > static_cast<int64_t>(sizeof(local))) std::abort();
#pragma omp for schedule(dynamic)
      for (int64_t begin = 0; begin < items_; begin += chunk) {
        entry_(buffers, parameters_.data(), begin, std::min(items_, begin + chunk), local);
      }
    }
  }

 private:
  using Entry = void(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local);

  std::vector<int64_t> parameters_{kRows};
  Entry* entry_ = nullptr;
  int64_t items_ = 0;
  int64_t local_bytes_ = 0;
};

struct Work {
  std::string name;
  std::string stages;
  double share;
  double tolerance;
  std::function<double(size_t)> wanted;
  size_t written = kCells;
};

class Table {
 public:
  Table() : x_(kCells * 4), w_(kCells * 4), y_(kCells * 4), from_(kCells * 8), to_(kCells * 8) {
    std::mt19937 engine(7);
    std::normal_distribution<float> values(0.0F, 1.0F);
    for (int64_t i = 0; i < kCells; ++i) x_.floats()[i] = values(engine);
    for (int64_t i = 0; i < kCells; ++i) w_.floats()[i] = 1.0F + 0.001F * static_cast<float>(i % 97);
  }

  double x(size_t i) const { return x_.floats()[i]; }
  double w(size_t i) const { return w_.floats()[i % kColumns]; }

  void add(const Work& work) {
    const auto compiled = std::make_shared<Compiled>(
        fmt::format("kernel measured\nsize n in [1, 1048576]\naxis i n\naxis r 768\nin x f32 768*n\nin w f32 768\n"
                    "out y f32 {}\n{}",
                    work.written == kCells ? "768*n" : "768", work.stages));
    const int threads = std::min(2, omp_get_num_procs());
    const auto run = [this, compiled, threads] {
      void* const buffers[] = {x_.data.get(), w_.data.get(), y_.data.get()};
      compiled->run(buffers, threads);
    };
    tenon::bench::Row row{fmt::format("{}, 16384 x 768", work.name), {"kernel of the compiler", [run](int64_t n) {
                                                                        for (int64_t i = 0; i < n; ++i) run();
                                                                      }}};
    const size_t bytes = (kCells + work.written) * 4;
    for (int count = 1; count <= threads; ++count) {
      row.peers.push_back({fmt::format("copy, {} threads", count), [this, bytes, count](int64_t n) {
                             for (int64_t i = 0; i < n; ++i) {
                               tenon::bench::stream_copy(to_.data.get(), from_.data.get(), bytes / 128 * 64, count);
                             }
                           }});
    }
    row.bar = 1 / work.share;
    row.bytes = static_cast<double>(bytes);
    row.check = [this, run, work] {
      run();
      for (size_t i = 0; i < work.written; i += work.written / 499 + 1) {
        const double want = work.wanted(i);
        if (!(std::abs(y_.floats()[i] - want) <= work.tolerance * (1e-3 + std::abs(want)))) {
          return fmt::format("element {} is {}, not {}", i, y_.floats()[i], want);
        }
      }
      return std::string();
    };
    rows_.push_back(row);
  }

  double over_row(size_t i, const std::function<double(double)>& term) const {
    double sum = 0;
    for (size_t c = 0; c < kColumns; ++c) sum += term(x(i / kColumns * kColumns + c));
    return sum;
  }
  const std::vector<tenon::bench::Row>& rows() const { return rows_; }

 private:
  AlignedBuffer x_, w_, y_, from_, to_;
  std::vector<tenon::bench::Row> rows_;
};

void add_norms(Table* table) {
  table->add({"RMS norm",
              "s = sum f32 at i over r: square(x[768*i + r])\n"
              "t = value f32 at i: rsqrt(add(div(s, 768:f32), 1e-05:f32))\n"
              "u = store y[768*i + r] at i r: mul(mul(x[768*i + r], t), w[r])\n",
              0.85, 1e-4, [table](size_t i) {
                const double sum = table->over_row(i, [](double v) { return v * v; });
                return table->x(i) * table->w(i) / std::sqrt(sum / kColumns + 1e-5);
              }});
  table->add({"layer norm",
              "a = mean f32 at i over r: x[768*i + r]\n"
              "d = value f32 at i r: sub(x[768*i + r], a)\n"
              "q = mean f32 at i over r: square(d)\n"
              "t = value f32 at i: rsqrt(add(q, 1e-05:f32))\n"
              "u = store y[768*i + r] at i r: mul(mul(d, t), w[r])\n",
              0.85, 1e-4, [table](size_t i) {
                const double mean = table->over_row(i, [](double v) { return v; }) / kColumns;
                const double sum = table->over_row(i, [mean](double v) { return (v - mean) * (v - mean); });
                return (table->x(i) - mean) * table->w(i) / std::sqrt(sum / kColumns + 1e-5);
              }});
  table->add({"softmax",
              "m = max f32 at i over r: x[768*i + r]\n"
              "e = value f32 at i r: exp(sub(x[768*i + r], m))\n"
              "s = sum f32 at i over r: e\n"
              "t = value f32 at i: reciprocal(s)\n"
              "u = store y[768*i + r] at i r: mul(e, t)\n",
              0.7, 1e-5, [table](size_t i) {
                return std::exp(table->x(i)) / table->over_row(i, [](double v) { return std::exp(v); });
              }});
}

void add_maps(Table* table) {
  table->add({"GELU", "u = store y[768*i + r] at i r: gelu(x[768*i + r])\n", 0.7, 1e-3,
              [table](size_t i) { return 0.5 * table->x(i) * (1 + std::erf(table->x(i) / std::sqrt(2.0))); }});
  table->add({"tanh GELU of a bias", "u = store y[768*i + r] at i r: gelu_tanh(add(x[768*i + r], w[r]))\n", 0.7, 1e-4,
              [table](size_t i) {
                const double v = table->x(i) + table->w(i);
                return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
              }});
  table->add({"column sums", "s = sum f32 at r over i: x[768*i + r]\nu = store y[r] at r: s\n", 0.6, 1e-3,
              [table](size_t i) {
                double sum = 0;
                for (size_t row = 0; row < kRows; ++row) sum += table->x(row * kColumns + i);
                return sum;
              },
              kColumns});
  table->add({"transpose of a ReLU", "u = store y[r*n + i] at i r: relu(x[768*i + r])\n", 0.6, 0,
              [table](size_t i) { return std::max(0.0, table->x(i % kRows * kColumns + i / kRows)); }});
}

}  // namespace

int main(int argc, char** argv) {
  Table table;
  add_norms(&table);
  add_maps(&table);
  return tenon::bench::run(table.rows(), argc, argv);
}
