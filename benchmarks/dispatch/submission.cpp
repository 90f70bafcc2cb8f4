// Host time per tiny op on asynchronous devices: a burst of ops on four floats, until the last call returns. The wait
// for the device is not timed. Measures every asynchronous device, or the named one.
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/ops/ops.h"
#include "loader/loader.h"
#include "primitives/text/format.h"

namespace {

using tenon::Tensor;
using tenon::bench::Row;

constexpr int64_t burst = 200;
constexpr double most_ns = 2000;

template <class Op>
Row make_row(const std::string& name, const tenon::Device& device, const std::vector<float>& wanted, const Op& op) {
  Row row{fmt::format("{}, 4 floats, host time, {}", name, device.spelling()),
          {"tenon on " + device.spelling(), [op](int64_t n) {
             for (int64_t i = 0; i < n; ++i) tenon::bench::keep(op());
           }}};
  row.most_ns = most_ns;
  row.burst = burst;
  row.settle = [device] { device.synchronize(); };
  row.check = [op, wanted] { return op().template to_host<float>() == wanted ? "" : "the result is wrong"; };
  return row;
}

void measure(const tenon::Device& device, tenon::bench::Report* report) {
  const Tensor a = Tensor::from<float>(std::vector<float>{-1.5f, 2.25f, -0.125f, 3.0f}, {4}, device);
  report->run({make_row("relu", device, {0, 2.25f, 0, 3.0f}, [a] { return tenon::relu(a); }),
               make_row("add", device, {-3.0f, 4.5f, -0.25f, 6.0f}, [a] { return tenon::add(a, a); })});
}

}  // namespace

int main(int argc, char** argv) {
  tenon::bench::Report report(&argc, argv);
  if (argc > 1) {
    measure(tenon::Device(argv[1]), &report);
    return report.status();
  }
  int found = 0;
  for (const tenon::loader::ListedDevice& listed : tenon::loader::list_devices()) {
    // A device that computes nothing sends every op to the host.
    if (!listed.info.usable() || listed.info.synchronous() || listed.provider == "null") continue;
    ++found;
    measure(tenon::Device(listed.spelling), &report);
  }
  if (found == 0) std::printf("no asynchronous device\n");
  return report.status();
}
