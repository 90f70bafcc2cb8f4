// Kernels that the compiler makes from loop IR, compiled by the C compiler of this build or by $CC and run on two
// threads of OpenMP, against the best copy of as many bytes. The bar of a row is 1 / (the required share of the copy's
// speed). A row "in the nearest cache" repeats the kernel on a few rows: it measures the vector math without memory
// traffic, which bounds the row before it.
#include <dlfcn.h>
#include <omp.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdint>
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
#include "core/codegen/emit/emit.h"
#include "core/codegen/loop/interpret.h"
#include "core/codegen/tactics/tactics.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace {

using tenon::codegen::Kernel;
using tenon::codegen::KernelText;

constexpr int64_t kRows = 16384;
constexpr int64_t kColumns = 768;
constexpr int64_t kCells = kRows * kColumns;
constexpr int kThreads = 2;

struct AlignedBuffer {
  AlignedBuffer() : data(nullptr, std::free) {}
  explicit AlignedBuffer(size_t bytes)
      : data(static_cast<char*>(std::aligned_alloc(1 << 21, rounded(bytes))), std::free) {
    madvise(data.get(), rounded(bytes), MADV_HUGEPAGE);  // the cpu provider does so too
    tenon::bench::fill_for_copy(data.get(), rounded(bytes));
  }
  static size_t rounded(size_t bytes) { return (bytes + (size_t{1} << 21) - 1) >> 21 << 21; }
  float* floats() const { return reinterpret_cast<float*>(data.get()); }

  std::unique_ptr<char, decltype(&std::free)> data;
};

constexpr int64_t kParts = 64;  // blocks of 256 rows, for reductions and transpositions inside an item
constexpr int64_t kPartRows = kRows / kParts;

// A kernel whose only parameter is the number of rows or parts, ready to run.
class Compiled {
 public:
  explicit Compiled(const std::string& text) : kernel_(tenon::value_or_throw(tenon::codegen::parse_kernel(text))) {
    tenon::throw_if_error(tenon::codegen::schedule_for_cpu(&kernel_));
    const KernelText made = tenon::value_or_throw(tenon::codegen::emit_c(kernel_));
    for (AlignedBuffer& local : local_) local = AlignedBuffer(made.shared_bytes + 64);
    std::string folder = std::filesystem::temp_directory_path() / "tenon-bench-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("No folder for kernels could be made.");
    const std::string base = fmt::format("{}/{}", folder, kernel_.name);
    std::ofstream(fmt::format("{}.c", base)) << made.text;
    const char* chosen = std::getenv("CC");
    const std::string command = fmt::format(
        "{} -std=gnu11 -O2 -march=native -mprefer-vector-width=512 -ffp-contract=off -fno-math-errno"
        " -fno-trapping-math -fwrapv -fno-strict-aliasing -Wno-psabi -fPIC -shared -o {}.so {}.c -lm",
        chosen != nullptr ? chosen : TENON_CC, base, base);
    if (std::system(command.c_str()) != 0) throw std::runtime_error("A kernel does not compile.");
    void* library = dlopen(fmt::format("{}.so", base).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    std::filesystem::remove_all(folder);
    entry_ = reinterpret_cast<Entry*>(dlsym(library, made.entry.c_str()));
  }

  int64_t items(int64_t count) const {
    return tenon::value_or_throw(tenon::codegen::item_count(kernel_, std::vector<int64_t>{count}));
  }

  // Each thread takes one range of the items, as in the cpu provider.
  void run(void* const* buffers, int64_t count) {
    const int64_t all = items(count);
#pragma omp parallel num_threads(kThreads)
    {
      const int64_t t = omp_get_thread_num();
      entry_(buffers, &count, all * t / kThreads, all * (t + 1) / kThreads, local_[t].data.get());
    }
  }
  // Each thread computes `count` rows repeatedly, until both together have computed `rows`.
  void run_near(void* const* buffers, size_t buffer_count, int64_t count, int64_t rows) {
    const int64_t all = items(count);
#pragma omp parallel num_threads(kThreads)
    {
      const int64_t t = omp_get_thread_num();
      std::vector<void*> own(buffers, buffers + buffer_count);
      for (void*& buffer : own) buffer = static_cast<char*>(buffer) + t * (1 << 16);
      for (int64_t i = 0; i < rows / count / kThreads; ++i) {
        entry_(own.data(), &count, 0, all, local_[t].data.get());
      }
    }
  }

 private:
  using Entry = void(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local);

  Kernel kernel_;
  Entry* entry_ = nullptr;
  AlignedBuffer local_[kThreads];
};

struct Work {
  std::string name;
  std::string kernel;  // the kernel's text, without its name
  double share;        // required share of the copy's speed
  double tolerance;
  std::function<double(size_t)> wanted;
  int64_t count = kRows;    // the kernel's parameter
  double moved = 2;         // arrays of kCells elements that it reads and writes
  size_t written = kCells;  // elements written
  int64_t near_rows = 0;    // rows per repetition in the nearest cache; 0: no such row
};

const std::string kPerRow =
    "size n in [1, 1048576]\naxis i n\naxis r 768\nin x f32 768*n\nin z f32 768*n\nin m bool 768*n\n"
    "in w f32 768\nout y f32 768*n\n";
const std::string kPerPart = fmt::format("size n in [1, 4096]\naxis b n\naxis i {}\naxis r 768\nin x f32 {}*n\n",
                                         kPartRows, kPartRows* kColumns);

class Table {
 public:
  Table() {
    std::mt19937 engine(7);
    std::normal_distribution<float> values(0.0F, 1.0F);
    for (int64_t i = 0; i < kCells; ++i) x_.floats()[i] = values(engine);
    for (int64_t i = 0; i < kCells; ++i) z_.floats()[i] = values(engine);
    for (int64_t i = 0; i < kCells; ++i) m_.data.get()[i] = static_cast<char>(engine() % 10 != 0);
    for (int64_t i = 0; i < kColumns; ++i) w_.floats()[i] = 1.0F + 0.001F * static_cast<float>(i % 97);
  }

