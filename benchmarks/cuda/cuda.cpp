// Compares the cuda provider with the best copy kernel and with direct calls of cuBLASLt, on one GPU in one process. If
// the vulkan provider finds the same GPU, compares it too. A batch of ops is submitted, then waited for once. Without a
// GPU the program says so and measures nothing.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "benchmarks/cuda/ops.h"
#include "benchmarks/cuda/peer.h"
#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/provider/float_formats.h"

namespace {

using tenon::DType;
using tenon::Tensor;
using tenon::bench::DirectMatmul;
using tenon::bench::Gpu;
using tenon::bench::keep;
using tenon::bench::Row;
using tenon::bench::Side;

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kDrawn = int64_t{1} << 20;  // random values, repeated in larger tensors

// Returns the same floats at every call, so that a check can draw the values of a tensor again.
std::vector<float> random_floats(size_t count) {
  std::mt19937 engine(7);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> made(count);
  for (float& value : made) value = values(engine);
  return made;
}

// Draws kDrawn values on the device and repeats them to fill `dims`, so that the host need not create a gigabyte.
Tensor random_tensor(const std::vector<int64_t>& dims, tenon::Device device) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  const int64_t drawn = std::min<int64_t>(count, kDrawn);
  const Tensor seed = Tensor::from<float>(random_floats(static_cast<size_t>(drawn)), {1, drawn}, device);
  return tenon::view(tenon::clone(tenon::broadcast_to(seed, {count / drawn, drawn})), dims);
}

template <class Op>
Side ours(tenon::Device device, Op op) {
  return {"tenon on " + device.spelling(), [device, op](int64_t n) {
            for (int64_t i = 0; i < n; ++i) keep(op());
            device.synchronize();
          }};
}

// Copies of `bytes` (read once and written once) with every kernel of copy.cu.
std::vector<Side> copies(Gpu* gpu, uint64_t bytes) {
  static CUdeviceptr from = gpu->allocate(kGiB);
  static CUdeviceptr to = gpu->allocate(kGiB);
  gpu->fill(from, 0x3b, bytes);
  gpu->wait();
  std::vector<Side> sides;
  for (const int steps : {1, 2, 4}) {
    sides.push_back({fmt::format("copy kernel, {} steps", steps), [=](int64_t n) {
                       for (int64_t i = 0; i < n; ++i) gpu->copy(to, from, bytes, steps);
                       gpu->wait();
                     }});
  }
  return sides;
}

// Compares some elements of a row-major result with `wanted(i)`.
template <class Wanted>
std::string differs(const Tensor& got, int64_t first, int64_t count, double tolerance, Wanted wanted) {
  const std::vector<float> values = got.to_host<float>();
  for (int64_t i = first; i < first + count; ++i) {
    const double want = wanted(i);
    if (!(std::abs(values[static_cast<size_t>(i)] - want) <= tolerance * (1e-3 + std::abs(want)))) {
      return fmt::format("element {} is {}, not {}", i, values[static_cast<size_t>(i)], want);
    }
  }
  return "";
}

// The share of the best copy's speed that an op must reach.
struct Bars {
  double maps;
  double rows;
};

void add_maps(Gpu* gpu, tenon::Device device, const Bars& bars, std::vector<Row>* rows) {
  const Tensor x = random_tensor({kGiB / 4}, device);
  const Tensor y = random_tensor({kGiB / 4}, device);
  const std::vector<float> drawn = random_floats(kDrawn);
  const auto value = [drawn](int64_t i) { return static_cast<double>(drawn[static_cast<size_t>(i) % drawn.size()]); };
  const auto relu = [x] { return tenon::relu(x); };
  const auto exp = [x] { return tenon::exp(x); };
  const auto add = [x, y] { return tenon::add(x, y); };
  const auto copy = [x] { return tenon::clone(x); };
  rows->push_back({"copy, 1 GiB", ours(device, copy), copies(gpu, kGiB), 1 / bars.maps,
                   [=] { return differs(copy(), 12345, 999, 0, value); }, 2.0 * kGiB});
  rows->push_back({"relu, 1 GiB", ours(device, relu), copies(gpu, kGiB), 1 / bars.maps,
                   [=] { return differs(relu(), 12345, 999, 0, [=](int64_t i) { return std::max(value(i), 0.0); }); },
                   2.0 * kGiB});
  rows->push_back({"exp, 1 GiB", ours(device, exp), copies(gpu, kGiB), 1 / bars.maps,
                   [=] { return differs(exp(), 12345, 999, 1e-6, [=](int64_t i) { return std::exp(value(i)); }); },
                   2.0 * kGiB});
  rows->push_back({"add, 1 GiB (reads twice)", ours(device, add), copies(gpu, kGiB), 1.5 / bars.maps,
                   [=] { return differs(add(), 12345, 999, 1e-6, [=](int64_t i) { return 2 * value(i); }); },
                   3.0 * kGiB});
}

