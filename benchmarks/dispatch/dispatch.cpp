// The cost of one eager op on the host: on four floats, where only the path to the kernel counts; on broadcast and
// strided operands; and on a million floats, where the memory access order counts.
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/peers/torch.h"
#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/ops/ops.h"
#include "core/tensor/tensor.h"
#include "primitives/text/format.h"

namespace {

using tenon::Tensor;
using tenon::bench::Operands;
using tenon::bench::Row;
using tenon::bench::Side;
using tenon::bench::Work;

std::vector<Side> peers_of([[maybe_unused]] Work work, [[maybe_unused]] const Operands& operands,
                           [[maybe_unused]] bool large) {
  std::vector<Side> peers;
#ifdef TENON_HAVE_TORCH
  for (int threads = 1; threads <= (large ? 2 : 1); ++threads) {
    peers.push_back(tenon::bench::torch_side(work, operands, threads));
  }
#endif
  return peers;
}

// Values that differ from each other and from zero.
Operands make_operands(int64_t rows, int64_t columns, bool twice) {
  Operands operands{{}, rows, columns};
  const int64_t count = rows * columns * (twice ? 2 : 1);
  for (int64_t i = 0; i < count; ++i) {
    operands.values.push_back(static_cast<float>(i % 2 == 0 ? -1.5 - 0.25 * static_cast<double>(i) : 0.375 + i));
  }
  return operands;
}

// `wanted(row, column)` computes in double from the values.
template <class Op, class Wanted>
Row make_row(std::string name, const tenon::Device& device, Work work, const Operands& operands, double bar, Op op,
             Wanted wanted) {
  const int64_t columns = operands.columns;
  const bool large = operands.rows * columns > 1000;
  Row row{std::move(name),
          {"tenon on " + device.spelling(),
           [op](int64_t n) mutable {
             for (int64_t i = 0; i < n; ++i) tenon::bench::keep(op());
           }},
          peers_of(work, operands, large),
          bar};
  row.check = [=]() mutable -> std::string {
    const std::vector<float> got = op().template to_host<float>();
    for (size_t i = 0; i < got.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const double want = wanted(at / columns, at % columns);
      if (got[i] == static_cast<float>(want)) continue;
      return fmt::format("element {} is {}, not {}", i, got[i], want);
    }
    return got.size() == static_cast<size_t>(operands.rows * columns) ? "" : "the result has another size";
  };
  return row;
}

void add_tiny(const tenon::Device& device, std::vector<Row>* rows) {
  const Operands operands = make_operands(2, 2, false);
  const std::vector<float>& v = operands.values;
  const Tensor x = Tensor::from<float>(v, {4}, device);
  Tensor out = Tensor::empty({4}, tenon::DType::f32, device);
  const auto value = [v](int64_t r, int64_t c) { return static_cast<double>(v[static_cast<size_t>(2 * r + c)]); };
  const auto twice = [value](int64_t r, int64_t c) { return 2 * value(r, c); };
  rows->push_back(make_row(
      "relu, 4 floats", device, Work::relu, operands, 0.1, [x] { return tenon::relu(x); },
      [value](int64_t r, int64_t c) { return std::max(value(r, c), 0.0); }));
  rows->push_back(make_row(
      "add, 4 floats", device, Work::add, operands, 0.14, [x] { return tenon::add(x, x); }, twice));
  rows->push_back(make_row(
      "view, 4 floats", device, Work::view, operands, 0.2,
      [x] {
        return tenon::view(x, {2, 2});
      },
      value));
  rows->push_back(make_row(
      "add into a given output, 4 floats", device, Work::add_out, operands, 0.2,
      [x, out]() mutable -> const Tensor& { return tenon::add_out(out, x, x); }, twice));
}

// n x n results from operands that are not contiguous vectors.
void add_shaped(const tenon::Device& device, int64_t n, const std::string& size, double bar, std::vector<Row>* rows) {
  const Operands operands = make_operands(n, n, false);
  const Operands wide = make_operands(n, n, true);
  const Tensor x = Tensor::from<float>(operands.values, {n, n}, device);
  const Tensor bias =
      Tensor::from<float>(std::vector(operands.values.begin(), operands.values.begin() + n), {n}, device);
  const Tensor half = tenon::slice(Tensor::from<float>(wide.values, {n, 2 * n}, device), 1, {}, {}, 2);
  const Tensor turned = tenon::t(x);
  const auto value = [v = operands.values, n](int64_t r, int64_t c) {
    return static_cast<double>(v[static_cast<size_t>(r * n + c)]);
  };
  rows->push_back(make_row(
      "broadcast add (bias), " + size, device, Work::bias, operands, bar, [x, bias] { return tenon::add(x, bias); },
      [value](int64_t r, int64_t c) { return value(r, c) + value(0, c); }));
  rows->push_back(make_row(
      "strided add, " + size, device, Work::strided, wide, bar, [half] { return tenon::add(half, half); },
      [v = wide.values, n](int64_t r, int64_t c) { return 2.0 * v[static_cast<size_t>(2 * (r * n + c))]; }));
  rows->push_back(make_row(
      "transposed mul, " + size, device, Work::transposed, operands, bar,
      [turned] { return tenon::mul(turned, turned); },
      [value](int64_t r, int64_t c) { return value(c, r) * value(c, r); }));
}

}  // namespace

int main(int argc, char** argv) {
  tenon::bench::Report report(&argc, argv);
  const tenon::Device device(argc > 1 ? argv[1] : "cpu");
  std::vector<Row> rows;
  add_tiny(device, &rows);
  add_shaped(device, 4, "4 x 4", 0.25, &rows);
  add_shaped(device, 1024, "1M floats", 1.0, &rows);
  report.run(rows);
  return report.status();
}