  double x(size_t i) const { return x_.floats()[i]; }
  double z(size_t i) const { return z_.floats()[i]; }
  double w(size_t i) const { return w_.floats()[i % kColumns]; }
  bool m(size_t i) const { return m_.data.get()[i] != 0; }

  void add(const Work& work) {
    const auto compiled = std::make_shared<Compiled>("kernel measured\n" + work.kernel);
    std::vector<void*> buffers{x_.data.get()};
    if (work.kernel.starts_with(kPerRow)) buffers = {x_.data.get(), z_.data.get(), m_.data.get(), w_.data.get()};
    buffers.push_back(y_.data.get());
    const auto run = [compiled, buffers, work] { compiled->run(buffers.data(), work.count); };
    const auto bytes = static_cast<size_t>(work.moved * kCells * 4);
    add_row(work.name, run, bytes, 1 / work.share);
    rows_.back().check = [this, run, work] {
      run();
      for (size_t i = 0; i < work.written; i += work.written / 499 + 1) {
        const double want = work.wanted(i);
        if (!(std::abs(y_.floats()[i] - want) <= work.tolerance * (1e-3 + std::abs(want)))) {
          return fmt::format("element {} is {}, not {}", i, y_.floats()[i], want);
        }
      }
      return std::string();
    };
    if (work.near_rows == 0) return;
    const auto near = [compiled, buffers, work] {
      compiled->run_near(buffers.data(), buffers.size(), work.near_rows, kRows);
    };
    add_row(work.name + " in the nearest cache", near, bytes, 0);
  }

  double over_row(size_t i, const std::function<double(size_t)>& term) const {
    double sum = 0;
    for (size_t c = 0; c < kColumns; ++c) sum += term(i / kColumns * kColumns + c);
    return sum;
  }
  // Sums over the rows of a part, or over all rows.
  double over_column(size_t i, size_t rows, const std::function<double(double)>& term) const {
    double sum = 0;
    const size_t first = i / kColumns / rows * rows * kColumns + i % kColumns;
    for (size_t row = 0; row < rows; ++row) sum += term(x(first + row * kColumns));
    return sum;
  }
  const std::vector<tenon::bench::Row>& rows() const { return rows_; }

