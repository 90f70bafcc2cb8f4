#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "loader/settings/settings.h"
#include "primitives/text/format.h"
#include "primitives/text/progress.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/onnx_test/onnx_case.h"
#include "sdk/cli/onnx_test/workers.h"

namespace tenon::cli {
namespace {

class Reporter {
 public:
  Reporter(const OnnxTestOptions& options, const std::vector<std::string>& cases)
      : options_(options), cases_(cases), progress_("testing", cases.size()) {}

  void add(size_t index, const CaseResult& result) {
    ++counts_[static_cast<int>(result.verdict)];
    for (size_t rung = 0; rung < launches_.size(); ++rung) launches_[rung] += result.launches[rung];
    ++finished_;
    const size_t failed = counts_[static_cast<int>(Verdict::failed)];
    if (options_.json || !options_.quiet || result.verdict == Verdict::failed) progress_.clear();
    if (options_.json) {
      std::printf("%s\n", nlohmann::json{{"case", name(index)},
                                         {"folder", cases_[index]},
                                         {"verdict", verdict_name(result.verdict)},
                                         {"sentence", result.sentence},
                                         {"ms", result.milliseconds},
                                         {"launches", rungs_of(result.launches)}}
                              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                              .c_str());
    } else if (!options_.quiet || result.verdict == Verdict::failed) {
      std::printf("%-7s %s%s%s\n", verdict_name(result.verdict), name(index).c_str(),
                  result.sentence.empty() ? "" : ": ", result.sentence.c_str());
    }
    progress_.at(finished_, fmt::format("{} of {} cases, {} failed", finished_, cases_.size(), failed));
  }

  int finish() {
    progress_.clear();
    const size_t failed = counts_[static_cast<int>(Verdict::failed)];
    if (options_.json) {
      const nlohmann::json summary = {{"passed", counts_[static_cast<int>(Verdict::passed)]},
                                      {"failed", failed},
                                      {"skipped", counts_[static_cast<int>(Verdict::skipped)]},
                                      {"launches", rungs_of(launches_)}};
      std::printf("%s\n", summary.dump().c_str());
      return failed == 0 ? 0 : 1;
    }
    std::printf("%zu passed, %zu failed, %zu skipped\n", counts_[static_cast<int>(Verdict::passed)], failed,
                counts_[static_cast<int>(Verdict::skipped)]);
    std::printf("launches:");
    for (size_t rung = 0; rung < launches_.size(); ++rung) {
      std::printf("%s %llu %s", rung == 0 ? "" : ",", static_cast<unsigned long long>(launches_[rung]), kRungs[rung]);
    }
    std::printf("\n");
    return failed == 0 ? 0 : 1;
  }

 private:
  static nlohmann::json rungs_of(const RungCounts& launches) {
    nlohmann::json rungs;
    for (size_t rung = 0; rung < launches.size(); ++rung) rungs[kRungs[rung]] = launches[rung];
    return rungs;
  }

  std::string name(size_t index) const {
    std::filesystem::path path(cases_[index]);
    return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
  }

  const OnnxTestOptions& options_;
  const std::vector<std::string>& cases_;
  Progress progress_;
  size_t counts_[3] = {}, finished_ = 0;
  RungCounts launches_{};
};

}  // namespace

int onnx_test(const OnnxTestOptions& options) {
  const std::vector<std::string> cases = find_cases(options.folders);
  const Tolerance given{options.rtol, options.atol};
  Reporter reporter(options, cases);
  WorkerOptions workers;
  workers.jobs = options.jobs != 0 ? options.jobs : static_cast<uint32_t>(std::max(1, loader::thread_limit()));
  workers.time_limit = options.time_limit;
  const auto run = [&](size_t i) {
    try {
      return run_case(cases[i], options.device, options.tolerance_given ? given : case_tolerance(cases[i], given));
    } catch (const std::exception& error) {
      return CaseResult{Verdict::failed, error.what(), 0, {}};
    }
  };
  run_in_children(cases.size(), workers, run, [&](size_t i, const CaseResult& result) { reporter.add(i, result); });
  return reporter.finish();
}

}  // namespace tenon::cli
