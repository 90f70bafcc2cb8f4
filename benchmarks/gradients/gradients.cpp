// The cost of gradients on four floats (an op that records its history, one node of backward, a chain of both), of a
// step of AdamW, and of whole steps (steps.h).
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gradients/steps.h"
#include "benchmarks/peers/torch.h"
#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/autograd/autograd.h"
#include "core/ops/ops.h"
#include "core/optim/optim.h"
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
  tenon::bench::Side peer = tenon::bench::torch_side(work, operands, work == Work::adamw ? 2 : 1);
  if (peer.run != nullptr) row.peers.push_back(std::move(peer));
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

// A backward through kChain nodes counts as kChain runs.
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

// A chain is built and run through each time, and its graph is dropped. Each of its ops counts as one run.
Row chain_row(const tenon::Device& device, const Operands& operands, const Tensor& x, const Tensor& c) {
  Row row = make_row("a chain of 1,000 ops and its backward, per op, 4 floats", device, Work::chain, operands);
  row.burst = kChain;
  const auto once = [=] {
    Tensor y = x;
    for (int64_t i = 0; i < kChain; ++i) y = i % 2 == 0 ? tenon::relu(y) : tenon::mul(y, c);
    y.backward(tenon::ones_like(y.detach()));
  };
  row.ours.run = [once](int64_t n) {
    for (int64_t i = 0; i < n; i += kChain) once();
  };
  row.check = [=]() -> std::string {
    x.set_grad({});
    once();
    return compared(x.grad(), {1, 0, 1, 0});
  };
  return row;
}

// A step of `count` parameters of `elements` elements; the first step changes each element by the learning rate.
Row adamw_row(const tenon::Device& device, int64_t count, int64_t elements, double bar, std::string name) {
  Operands operands{std::vector<float>(static_cast<size_t>(elements), 1.0f), count, elements};
  Row row = make_row(std::move(name), device, Work::adamw, operands);
  row.bar = bar;
  row.burst = elements > 100'000 ? 1 : 0;
  tenon::TensorList parameters;
  for (int64_t i = 0; i < count; ++i) {
    parameters.push_back(Tensor::from<float>(operands.values, {elements}, device).requires_grad_());
    parameters.back().set_grad(Tensor::from<float>(operands.values, {elements}, device));
  }
  const auto optimizer = std::make_shared<tenon::optim::AdamW>(parameters);
  row.ours.run = [optimizer](int64_t n) {
    for (int64_t i = 0; i < n; ++i) optimizer->step();
  };
  row.check = [optimizer, parameters]() -> std::string {
    optimizer->step();
    const float got = parameters.back().detach().to_host<float>()[0];
    const float wanted = 1 - 1e-5f - 1e-3f;
    return std::abs(got - wanted) < 1e-6f ? "" : fmt::format("an element is {}, not {}", got, wanted);
  };
  row.bytes = static_cast<double>(count * elements) * 7 * sizeof(float);
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  tenon::bench::Report report(&argc, argv);
  const tenon::Device device(argc > 1 ? argv[1] : "cpu");
  const std::vector<Row> steps = tenon::bench::step_rows(device);
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
  rows.push_back(chain_row(device, operands, x, c));
  rows.push_back(adamw_row(device, 100, 1000, 0.5, "AdamW, 100 parameters of 1,000"));
  rows.push_back(adamw_row(device, 100, 1'000'000, 1.0, "AdamW, 100 parameters of 1 M"));
  rows.insert(rows.end(), steps.begin(), steps.end());
  report.run(rows);
  return report.status();
}
