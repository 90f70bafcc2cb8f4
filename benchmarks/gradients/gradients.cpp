// The cost of gradients on four floats: an op whose result remembers how it was made, and one node of backward.
#include <string>
#include <vector>

#include "benchmarks/peers/torch.h"
#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/autograd/autograd.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace {

using tenon::Tensor;
using tenon::bench::kChain;
using tenon::bench::Operands;
using tenon::bench::Row;
using tenon::bench::Work;

constexpr double kBar = 0.35;

std::string compared(const Tensor& tensor, const std::vector<float>& wanted) {
  const std::vector<float> got = tensor.to_host<float>();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (got[i] != wanted[i]) return fmt::format("element {} is {}, not {}", i, got[i], wanted[i]);
  }
  return "";
}

Row make_row(std::string name, const tenon::Device& device, [[maybe_unused]] Work work,
             [[maybe_unused]] const Operands& operands) {
  Row row{std::move(name), {"tenon on " + device.spelling(), {}}};
  row.bar = kBar;
#ifdef TENON_HAVE_TORCH
  row.peers.push_back(tenon::bench::torch_side(work, operands, 1));
#endif
  return row;
}

template <class Op>
Row forward_row(std::string name, const tenon::Device& device, Work work, const Operands& operands, Op op,
                const std::vector<float>& wanted) {
  Row row = make_row(std::move(name), device, work, operands);
  row.ours.run = [op](int64_t n) {
    for (int64_t i = 0; i < n; ++i) tenon::bench::keep(op());
  };
  row.check = [op, wanted]() -> std::string {
    const Tensor result = op();
    return result.requires_grad() ? compared(result, wanted) : "the result wants no gradient";
  };
  return row;
}

// A backward through kChain nodes counts as so many runs.
Row backward_row(std::string name, const tenon::Device& device, Work work, const Operands& operands, const Tensor& x,
                 const Tensor& y, const std::vector<float>& wanted) {
  Row row = make_row(std::move(name), device, work, operands);
  row.burst = kChain;
  const Tensor ones = tenon::ones_like(y.detach());
  const auto once = [=] { tenon::backward({y}, {ones}, {true, false}); };
  row.ours.run = [once](int64_t n) {
    for (int64_t i = 0; i < n; i += kChain) once();
  };
  row.check = [=]() -> std::string {
    x.set_grad({});
    once();
    return compared(x.grad(), wanted);
  };
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  tenon::bench::Report report(&argc, argv);
  const tenon::Device device(argc > 1 ? argv[1] : "cpu");
  const Operands operands{{1.0f, -1.0f, 1.0f, -1.0f}, 2, 2};
  const Tensor c = Tensor::from<float>(operands.values, {4}, device);
  const Tensor x = tenon::clone(c).requires_grad_();
  Tensor relus = x;
  Tensor products = x;
  for (int64_t i = 0; i < kChain; ++i) {
    relus = tenon::relu(relus);
    products = tenon::mul(products, c);
  }
  std::vector<Row> rows;
  rows.push_back(forward_row("relu that records, 4 floats", device, Work::recorded_relu, operands,
                             [x] { return tenon::relu(x); }, {1, 0, 1, 0}));
  rows.push_back(forward_row("mul that records, 4 floats", device, Work::recorded_mul, operands,
                             [x] { return tenon::mul(x, x); }, {1, 1, 1, 1}));
  rows.push_back(
      backward_row("backward per relu, 4 floats", device, Work::backward_relu, operands, x, relus, {1, 0, 1, 0}));
  rows.push_back(
      backward_row("backward per mul, 4 floats", device, Work::backward_mul, operands, x, products, {1, 1, 1, 1}));
  report.run(rows);
  return report.status();
}