 private:
  void add_row(const std::string& name, const std::function<void()>& run, size_t bytes, double bar) {
    tenon::bench::Row row{name, {"kernel of the compiler", [run](int64_t n) {
                                   for (int64_t i = 0; i < n; ++i) run();
                                 }}};
    // Moves to other bytes each time, since the same ones would be in a cache.
    const auto at = std::make_shared<size_t>(0);
    row.peers.push_back({fmt::format("copy, {} threads", kThreads), [this, bytes, at](int64_t n) {
                           const size_t half = bytes / 128 * 64;
                           for (int64_t i = 0; i < n; ++i) {
                             *at = *at + 2 * half > kCells * 8 ? 0 : *at + half;
                             tenon::bench::stream_copy(to_.data.get() + *at, from_.data.get() + *at, half, kThreads);
                           }
                         }});
    row.bar = bar;
    row.bytes = static_cast<double>(bytes);
    rows_.push_back(row);
  }

  AlignedBuffer x_{kCells * 4}, z_{kCells * 4}, m_{kCells}, w_{kColumns * 4 + (1 << 17)}, y_{kCells * 4};
  AlignedBuffer from_{kCells * 8}, to_{kCells * 8};
  std::vector<tenon::bench::Row> rows_;
};

double gelu(double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); }

void add_norms(Table* table) {
  table->add({"RMS norm",
              kPerRow + "s = sum f32 at i over r: square(x[768*i + r])\n"
                        "t = value f32 at i: rsqrt(add(div(s, 768:f32), 1e-05:f32))\n"
                        "u = store y[768*i + r] at i r: mul(mul(x[768*i + r], t), w[r])\n",
              0.85, 1e-4, [table](size_t i) {
                const double sum = table->over_row(i, [table](size_t k) { return table->x(k) * table->x(k); });
                return table->x(i) * table->w(i) / std::sqrt(sum / kColumns + 1e-5);
              }});
  table->add({"layer norm",
              kPerRow + "a = mean f32 at i over r: x[768*i + r]\n"
                        "d = value f32 at i r: sub(x[768*i + r], a)\n"
                        "q = mean f32 at i over r: square(d)\n"
                        "t = value f32 at i: rsqrt(add(q, 1e-05:f32))\n"
                        "u = store y[768*i + r] at i r: mul(mul(d, t), w[r])\n",
              0.85, 1e-4, [table](size_t i) {
                const double mean = table->over_row(i, [table](size_t k) { return table->x(k); }) / kColumns;
                const double sum =
                    table->over_row(i, [table, mean](size_t k) { return (table->x(k) - mean) * (table->x(k) - mean); });
                return (table->x(i) - mean) * table->w(i) / std::sqrt(sum / kColumns + 1e-5);
              }});
  table->add({"softmax",
              kPerRow + "a = max f32 at i over r: x[768*i + r]\n"
                        "e = value f32 at i r: exp(sub(x[768*i + r], a))\n"
                        "s = sum f32 at i over r: e\n"
                        "u = store y[768*i + r] at i r: div(e, s)\n",
              0.7, 1e-5,
              [table](size_t i) {
                return std::exp(table->x(i)) / table->over_row(i, [table](size_t k) { return std::exp(table->x(k)); });
              },
              kRows, 2, kCells, 4});
  table->add({"masked softmax",
              kPerRow + "v = value f32 at i r: where(m[768*i + r], x[768*i + r], -inf:f32)\n"
                        "a = max f32 at i over r: v\n"
                        "e = value f32 at i r: exp(sub(v, a))\n"
                        "s = sum f32 at i over r: e\n"
                        "u = store y[768*i + r] at i r: div(e, s)\n",
              0.7, 1e-5,
              [table](size_t i) {
                const auto term = [table](size_t k) { return table->m(k) ? std::exp(table->x(k)) : 0.0; };
                return term(i) / table->over_row(i, term);
              },
              kRows, 2.25, kCells, 4});
}

