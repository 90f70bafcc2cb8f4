// matmul against oneDNN called directly, whose primitive, memory objects and output buffer are made once.
#include <omp.h>

#include <cmath>
#include <dnnl.hpp>
#include <random>
#include <vector>

#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace {

using tenon::Tensor;
using tenon::bench::keep;
using tenon::bench::Row;
using tenon::bench::Side;

// One matmul through oneDNN's own API, on the OpenMP team of the calling thread.
class Direct {
 public:
  Direct(int64_t n, std::vector<float>& a, std::vector<float>& b)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_), c_(static_cast<size_t>(n * n)) {
    const dnnl::memory::desc square({n, n}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc desc(engine_, square, square, square);
#else
    const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(square, square, square), engine_);
#endif
    matmul_ = dnnl::matmul(desc);
    arguments_ = {{DNNL_ARG_SRC, dnnl::memory(square, engine_, a.data())},
                  {DNNL_ARG_WEIGHTS, dnnl::memory(square, engine_, b.data())},
                  {DNNL_ARG_DST, dnnl::memory(square, engine_, c_.data())}};
  }
  void run() { matmul_.execute(stream_, arguments_); }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  std::vector<float> c_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(-1.0f, 1.0f);
  std::vector<float> out(count);
  for (float& value : out) value = values(engine);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const tenon::Device device("cpu");
  const std::string version = fmt::format("{}.{}.{}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
  std::vector<Row> rows;
  for (int64_t n = 64; n <= 2048; n *= 2) {
    auto a = std::make_shared<std::vector<float>>(random_floats(static_cast<size_t>(n * n), 1));
    auto b = std::make_shared<std::vector<float>>(random_floats(static_cast<size_t>(n * n), 2));
    const Tensor ta = Tensor::from<float>(*a, {n, n}, device);
    const Tensor tb = Tensor::from<float>(*b, {n, n}, device);
    std::vector<Side> peers;
    for (int threads = 1; threads <= std::min(2, omp_get_num_procs()); ++threads) {
      auto direct = std::make_shared<Direct>(n, *a, *b);
      peers.push_back({fmt::format("oneDNN {}, {} threads", version, threads), [direct, a, b, threads](int64_t k) {
                         omp_set_num_threads(threads);
                         for (int64_t i = 0; i < k; ++i) direct->run();
                       }});
    }
    const auto check = [=]() -> std::string {
      const std::vector<float> c = tenon::matmul(ta, tb).to_host<float>();
      for (int64_t i = 0; i < n; i += n / 7 + 1) {
        double want = 0;
        for (int64_t k = 0; k < n; ++k) {
          want += static_cast<double>((*a)[static_cast<size_t>(i * n + k)]) * (*b)[static_cast<size_t>(k * n + i)];
        }
        if (std::abs(c[static_cast<size_t>(i * n + i)] - want) > 1e-4 * std::sqrt(static_cast<double>(n))) {
          return fmt::format("element [{}, {}] is wrong", i, i);
        }
      }
      return "";
    };
    rows.push_back({fmt::format("matmul f32, {} cubed", n),
                    {"tenon on " + device.spelling(),
                     [ta, tb](int64_t k) {
                       for (int64_t i = 0; i < k; ++i) keep(tenon::matmul(ta, tb));
                     }},
                    peers,
                    1.03,
                    check});
  }
  return tenon::bench::run(rows, argc, argv);
}
