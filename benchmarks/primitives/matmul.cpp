// matmul against direct calls of oneDNN, whose primitive, memory objects and output buffer are made once; and one row
// times constant weights against the best read of their bytes.
#include <omp.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "benchmarks/peers/stream_copy.h"
#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/compile/compile.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace {

using dnnl::memory;
using tenon::Dims;
using tenon::DType;
using tenon::Tensor;
using tenon::bench::keep;
using tenon::bench::Row;
using tenon::bench::Side;

struct Product {
  int64_t batch, m, k, n;
};

// One product of `batch` pairs of matrices through oneDNN's own API, on the OpenMP team of the calling thread.
// `packed`: b is in oneDNN's preferred layout.
class Direct {
 public:
  Direct(const Product& p, memory::data_type dtype, std::vector<float>& a, std::vector<float>& b, bool packed)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using tag = memory::format_tag;
    // A batch axis, even of length 1, would keep oneDNN from packing.
    const bool is_batch = p.batch > 1;
    const memory::dims shapes[] = {is_batch ? memory::dims{p.batch, p.m, p.k} : memory::dims{p.m, p.k},
                                   is_batch ? memory::dims{p.batch, p.k, p.n} : memory::dims{p.k, p.n},
                                   is_batch ? memory::dims{p.batch, p.m, p.n} : memory::dims{p.m, p.n}};
    row_major_ = is_batch ? tag::abc : tag::ab;
    const memory::desc first(shapes[0], dtype, row_major_), last(shapes[2], dtype, row_major_);
    const memory::desc second(shapes[1], dtype, packed ? tag::any : row_major_);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc desc(engine_, first, second, last);
#else
    const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(first, second, last), engine_);
#endif
    matmul_ = dnnl::matmul(desc);
    arguments_ = {{DNNL_ARG_SRC, laid_out(a, shapes[0], first)},
                  {DNNL_ARG_WEIGHTS, laid_out(b, shapes[1], desc.weights_desc())},
                  {DNNL_ARG_DST, memory(last, engine_)}};
  }
  void run() { matmul_.execute(stream_, arguments_); }

 private:
  memory laid_out(std::vector<float>& values, const memory::dims& dims, const memory::desc& wanted) {
    memory from({dims, memory::data_type::f32, row_major_}, engine_, values.data());
    memory to(wanted, engine_);
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
    return to;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  memory::format_tag row_major_ = memory::format_tag::undef;
  dnnl::matmul matmul_;
  std::unordered_map<int, memory> arguments_;
};

std::vector<float> random_floats(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(-1.0f, 1.0f);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) value = values(engine);
  return out;
}

int most_threads() { return std::min(2, omp_get_num_procs()); }

// Calls Tenon `times` times. `program` must outlive the function.
template <class Program>
Side ours(const tenon::Device& device, Program program) {
  return {"tenon on " + device.spelling(), [program](int64_t n) {
            for (int64_t i = 0; i < n; ++i) keep(program());
          }};
}

// tenon::matmul against oneDNN, with b changing from call to call; or a compiled function with a constant b.
Row product(const tenon::Device& device, const Product& p, DType dtype, bool constant) {
  const auto a = std::make_shared<std::vector<float>>(random_floats(p.batch * p.m * p.k, 1));
  const auto b = std::make_shared<std::vector<float>>(random_floats(p.batch * p.k * p.n, 2));
  const auto tensor = [&](const std::vector<float>& values, int64_t rows, int64_t columns) {
    const Tensor whole = Tensor::from<float>(values, {p.batch, rows, columns}, device);
    return tenon::cast(p.batch == 1 ? tenon::squeeze(whole, 0) : whole, dtype);
  };
  const Tensor ta = tensor(*a, p.m, p.k), tb = tensor(*b, p.k, p.n);
  tenon::CompileOptions options;
  options.frozen = {tb};
  const auto compiled = tenon::compile([tb](const Tensor& x) { return tenon::matmul(x, tb); }, options);
  const std::function<Tensor()> run = constant ? std::function<Tensor()>([=] { return compiled(ta); })
                                               : std::function<Tensor()>([=] { return tenon::matmul(ta, tb); });
  std::vector<Side> peers;
  for (int threads = 1; threads <= most_threads(); ++threads) {
    const auto direct = std::make_shared<Direct>(
        p, dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32, *a, *b, constant);
    peers.push_back({fmt::format("oneDNN {}.{}.{}, {} threads", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR,
                                 DNNL_VERSION_PATCH, threads),
                     [direct, a, b, threads](int64_t n) {
                       omp_set_num_threads(threads);
                       for (int64_t i = 0; i < n; ++i) direct->run();
                     }});
  }
  const double exactness = dtype == DType::bf16 ? 2e-2 : 1e-4;
  const auto check = [=]() -> std::string {
    const std::vector<float> c = tenon::cast(run(), DType::f32).to_host<float>();
    for (int64_t i = 0; i < p.m; i += p.m / 7 + 1) {
      const int64_t j = i * 31 % p.n;
      double want = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        want += static_cast<double>((*a)[static_cast<size_t>(i * p.k + k)]) *
                static_cast<double>((*b)[static_cast<size_t>(k * p.n + j)]);
      }
      if (std::abs(c[static_cast<size_t>(i * p.n + j)] - want) > exactness * std::sqrt(static_cast<double>(p.k)))
        return fmt::format("element [{}, {}] is {}, not {}", i, j, c[static_cast<size_t>(i * p.n + j)], want);
    }
    return "";
  };
  const double work = static_cast<double>(p.batch * p.m) * static_cast<double>(p.k * p.n);
  return {fmt::format("matmul {}, {}{} x {} x {}{}", tenon::dtype_name(dtype),
                      p.batch == 1 ? "" : fmt::format("{} of ", p.batch), p.m, p.k, p.n, constant ? ", constant" : ""),
          ours(device, run), peers, work > 2e7 ? 1.02 : 1.1, check};
}

