// What one tiny eager op costs: tensors of four floats, where only the way to the kernel counts.
#include <cmath>
#include <vector>

#include "benchmarks/report/report.h"
#include "core/ops/ops.h"
#include "core/tensor/tensor.h"
#ifdef TENON_HAVE_TORCH
#include "benchmarks/peers/torch.h"
#endif

namespace {

using tenon::Tensor;
using tenon::bench::keep;
using tenon::bench::Row;
using tenon::bench::Side;

const std::vector<float> values{-1.5f, 2.25f, -0.125f, 3.0f};

std::string differs(const std::vector<float>& got, const std::vector<float>& wanted) {
  return got == wanted ? "" : "the result is not what a double-precision loop gives";
}

struct Ours {
  explicit Ours(tenon::Device device)
      : a(Tensor::from<float>(values, {4}, device)), b(a), out(Tensor::empty({4}, tenon::DType::f32, device)) {}
  Tensor a, b, out;
};

}  // namespace

int main(int argc, char** argv) {
  const char* spelling = argc > 1 && argv[1][0] != '-' ? argv[1] : "cpu";
  const tenon::Device device(spelling);
  Ours ours(device);
  const std::string label = "tenon on " + device.spelling();
  std::vector<Side> relu_peers, add_peers, view_peers, out_peers;
#ifdef TENON_HAVE_TORCH
  tenon::bench::Torch torch(values.data(), 4);
  const std::string peer = tenon::bench::Torch::label(1);
  relu_peers = {{peer, [&](int64_t n) { torch.relu(n); }}};
  add_peers = {{peer, [&](int64_t n) { torch.add(n); }}};
  view_peers = {{peer, [&](int64_t n) { torch.view(n); }}};
  out_peers = {{peer, [&](int64_t n) { torch.add_out(n); }}};
#endif
  const auto times = [](int64_t n, auto&& work) {
    for (int64_t i = 0; i < n; ++i) work();
  };
  const std::vector<float> relu_wanted{0, 2.25f, 0, 3.0f};
  const std::vector<float> add_wanted{-3.0f, 4.5f, -0.25f, 6.0f};
  const std::vector<Row> rows{
      {"relu, 4 floats",
       {label, [&](int64_t n) { times(n, [&] { keep(tenon::relu(ours.a)); }); }},
       relu_peers,
       0.25,
       [&] { return differs(tenon::relu(ours.a).to_host<float>(), relu_wanted); }},
      {"add, 4 floats",
       {label, [&](int64_t n) { times(n, [&] { keep(tenon::add(ours.a, ours.b)); }); }},
       add_peers,
       0.25,
       [&] { return differs(tenon::add(ours.a, ours.b).to_host<float>(), add_wanted); }},
      {"view, 4 floats",
       {label, [&](int64_t n) { times(n, [&] {
                                  keep(tenon::view(ours.a, {2, 2}));
                                }); }},
       view_peers,
       0.25,
       [&] {
         return differs(tenon::view(ours.a, {2, 2}).to_host<float>(), values);
       }},
      {"add into a given output, 4 floats",
       {label, [&](int64_t n) { times(n, [&] { keep(tenon::add_out(ours.out, ours.a, ours.b)); }); }},
       out_peers,
       0.25,
       [&] { return differs(tenon::add_out(ours.out, ours.a, ours.b).to_host<float>(), add_wanted); }},
  };
  return tenon::bench::run(rows, argc - (argv[1] == spelling), argv + (argv[1] == spelling));
}
