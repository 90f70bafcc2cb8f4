// Measures calls of Tenon against the same calls of libtorch in one process. The first argument is the number of
// threads of each side (usually all processors of the process), the second the number of batches. Reads one case of
// cases.py per line and answers each with a line:
//
//   {"case": NAME, "mode": "fresh", "ours_ns", "peer_ns", "ratio", "equal": true}      one for each mode: fresh, out
//   {"case": NAME, "mode": "fresh", "ours_ns", "why_not": SENTENCE}                    if libtorch cannot make the call
//   {"case": NAME, "error": SENTENCE}                                                  if Tenon cannot
//
// Both sides call the op of the same name, with the same numbers in their tensors. Their batches alternate. Before a
// batch with several threads the process sleeps until the other side's threads, which spin for milliseconds, have gone
// to sleep. A batch begins with runs that are not timed. The fastest batch counts, since other programs only make a
// batch slower.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "benchmarks/peers/tenon_op.h"
#include "benchmarks/peers/torch_op.h"

namespace {

using nlohmann::json;
using tenon::TensorList;
using tenon::bench::difference;
using tenon::bench::TenonOp;
using tenon::bench::TorchOp;

constexpr double kBatch = 1.5e6;   // nanoseconds
constexpr double kSettle = 1.0e6;  // nanoseconds of runs before each batch
int batches = 7;
constexpr auto kSleep = std::chrono::milliseconds(15);  // until the other side's threads have stopped spinning

// With one thread, times are process times, which other programs hardly affect.
bool counts_own_time = false;

double now() {
  timespec own;
  if (counts_own_time && clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) == 0) {
    return 1e9 * static_cast<double>(own.tv_sec) + static_cast<double>(own.tv_nsec);
  }
  return static_cast<double>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// Nanoseconds per run of each side. Each side's own time decides its number of runs.
template <class... Run>
std::vector<double> measure(const Run&... run) {
  const std::vector<std::function<void(int64_t)>> sides = {run...};
  std::vector<int64_t> runs;
  for (const auto& side : sides) {
    double best = 1e18;
    int64_t n = 1;
    for (int attempt = 0; attempt < 6; ++attempt) {
      const double start = now();
      side(n);
      const double each = (now() - start) / static_cast<double>(n);
      best = std::min(best, each);
      if (each > kBatch * 2) break;
      if (each * static_cast<double>(n) < kBatch / 4) n *= 4;
    }
    runs.push_back(std::max<int64_t>(1, static_cast<int64_t>(kBatch / best)));
  }
  std::vector<double> times(sides.size(), 1e18);
  for (int batch = 0; batch < batches; ++batch) {
    for (size_t i = 0; i < sides.size(); ++i) {
      if (!counts_own_time) std::this_thread::sleep_for(kSleep);
      const double settle = now() + kSettle;
      do {
        sides[i](std::max<int64_t>(1, runs[i] / 8));
      } while (now() < settle);
      const double start = now();
      sides[i](runs[i]);
      times[i] = std::min(times[i], (now() - start) / static_cast<double>(runs[i]));
    }
  }
  return times;
}

void answer(const json& spec, int threads) {
  TorchOp peer(spec);
  TenonOp ours(spec, peer.inputs());
  const TensorList results = ours.call();
  json row = {{"case", spec["case"]}, {"mode", "fresh"}};
  const auto print = [&row] { std::cout << row.dump() << std::endl; };
  if (!peer.why_not().empty()) {
    row["ours_ns"] = measure([&](int64_t n) { ours.run(n); })[0];
    row["why_not"] = peer.why_not();
    return print();
  }
  row["equal"] = true;
  if (spec.value("compare", true)) {
    const std::string wrong = difference(peer.results(), results, spec["tolerance"]);
    if (!wrong.empty()) row["equal"] = wrong;
  }
  const auto compare = [&](bool out) {
    const std::vector<double> times =
        measure([&](int64_t n) { ours.run(n); }, [&](int64_t n) { peer.run(n, threads, out); });
    row["ours_ns"] = times[0];
    row["peer_ns"] = times[1];
    row["ratio"] = times[0] / times[1];
    print();
  };
  compare(false);
  if (!peer.has_out() || !ours.want_out()) return;
  row["mode"] = "out";
  compare(true);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  if (argc > 2) batches = std::max(1, std::atoi(argv[2]));
  counts_own_time = threads == 1;
  std::cout << json{{"peer", "PyTorch " + TorchOp::version()}, {"threads", threads}}.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const json spec = json::parse(line);
    try {
      answer(spec, threads);
    } catch (const std::exception& error) {
      std::cout << json{{"case", spec["case"]}, {"mode", "fresh"}, {"error", error.what()}}.dump() << std::endl;
    }
    std::cout << json{{"done", spec["case"]}}.dump() << std::endl;
  }
  return 0;
}