// One row times constant weights, against a read of the bytes of weights and scales. Weights have `dtype`; integers
// have one scale per column, i4 one scale per 32 rows of a column.
Row decoding(const tenon::Device& device, int64_t k, int64_t n, DType dtype) {
  const auto a = std::make_shared<std::vector<float>>(random_floats(k, 3));
  const Tensor x = Tensor::from<float>(*a, {1, k}, device);
  const Tensor real = Tensor::from<float>(random_floats(k * n, 4), {k, n}, device);
  const bool quantised = dtype != DType::f32 && dtype != DType::bf16;
  const int64_t block = dtype == DType::i4 ? 32 : 0;
  const double greatest = dtype == DType::i4 ? 7 : 127;
  const Tensor scale = tenon::full(block == 0 ? Dims{n} : Dims{k / block, n}, 1 / greatest, DType::f32, device);
  const Tensor weight = quantised ? tenon::quantize_linear(real, scale, Tensor(), block == 0 ? 1 : 0, block, dtype)
                                  : tenon::cast(real, dtype);
  tenon::CompileOptions options;
  options.frozen = {weight, scale};
  const auto step = tenon::compile(
      [=](const Tensor& row) {
        if (!quantised) return tenon::matmul(tenon::cast(row, dtype), weight);
        return tenon::quantized_matmul(row, Tensor(), Tensor(), weight, scale, Tensor(), Tensor(), Tensor(), Tensor(),
                                       block);
      },
      options);
  const size_t bytes = static_cast<size_t>(k * n) * (dtype == DType::i4 ? 1 : 2 * tenon::dtype_size(dtype)) / 2 +
                       (quantised ? static_cast<size_t>(scale.numel()) * sizeof(float) : 0);
  const auto room = std::shared_ptr<void>(std::aligned_alloc(1 << 21, bytes), std::free);
  std::memset(room.get(), 1, bytes);
  std::vector<Side> peers;
  for (int threads = 1; threads <= most_threads(); ++threads) {
    peers.push_back({fmt::format("read, {} threads", threads), [room, bytes, threads](int64_t times) {
                       for (int64_t i = 0; i < times; ++i) keep(tenon::bench::stream_read(room.get(), bytes, threads));
                     }});
  }
  const auto check = [=]() -> std::string {
    const Tensor numbers = quantised ? tenon::dequantize_linear(weight, scale, Tensor(), block == 0 ? 1 : 0, block)
                                     : tenon::cast(weight, DType::f32);
    const std::vector<float> got = tenon::cast(step(x), DType::f32).to_host<float>(), w = numbers.to_host<float>();
    for (int64_t j = 0; j < n; j += n / 7 + 1) {
      double want = 0;
      for (int64_t i = 0; i < k; ++i)
        want +=
            static_cast<double>((*a)[static_cast<size_t>(i)]) * static_cast<double>(w[static_cast<size_t>(i * n + j)]);
      if (std::abs(got[static_cast<size_t>(j)] - want) > 2e-2 * std::sqrt(static_cast<double>(k)))
        return fmt::format("element {} is {}, not {}", j, got[static_cast<size_t>(j)], want);
    }
    return "";
  };
  Row row{fmt::format("decode {}, 1 x {} x {}", tenon::dtype_name(dtype), k, n), ours(device, [=] { return step(x); }),
          peers, 1 / (dtype == DType::i4 ? 0.5 : 0.85), check};
  row.bytes = static_cast<double>(bytes);
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  const tenon::Device device("cpu");
  std::vector<Row> rows;
  for (int64_t n = 64; n <= 2048; n *= 2) rows.push_back(product(device, {1, n, n, n}, DType::f32, false));
  // The products of BERT-base on 128 tokens, and of a decoder of 4096 on 128 and 16 tokens, including the down
  // projection.
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Product& p : {Product{1, 128, 768, 768}, Product{1, 128, 768, 3072}, Product{1, 128, 3072, 768},
                             Product{1, 128, 4096, 4096}, Product{1, 16, 4096, 4096}, Product{1, 16, 4096, 11008},
                             Product{1, 16, 11008, 4096}})
      rows.push_back(product(device, p, dtype, true));
    rows.push_back(product(device, {12, 128, 64, 128}, dtype, false));
    rows.push_back(product(device, {12, 128, 128, 64}, dtype, false));
  }
  for (const DType dtype : {DType::f32, DType::bf16, DType::i8, DType::i4}) {
    rows.push_back(decoding(device, 4096, 4096, dtype));
    rows.push_back(decoding(device, 4096, 11008, dtype));
  }
  return tenon::bench::run(rows, argc, argv);
}