void add_rows(Gpu* gpu, tenon::Device device, const Bars& bars, int64_t length, std::vector<Row>* rows) {
  const int64_t count = kGiB / 4 / length;
  const Tensor x = random_tensor({count, length}, device);
  const std::string size = fmt::format("{} x {}", count, length);
  const std::vector<float> drawn = random_floats(kDrawn);
  const auto row_of = [drawn, length](int64_t i) {
    return &drawn[static_cast<size_t>(i / length * length) % drawn.size()];
  };
  const auto softmax = [x] { return tenon::softmax(x, -1); };
  const auto sum = [x] { return tenon::sum(x, {-1}); };
  const auto softmax_wanted = [=](int64_t i) {
    double total = 0;
    for (int64_t c = 0; c < length; ++c) total += std::exp(static_cast<double>(row_of(i)[c]));
    return std::exp(static_cast<double>(row_of(i)[i % length])) / total;
  };
  const auto sum_wanted = [=](int64_t i) {
    double total = 0;
    for (int64_t c = 0; c < length; ++c) total += row_of(i * length)[c];
    return total;
  };
  rows->push_back({"softmax, " + size, ours(device, softmax), copies(gpu, kGiB), 1 / bars.rows,
                   [=] { return differs(softmax(), 3 * length + 5, 50, 1e-4, softmax_wanted); }, 2.0 * kGiB});
  rows->push_back({"row sum, " + size, ours(device, sum), copies(gpu, kGiB), 0.5 / bars.rows,
                   [=] { return differs(sum(), 3, 50, 1e-3, sum_wanted); }, 1.0 * kGiB});
}

// The values of random_tensor in cuBLASLt's type.
std::vector<unsigned char> pattern_of(cudaDataType_t type) {
  const std::vector<float> drawn = random_floats(kDrawn);
  const size_t size = type == CUDA_R_32F ? 4 : 2;
  std::vector<unsigned char> pattern(drawn.size() * size);
  for (size_t i = 0; i < drawn.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &drawn[i], sizeof bits);
    if (type == CUDA_R_16BF) bits >>= 16;
    if (type == CUDA_R_16F) bits = tenon::provider::F16::from_f32(drawn[i]);
    std::memcpy(&pattern[i * size], &bits, size);
  }
  return pattern;
}

// The peer for a product of two n by n matrices. Empty, with a message, if cuBLASLt cannot be called.
std::vector<Side> called_directly(Gpu* gpu, cudaDataType_t type, int64_t n, const std::vector<unsigned char>& pattern) {
  auto direct = std::make_shared<DirectMatmul>(gpu, type, n, pattern);
  if (!direct->failure().empty()) {
    std::printf("a peer is missing: %s\n", direct->failure().c_str());
    return {};
  }
  return {{"cuBLASLt called directly", [direct, gpu](int64_t k) {
             for (int64_t i = 0; i < k; ++i) direct->run();
             gpu->wait();
           }}};
}

