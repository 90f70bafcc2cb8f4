// Host time per tiny op on asynchronous devices: a burst of ops on four floats, timed to the return of the last call;
// what the device does with them is waited for and not timed. Every asynchronous device there is, or the one named. The
// bar is 2,000 ns.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/report/report.h"
#include "core/ops/ops.h"
#include "loader/loader.h"
#include "primitives/status/error.h"

namespace {

using tenon::Tensor;

constexpr int burst = 200;
constexpr int bursts = 101;
constexpr double bar = 2000;

const std::vector<float> values{-1.5f, 2.25f, -0.125f, 3.0f};

// True if the median is within the bar.
template <class Op>
bool row(const char* name, const tenon::Device& device, const Op& op) {
  std::vector<double> nanoseconds;
  for (int i = 0; i < bursts; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < burst; ++k) tenon::bench::keep(op());
    const auto end = std::chrono::steady_clock::now();
    device.synchronize();
    nanoseconds.push_back(std::chrono::duration<double, std::nano>(end - begin).count() / burst);
  }
  std::sort(nanoseconds.begin(), nanoseconds.end());
  const double median = nanoseconds[bursts / 2];
  const bool good = median <= bar;
  std::printf("%-34s | tenon on %s: %.0f ns (spread %.0f) | bar %.0f ns | %s\n", name, device.spelling().c_str(),
              median, nanoseconds[bursts * 3 / 4] - nanoseconds[bursts / 4], bar, good ? "ok" : "over");
  return good;
}

int run(const std::string& spelling) {
  const tenon::Device device(spelling);
  const Tensor a = Tensor::from<float>(values, {4}, device);
  if (tenon::relu(a).to_host<float>() != std::vector<float>{0, 2.25f, 0, 3.0f} ||
      tenon::add(a, a).to_host<float>() != std::vector<float>{-3.0f, 4.5f, -0.25f, 6.0f}) {
    std::printf("%-34s | void: the result is wrong\n", spelling.c_str());
    return 1;
  }
  int bad = row("relu, 4 floats, host time", device, [&] { return tenon::relu(a); }) ? 0 : 1;
  bad += row("add, 4 floats, host time", device, [&] { return tenon::add(a, a); }) ? 0 : 1;
  return bad;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-') return run(argv[1]);
  int bad = 0;
  int found = 0;
  for (const tenon::loader::DeviceRecord& record : tenon::loader::list_devices()) {
    // A device that computes nothing sends every op to the host.
    if (!record.info.usable() || record.info.synchronous() || record.provider == "null") continue;
    ++found;
    bad += run(record.spelling);
  }
  if (found == 0) std::printf("no asynchronous device\n");
  return bad;
}
