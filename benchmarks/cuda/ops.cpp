#include "benchmarks/cuda/ops.h"

#include <functional>
#include <random>

#include "benchmarks/report/keep.h"
#include "core/compile/compile.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::bench {
namespace {

using Op = std::function<Tensor()>;

class Rows {
 public:
  Rows(const Device& device, std::string suffix) : device_(device), suffix_(std::move(suffix)) {}

  void add(const std::string& op, const Op& run) {
    const Device device = device_;
    rows_.push_back({op + suffix_, {"tenon on " + device.spelling(), [device, run](int64_t n) {
                                      for (int64_t i = 0; i < n; ++i) keep(run());
                                      device.synchronize();
                                    }}});
  }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  Device device_;
  std::string suffix_;
  std::vector<Row> rows_;
};

Tensor uniform(const std::vector<int64_t>& dims, DType dtype, const Device& device) {
  return cast(sub(mul(rand(dims, DType::f32, device), 2.0), 1.0), dtype);
}

Tensor indices(int64_t count, int64_t below, const Device& device) {
  std::mt19937_64 engine(7);
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (int64_t& value : values) value = static_cast<int64_t>(engine() % static_cast<uint64_t>(below));
  return Tensor::from<int64_t>(values, {count}, device);
}

void run_matrix(const Device& device, DType dtype, int64_t rows, int64_t columns, Report* report) {
  Rows table(device, fmt::format(" {} {}x{}", dtype_name(dtype), rows, columns));
  const Tensor x = uniform({rows, columns}, dtype, device);
  const Tensor y = uniform({rows, columns}, dtype, device);
  const Tensor row = uniform({columns}, dtype, device);
  const Tensor column = uniform({rows, 1}, dtype, device);
  const Tensor greater = gt(x, y);
  const Tensor picked = indices(rows, rows, device);
  const DType other = dtype == DType::f32 ? DType::bf16 : DType::f32;
  table.add("relu", [=] { return relu(x); });
  table.add("exp", [=] { return exp(x); });
  table.add("gelu", [=] { return gelu(x); });
  table.add("silu", [=] { return silu(x); });
  table.add("add", [=] { return add(x, y); });
  table.add("add row", [=] { return add(x, row); });
  table.add("add column", [=] { return add(x, column); });
  table.add("mul number", [=] { return mul(x, 2.0); });
  table.add("gt", [=] { return gt(x, y); });
  table.add("where", [=] { return where(greater, x, y); });
  table.add("cast", [=] { return cast(x, other); });
  table.add("transpose", [=] { return contiguous(transpose(x, 0, 1)); });
  table.add("sum", [=] { return sum(x); });
  table.add("sum 0", [=] { return sum(x, {0}); });
  table.add("sum 1", [=] { return sum(x, {1}); });
  table.add("amax 1", [=] { return amax(x, {1}); });
  table.add("argmax 1", [=] { return argmax(x, 1); });
  table.add("softmax 0", [=] { return softmax(x, 0); });
  table.add("softmax 1", [=] { return softmax(x, 1); });
  table.add("layer_norm", [=] { return layer_norm(x, {columns}, row, row, 1e-5); });
  table.add("rms_norm", [=] { return rms_norm(x, {columns}, row, 1e-5); });
  table.add("cumsum 1", [=] { return cumsum(x, 1); });
  table.add("cat 0", [=] { return cat({x, y}, 0); });
  table.add("cat 1", [=] { return cat({x, y}, 1); });
  table.add("index_select 0", [=] { return index_select(x, 0, picked); });
  report->run(table.rows());
}

void run_products(const Device& device, DType dtype, int64_t rows, int64_t columns, int64_t length, Report* report) {
  Rows table(device, fmt::format(" {} {}x{}x{}", dtype_name(dtype), rows, columns, length));
  const Tensor a = uniform({rows, length}, dtype, device);
  const Tensor b = uniform({length, columns}, dtype, device);
  const Tensor weight = uniform({columns, length}, dtype, device);
  const Tensor bias = uniform({columns}, dtype, device);
  table.add("matmul", [=] { return matmul(a, b); });
  table.add("linear", [=] { return linear(a, weight); });
  table.add("linear bias", [=] { return linear(a, weight, bias); });
  report->run(table.rows());
}

// Images [32, 64, 112, 112], and a filter of 3 x 3 over [16, 64, 56, 56].
void run_images(const Device& device, DType dtype, Report* report) {
  Rows table(device, fmt::format(" {} images", dtype_name(dtype)));
  const Tensor x = uniform({32, 64, 112, 112}, dtype, device);
  const Tensor channel = uniform({64}, dtype, device);
  const Tensor variance = abs(uniform({64}, dtype, device));
  const Tensor small = uniform({16, 64, 56, 56}, dtype, device);
  const Tensor filter = uniform({64, 64, 3, 3}, dtype, device);
  table.add("max_pool2d", [=] { return max_pool2d(x, {3}, {2}, {1}); });
  table.add("avg_pool2d", [=] { return avg_pool2d(x, {2}, {2}); });
  table.add("batch_norm", [=] { return batch_norm(x, channel, variance, channel, channel); });
  table.add("group_norm", [=] { return group_norm(x, 8, channel, channel); });
  table.add("pad", [=] { return pad(x, {1, 1, 1, 1}); });
  table.add("conv2d", [=] { return conv2d(small, filter, Tensor(), {1}, {1}); });
  report->run(table.rows());
}

// 16 M random numbers each.
void run_random(const Device& device, DType dtype, Report* report) {
  Rows table(device, fmt::format(" {} random", dtype_name(dtype)));
  constexpr int64_t count = 16 << 20;
  const Tensor x = uniform({count}, dtype, device);
  table.add("rand", [=] { return rand({count}, dtype, device); });
  table.add("randn", [=] { return randn({count}, dtype, device); });
  table.add("dropout", [=] { return dropout(x, 0.5); });
  report->run(table.rows());
}

// One row of 1 M elements, or 1,000 rows of 1,000: random, sorted, all equal.
void run_sorting(const Device& device, DType dtype, int64_t rows, int64_t columns, Report* report) {
  Rows table(device, fmt::format(" {} sort{}x{}", dtype_name(dtype), rows, columns));
  const Tensor x = uniform({rows, columns}, dtype, device);
  const Tensor sorted = std::get<0>(sort(x, 1));
  const Tensor equal = mul(x, 0.0);
  const Tensor some = gt(x, 0.5);
  table.add("sort", [=] { return std::get<0>(sort(x, 1)); });
  table.add("sort sorted", [=] { return std::get<0>(sort(sorted, 1)); });
  table.add("sort equal", [=] { return std::get<0>(sort(equal, 1)); });
  table.add("sort descending", [=] { return std::get<0>(sort(x, 1, true)); });
  table.add("argsort", [=] { return argsort(x, 1); });
  table.add("topk", [=] { return std::get<0>(topk(x, 64, 1)); });
  table.add("topk equal", [=] { return std::get<0>(topk(equal, 64, 1)); });
  table.add("nonzero", [=] { return nonzero(some); });
  if (rows == 1) table.add("unique", [=] { return std::get<0>(unique(x)); });
  report->run(table.rows());
}

// `x` with its channels innermost in memory.
Tensor channels_last(const Tensor& x) { return permute(contiguous(permute(x, {0, 2, 3, 1})), {0, 3, 1, 2}); }

// Layers of convolutional networks: forward, and the gradient of a filter.
void run_convolutions(const Device& device, DType dtype, Report* report) {
  Rows table(device, fmt::format(" {} convolutions", dtype_name(dtype)));
  const Tensor large = uniform({32, 64, 56, 56}, dtype, device);
  const Tensor deep = uniform({32, 256, 14, 14}, dtype, device);
  const Tensor wide = uniform({32, 256, 56, 56}, dtype, device);
  const Tensor image = uniform({32, 3, 224, 224}, dtype, device);
  const Tensor filter = uniform({64, 64, 3, 3}, dtype, device);
  const Tensor deep_filter = uniform({256, 256, 3, 3}, dtype, device);
  const Tensor point = uniform({64, 256, 1, 1}, dtype, device);
  const Tensor first = uniform({64, 3, 7, 7}, dtype, device);
  const Tensor each = uniform({256, 1, 3, 3}, dtype, device);
  const Tensor doubling = uniform({64, 128, 2, 2}, dtype, device);
  const Tensor bias = uniform({64}, dtype, device);
  const Tensor large_last = channels_last(large), filter_last = channels_last(filter);
  const Tensor deep_last = channels_last(deep), deep_filter_last = channels_last(deep_filter);
  table.add("3x3", [=] { return conv2d(large, filter, Tensor(), {1}, {1}); });
  table.add("3x3 bias", [=] { return conv2d(large, filter, bias, {1}, {1}); });
  table.add("3x3 nhwc", [=] { return conv2d(large_last, filter_last, Tensor(), {1}, {1}); });
  table.add("3x3 deep", [=] { return conv2d(deep, deep_filter, Tensor(), {1}, {1}); });
  table.add("3x3 deep nhwc", [=] { return conv2d(deep_last, deep_filter_last, Tensor(), {1}, {1}); });
  table.add("1x1", [=] { return conv2d(wide, point); });
  table.add("1x1 bias", [=] { return conv2d(wide, point, bias); });
  table.add("1x1 stride 2", [=] { return conv2d(wide, point, Tensor(), {2}); });
  table.add("7x7 stride 2", [=] { return conv2d(image, first, Tensor(), {2}, {3}); });
  table.add("depthwise", [=] { return conv2d(wide, each, Tensor(), {1}, {1}, {1}, 256); });
  table.add("transposed 2x2", [=] { return conv_transpose(large, doubling, Tensor(), {2}); });
  table.add("transposed 3x3", [=] { return conv_transpose(large, filter, Tensor(), {1}, {1}); });
  table.add("weight 3x3", [=] { return conv_grad_weight(large, {64, 64, 3, 3}, large, {1}, {1}); });
  table.add("weight 3x3 deep", [=] { return conv_grad_weight(deep, {256, 256, 3, 3}, deep, {1}, {1}); });
  report->run(table.rows());
}

Tensor chain(const Tensor& x, const Tensor& y) { return mul(gelu(add(mul(x, 2.0), y)), sigmoid(y)); }
Tensor scores(const Tensor& x, const Tensor& y) { return softmax(add(mul(x, 0.125), y), 1); }
Tensor distances(const Tensor& x, const Tensor& y) { return sum(mul(sub(x, y), sub(x, y)), {1}); }
Tensor attention_of(const Tensor& query, const Tensor& key, const Tensor& value) {
  return matmul(softmax(mul(matmul(query, transpose(key, -2, -1)), 0.125), -1), value);
}

// Compiled functions of several ops; their peers are torch.compile's.
void run_compiled(const Device& device, DType dtype, Report* report) {
  Rows table(device, fmt::format(" {} compiled", dtype_name(dtype)));
  const Tensor x = uniform({4096, 4096}, dtype, device);
  const Tensor y = uniform({4096, 4096}, dtype, device);
  const Tensor row = uniform({4096}, dtype, device);
  const Tensor query = uniform({4, 8, 512, 64}, dtype, device);
  table.add("chain", [x, y, f = compile(chain)] { return f(x, y); });
  table.add("scores", [x, y, f = compile(scores)] { return f(x, y); });
  table.add("distances", [x, y, f = compile(distances)] { return f(x, y); });
  const auto norm = compile([](const Tensor& a, const Tensor& b, const Tensor& weight) {
    return gelu(layer_norm(add(a, b), {4096}, weight, weight, 1e-5));
  });
  table.add("norm", [=] { return norm(x, y, row); });
  table.add("attention", [query, f = compile(attention_of)] { return f(query, query, query); });
  for (const Row& each : table.rows()) each.ours.run(4);  // records, compiles and loads
  report->run(table.rows());
}

struct Heads {
  int64_t heads, groups, width, queries, keys;
};

void run_attention(const Device& device, DType dtype, const Heads& of, Report* report) {
  Rows table(device,
             fmt::format(" {} {}x{}x{}x{}x{}", dtype_name(dtype), of.heads, of.groups, of.width, of.queries, of.keys));
  const Tensor query = uniform({1, of.heads, of.queries, of.width}, dtype, device);
  const Tensor key = uniform({1, of.groups, of.keys, of.width}, dtype, device);
  const Tensor value = uniform({1, of.groups, of.keys, of.width}, dtype, device);
  const auto attend = [=](bool causal) {
    return scaled_dot_product_attention(query, key, value, Tensor(), causal, std::nullopt, of.heads != of.groups);
  };
  table.add("attention", [=] { return attend(false); });
  if (of.queries > 1) table.add("attention causal", [=] { return attend(true); });
  report->run(table.rows());
}

}  // namespace

