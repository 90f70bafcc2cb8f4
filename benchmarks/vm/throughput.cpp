// Instructions per second through an asynchronous device that computes next to nothing: submitted through apply with
// allocated outputs, until the last completion. The bars are for an idle machine.
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/ops/ops.h"
#include "core/tensor/stream.h"
#include "loader/loader.h"
#include "tests/fakes/async/control.h"

int main(int argc, char** argv) {
  using tenon::Tensor;
  tenon::fakes::async_control().shadow = false;
  tenon::fakes::async_control().memory = uint64_t{64} << 20;
  tenon::loader::register_provider("async", tenon::fakes::async_query);
  const tenon::Device device("async:0");
  const std::vector<float> values{-1.5f, 2.25f, -0.125f, 3.0f};
  const Tensor x = Tensor::from<float>(values, {4}, device);
  const tenon::Stream second(device);
  const auto check = [&]() -> std::string {
    return tenon::relu(x).to_host<float>() == std::vector<float>{0, 2.25f, 0, 3.0f} ? "" : "relu is wrong";
  };
  const auto independent = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) tenon::bench::keep(tenon::relu(x));
    device.synchronize();
  };
  const auto dependent = [&](int64_t n) {
    Tensor y = x;
    for (int64_t i = 0; i < n; i += 2) {
      y = tenon::relu(y);
      const tenon::StreamScope scope(second);
      y = tenon::relu(y);
    }
    device.synchronize();
  };
  tenon::bench::Row apart{"relu, async, independent", {"tenon on async:0", independent}, {}, 0, check};
  apart.most_ns = 800;
  tenon::bench::Row across{"relu, async, across two streams", {"tenon on async:0", dependent}, {}, 0, check};
  across.most_ns = 1000;
  return tenon::bench::run({apart, across}, argc, argv);
}