void add_matmuls(Gpu* gpu, tenon::Device device, std::vector<Row>* rows) {
  const struct {
    const char* name;
    DType dtype;
    cudaDataType_t type;
    double tolerance;
  } types[] = {{"bf16", DType::bf16, CUDA_R_16BF, 1e-2},
               {"f16", DType::f16, CUDA_R_16F, 2e-3},
               {"f32", DType::f32, CUDA_R_32F, 1e-4}};
  for (const auto& type : types) {
    const std::vector<unsigned char> pattern = pattern_of(type.type);
    for (int64_t n = 1024; n <= 8192; n *= 2) {
      const Tensor a = tenon::cast(random_tensor({n, n}, device), type.dtype);
      const Tensor b = tenon::cast(random_tensor({n, n}, device), type.dtype);
      const auto matmul = [a, b] { return tenon::matmul(a, b); };
      const auto check = [=]() -> std::string {
        const Tensor got = tenon::cast(matmul(), DType::f32);
        const std::vector<float> row = tenon::cast(a, DType::f32).to_host<float>();
        const std::vector<float> column = tenon::cast(b, DType::f32).to_host<float>();
        double want = 0;
        for (int64_t k = 0; k < n; ++k) {
          want += static_cast<double>(row[static_cast<size_t>(5 * n + k)]) * column[static_cast<size_t>(k * n + 9)];
        }
        const double found = got.to_host<float>()[static_cast<size_t>(5 * n + 9)];
        const double limit = type.tolerance * std::sqrt(static_cast<double>(n));
        return std::abs(found - want) <= limit ? "" : fmt::format("element (5, 9) is {}, not {}", found, want);
      };
      rows->push_back({fmt::format("matmul {}, {} cubed", type.name, n), ours(device, matmul),
                       called_directly(gpu, type.type, n, pattern), 1.02, check});
    }
  }
}

// Host time per op: a batch is submitted, and all its ops share the wait at the end.
void add_tiny(tenon::Device device, std::vector<Row>* rows) {
  const Tensor x = Tensor::from<float>(std::vector<float>{-1.5F, 2.25F, -0.125F, 3.0F}, {4}, device);
  const auto relu = [x] { return tenon::relu(x); };
  const auto add = [x] { return tenon::add(x, x); };
  rows->push_back({"relu, 4 floats, submitted", ours(device, relu), {}});
  rows->push_back({"add, 4 floats, submitted", ours(device, add), {}});
}

// The vulkan device for the same GPU, found by its name; none if there is none.
tenon::Device on_vulkan(const tenon::Device& cuda) {
  for (const char* spelling : {"vulkan:0", "vulkan:1", "vulkan:2"}) {
    try {
      const tenon::Device device(spelling);
      if (device.name() == cuda.name()) return device;
    } catch (const tenon::Error&) {
      break;
    }
  }
  return {};
}

// A family of rows keeps its tensors only while it runs. If a family cannot be created, the program prints the reason
// and runs the others.
bool measure(const std::function<void(std::vector<Row>*)>& add, tenon::bench::Report* report) try {
  std::vector<Row> rows;
  add(&rows);
  report->run(rows);
  return true;
} catch (const tenon::Error& error) {
  std::printf("rows are missing: %s\n", error.what());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  tenon::bench::Report report(&argc, argv);
  std::string why_not;
  const std::unique_ptr<Gpu> owned = Gpu::open(&why_not);
  if (owned == nullptr) {
    std::printf("skipped: no CUDA device (%s)\n", why_not.c_str());
    return 0;
  }
  Gpu* gpu = owned.get();
  const tenon::Device cuda("cuda:0");
  std::printf("%s\n", cuda.name().c_str());
  bool complete = true;
  const auto memory_bound = [&](const tenon::Device& device, const Bars& bars) {
    complete &= measure([&](auto* rows) { add_maps(gpu, device, bars, rows); }, &report);
    for (const int64_t length : {1024, 2048, 4096, 8192, 16384}) {
      complete &= measure([&](auto* rows) { add_rows(gpu, device, bars, length, rows); }, &report);
    }
  };
  memory_bound(cuda, {0.95, 0.85});
  complete &= measure([&](auto* rows) { add_matmuls(gpu, cuda, rows); }, &report);
  complete &= measure([&](auto* rows) { add_tiny(cuda, rows); }, &report);
  tenon::bench::run_ops(cuda, &report);
  if (const tenon::Device vulkan = on_vulkan(cuda)) {
    memory_bound(vulkan, {0.9, 0.75});
  } else {
    std::printf("the vulkan provider has no device of that name here: its rows are left out\n");
  }
  return complete ? report.status() : 1;
}