void run_ops(const Device& device, Report* report) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& [rows, columns] : {std::pair{32, 32}, {1024, 1024}, {16384, 1024}}) {
      run_matrix(device, dtype, rows, columns, report);
    }
    struct Product {
      int64_t rows, columns, length;
    };
    for (const Product& of : {Product{64, 64, 64},
                              {512, 512, 512},
                              {1, 4096, 4096},
                              {128, 4096, 4096},
                              {2048, 2048, 2048},
                              {2047, 2049, 2053}}) {
      run_products(device, dtype, of.rows, of.columns, of.length, report);
    }
    run_images(device, dtype, report);
    run_random(device, dtype, report);
    run_sorting(device, dtype, 1, 1 << 20, report);
    run_sorting(device, dtype, 1000, 1000, report);
    run_convolutions(device, dtype, report);
    run_compiled(device, dtype, report);
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const Heads& of : {Heads{12, 12, 64, 512, 512},
                            {12, 12, 64, 2048, 2048},
                            {12, 12, 64, 4096, 4096},
                            {32, 8, 128, 4096, 4096},
                            {32, 8, 128, 1, 4096},
                            {12, 12, 64, 1, 4096}}) {
      run_attention(device, dtype, of, report);
    }
  }
}

}  // namespace tenon::bench