void add_maps(Table* table) {
  table->add({"GELU", kPerRow + "u = store y[768*i + r] at i r: gelu(x[768*i + r])\n", 0.7, 1e-3,
              [table](size_t i) { return gelu(table->x(i)); }, kRows, 2, kCells, 4});
  table->add({"tanh GELU of a bias", kPerRow + "u = store y[768*i + r] at i r: gelu_tanh(add(x[768*i + r], w[r]))\n",
              0.7, 1e-4,
              [table](size_t i) {
                const double v = table->x(i) + table->w(i);
                return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
              },
              kRows, 2, kCells, 4});
  table->add({"SwiGLU", kPerRow + "u = store y[768*i + r] at i r: mul(silu(x[768*i + r]), z[768*i + r])\n", 0.7, 1e-4,
              [table](size_t i) { return table->x(i) / (1 + std::exp(-table->x(i))) * table->z(i); }, kRows, 3, kCells,
              4});
  table->add({"bias + GELU + residual",
              kPerRow + "u = store y[768*i + r] at i r: add(gelu(add(x[768*i + r], w[r])), z[768*i + r])\n", 0.7, 1e-3,
              [table](size_t i) { return gelu(table->x(i) + table->w(i)) + table->z(i); }, kRows, 3, kCells, 4});
}

void add_columns(Table* table) {
  const std::string at = fmt::format("x[{}*b + 768*i + r]", kPartRows * kColumns);
  const std::string to = fmt::format("y[{}*b + 768*i + r]", kPartRows * kColumns);
  table->add({"column sums",
              "size n in [1, 1048576]\naxis i n\naxis r 768\nin x f32 768*n\nout y f32 768\n"
              "s = sum f32 at r over i: x[768*i + r]\nu = store y[r] at r: s\n",
              0.6, 1e-3, [table](size_t i) { return table->over_column(i, kRows, [](double v) { return v; }); }, kRows,
              1, kColumns});
  table->add({"column sums inside an item",
              fmt::format("{}out y f32 768*n\ns = sum f32 at b r over i: {}\nu = store y[768*b + r] at b r: s\n",
                          kPerPart, at),
              0.6, 1e-3,
              [table](size_t i) {
                const size_t first = i / kColumns * kPartRows * kColumns + i % kColumns;
                return table->over_column(first, kPartRows, [](double v) { return v; });
              },
              kParts, 1, kParts * kColumns});
  table->add({"column norm inside an item",
              fmt::format("{}out y f32 {}*n\na = mean f32 at b r over i: {}\nd = value f32 at b i r: sub({}, a)\n"
                          "q = mean f32 at b r over i: square(d)\nt = value f32 at b r: rsqrt(add(q, 1e-05:f32))\n"
                          "u = store {} at b i r: mul(d, t)\n",
                          kPerPart, kPartRows * kColumns, at, at, to),
              0.6, 1e-4,
              [table](size_t i) {
                const double mean = table->over_column(i, kPartRows, [](double v) { return v; }) / kPartRows;
                const double sum =
                    table->over_column(i, kPartRows, [mean](double v) { return (v - mean) * (v - mean); });
                return (table->x(i) - mean) / std::sqrt(sum / kPartRows + 1e-5);
              },
              kParts});
  table->add({"column softmax inside an item",
              fmt::format("{}out y f32 {}*n\na = max f32 at b r over i: {}\ne = value f32 at b i r: exp(sub({}, a))\n"
                          "s = sum f32 at b r over i: e\nu = store {} at b i r: div(e, s)\n",
                          kPerPart, kPartRows * kColumns, at, at, to),
              0.6, 1e-5,
              [table](size_t i) {
                return std::exp(table->x(i)) / table->over_column(i, kPartRows, [](double v) { return std::exp(v); });
              },
              kParts});
  table->add({"transpose of a ReLU",
              "size n in [1, 1048576]\naxis i n\naxis r 768\nin x f32 768*n\nout y f32 768*n\n"
              "u = store y[r*n + i] at i r: relu(x[768*i + r])\n",
              0.6, 0, [table](size_t i) { return std::max(0.0, table->x(i % kRows * kColumns + i / kRows)); }});
  table->add({"transpose of a ReLU inside an item",
              kPerPart + fmt::format("out y f32 {0}*n\nu = store y[{0}*b + {1}*r + i] at b i r: relu({2})\n",
                                     kPartRows * kColumns, kPartRows, at),
              0.6, 0,
              [table](size_t i) {
                const size_t part = i / (kPartRows * kColumns), rest = i % (kPartRows * kColumns);
                return std::max(0.0, table->x((part * kPartRows + rest % kPartRows) * kColumns + rest / kPartRows));
              },
              kParts});
}

}  // namespace

int main(int argc, char** argv) {
  Table table;
  add_norms(&table);
  add_maps(&table);
  add_columns(&table);
  return tenon::bench::run(table.rows(), argc, argv);
}
