#include "benchmarks/report/report.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <string_view>
#include <thread>

#include "primitives/text/format.h"

namespace tenon::bench {
namespace {

std::string name_of(const Row& row, const Side& side) { return fmt::format("{}/{}", row.name, side.label); }

// Filters here, because Google Benchmark complains about every row without a match.
bool is_chosen(const std::string& name) {
  std::string filter = benchmark::GetBenchmarkFilter();
  if (filter.empty() || filter == "all") return true;
  const bool unwanted = filter.front() == '-';
  if (unwanted) filter.erase(0, 1);
  return std::regex_search(name, std::regex(filter, std::regex::extended)) != unwanted;
}

double time_ns(const Side& side, int64_t n) {
  const auto start = std::chrono::steady_clock::now();
  side.run(n);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

// The number of runs per batch. Google Benchmark's estimate uses the first run that was long enough; on a busy machine
// that may be an interrupted run. Here the fastest of three runs counts. The runs also warm up.
int64_t runs_in_batch(const Side& side, double batch_ns) {
  for (int64_t n = 1;;) {
    const double least = std::min({time_ns(side, n), time_ns(side, n), time_ns(side, n)});
    if (least >= batch_ns || n >= int64_t{1} << 30) return n;
    const double factor = least > 0 ? std::min(10.0, 1.2 * batch_ns / least) : 10.0;
    n = std::max(n + 1, static_cast<int64_t>(static_cast<double>(n) * factor));
  }
}

// The threads of another side spin for milliseconds after its last parallel region and would occupy this side's
// processors.
constexpr auto kSleep = std::chrono::milliseconds(15);

void measure(benchmark::State& state, const Row& row, const Side& side) {
  const auto count = static_cast<benchmark::IterationCount>(state.max_iterations);
  std::this_thread::sleep_for(kSleep);
  if (row.burst == 0) side.run(std::max<int64_t>(1, count / 8));  // wakes this side's threads
  while (state.KeepRunningBatch(count)) side.run(count);
  if (row.settle) row.settle();
}

// Keeps the measurements and prints nothing.
class Collector : public benchmark::BenchmarkReporter {
 public:
  explicit Collector(std::map<std::string, std::vector<double>>* samples) : samples_(samples) {}

  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration || run.error_occurred || run.iterations == 0) continue;
      const double seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
      (*samples_)[run.run_name.function_name].push_back(seconds * 1e9);
    }
  }

 private:
  std::map<std::string, std::vector<double>>* samples_;
};

}  // namespace

Report::Report(int* argc, char** argv) {
  static char interleaving[] = "--benchmark_enable_random_interleaving=true";
  static char repetitions[] = "--benchmark_repetitions=15";
  std::vector<char*> all{argv[0], interleaving, repetitions};
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = argv[i];
    constexpr std::string_view out = "--benchmark_out=";
    constexpr std::string_view batch = "--benchmark_min_time=";
    if (word == "--benchmark_format=json") json_ = true;
    if (word == "--benchmark_list_tests" || word == "--benchmark_list_tests=true") listing_ = true;
    if (word.substr(0, out.size()) == out) {
      out_path_ = word.substr(out.size());
    } else if (word.substr(0, batch.size()) == batch) {
      batch_ns_ = std::max(0.0, std::atof(argv[i] + batch.size())) * 1e9;
    } else {
      all.push_back(argv[i]);
    }
  }
  int count = static_cast<int>(all.size());
  all.push_back(nullptr);
  benchmark::Initialize(&count, all.data());
  // Leaves the program its own arguments. Their number never grows.
  *argc = 1;
  for (int i = 1; i < count; ++i) {
    if (all[static_cast<size_t>(i)][0] == '-') {
      std::fprintf(stderr, "%s: the option %s is unknown; --help lists those there are.\n", argv[0],
                   all[static_cast<size_t>(i)]);
      std::exit(2);
    }
    argv[(*argc)++] = all[static_cast<size_t>(i)];
  }
  argv[*argc] = nullptr;
}

void Report::print(const Summary& summary) {
  if (summary.verdict == Verdict::over || summary.verdict == Verdict::void_row) ++bad_;
  std::printf("%s\n", json_ ? to_json(summary).c_str() : to_text(summary).c_str());
  std::fflush(stdout);
  if (!out_path_.empty()) std::ofstream(out_path_, std::ios::app) << to_json(summary) << '\n';
}

void Report::run_row(const Row& row) {
  std::vector<const Side*> sides{&row.ours};
  for (const Side& peer : row.peers) sides.push_back(&peer);
  std::erase_if(sides, [&row](const Side* side) { return !is_chosen(name_of(row, *side)); });
  if (sides.empty()) return;
  if (row.check && !listing_) {
    if (std::string wrong = row.check(); !wrong.empty()) return print(void_row(row, std::move(wrong)));
  }
  for (const Side* side : sides) {
    const std::string name = name_of(row, *side);
    auto* made = benchmark::RegisterBenchmark(name.c_str(),
                                              [&row, side](benchmark::State& state) { measure(state, row, *side); });
    made->UseRealTime()->Iterations(row.burst > 0 || listing_ ? std::max<int64_t>(1, row.burst)
                                                              : runs_in_batch(*side, batch_ns_));
  }
  std::map<std::string, std::vector<double>> found;
  Collector collector(&found);
  benchmark::RunSpecifiedBenchmarks(&collector, nullptr, "all");
  benchmark::ClearRegisteredBenchmarks();
  if (listing_) return;
  Samples samples{found[name_of(row, row.ours)]};
  for (const Side& peer : row.peers) samples.push_back(found[name_of(row, peer)]);
  print(summarize(row, samples));
}

void Report::run(const std::vector<Row>& rows) {
  for (const Row& row : rows) run_row(row);
}

int run(const std::vector<Row>& rows, int argc, char** argv) {
  Report report(&argc, argv);
  if (argc > 1) {
    std::fprintf(stderr, "%s: the argument %s was not expected.\n", argv[0], argv[1]);
    return 2;
  }
  report.run(rows);
  return report.status();
}

}  // namespace tenon::bench
