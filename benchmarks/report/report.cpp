#include "benchmarks/report/report.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tenon::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kBatchNs = 4e6;

double time_ns(const Side& side, int64_t n) {
  const auto start = Clock::now();
  side.run(n);
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// How many runs make one batch. Warms up on the way.
int64_t batch_of(const Side& side) {
  int64_t n = 1;
  for (double spent = time_ns(side, n); spent < kBatchNs && n < (int64_t{1} << 30); spent = time_ns(side, n)) {
    const double factor = spent > 0 ? std::min(10.0, 1.3 * kBatchNs / spent) : 10.0;
    n = std::max(n + 1, static_cast<int64_t>(static_cast<double>(n) * factor));
  }
  return n;
}

struct Timing {
  double median = 0;
  double spread = 0;
};

Timing summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  return {samples[n / 2], samples[n * 3 / 4] - samples[n / 4]};
}

std::vector<Timing> measure(const std::vector<const Side*>& sides, int samples) {
  std::vector<int64_t> batches;
  for (const Side* side : sides) batches.push_back(batch_of(*side));
  std::vector<std::vector<double>> times(sides.size());
  for (int sample = 0; sample < samples; ++sample) {
    for (size_t i = 0; i < sides.size(); ++i) {
      times[i].push_back(time_ns(*sides[i], batches[i]) / static_cast<double>(batches[i]));
    }
  }
  std::vector<Timing> timings;
  for (std::vector<double>& one : times) timings.push_back(summarize(std::move(one)));
  return timings;
}

void print_side(const Side& side, const Timing& timing, double bytes) {
  std::printf(" | %s: %.1f ns +-%.1f", side.label.c_str(), timing.median, timing.spread);
  if (bytes > 0) std::printf(" (%.1f GB/s)", bytes / timing.median);
}

// True if the row is good.
bool run_row(const Row& row, int samples) {
  std::printf("%-34s", row.name.c_str());
  if (row.check) {
    if (const std::string wrong = row.check(); !wrong.empty()) {
      std::printf(" | void: %s\n", wrong.c_str());
      return false;
    }
  }
  std::vector<const Side*> sides{&row.ours};
  for (const Side& peer : row.peers) sides.push_back(&peer);
  const std::vector<Timing> timings = measure(sides, samples);
  for (size_t i = 0; i < sides.size(); ++i) print_side(*sides[i], timings[i], row.bytes);
  bool good = true;
  if (!row.peers.empty()) {
    double best = timings[1].median;
    for (size_t i = 2; i < timings.size(); ++i) best = std::min(best, timings[i].median);
    const double ratio = timings[0].median / best;
    std::printf(" | ratio %.3f", ratio);
    if (row.bar > 0) {
      good = ratio <= row.bar;
      std::printf(" | bar %.3f | %s", row.bar, good ? "ok" : "over");
    }
    if (row.slack_ns > 0) {
      const double over = timings[0].median - best;
      good = over <= row.slack_ns;
      std::printf(" | %.1f ns over, at most %.1f | %s", over, row.slack_ns, good ? "ok" : "over");
    }
  }
  std::printf("\n");
  std::fflush(stdout);
  return good;
}

}  // namespace

int run(const std::vector<Row>& rows, int argc, char** argv) {
  const char* filter = "";
  int samples = 15;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--filter") == 0) filter = argv[i + 1];
    if (std::strcmp(argv[i], "--samples") == 0) samples = std::max(1, std::atoi(argv[i + 1]));
  }
  int bad = 0;
  for (const Row& row : rows) {
    if (row.name.find(filter) != std::string::npos && !run_row(row, samples)) ++bad;
  }
  return bad;
}

}  // namespace tenon::bench
