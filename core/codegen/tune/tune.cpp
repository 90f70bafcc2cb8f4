#include "core/codegen/tune/tune.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <set>
#include <thread>

#include "core/background/cancellation.h"
#include "core/codegen/tune/candidates.h"
#include "core/codegen/tune/data_base.h"
#include "core/codegen/tune/trial.h"
#include "core/vm/vm.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

constexpr double kSecondsCpu = 0.5, kSecondsElsewhere = 0.2;
constexpr auto kMoment = std::chrono::milliseconds(20);
constexpr double kBusy = 0.1;  // busy fraction of a moment

// The text of the kernel without the line with its name, which all kernels with as many ops share.
std::string space_of(const Kernel& kernel, const std::string& variant) {
  const std::string text = to_string(kernel);
  return fmt::format("{}for {}", text.substr(text.find('\n') + 1), variant.empty() ? "all sizes" : variant);
}

const Variant* variant_called(const Artifact& artifact, const std::string& name) {
  const auto found = std::find_if(artifact.variants.begin(), artifact.variants.end(),
                                  [&](const Variant& variant) { return variant.name == name; });
  return found == artifact.variants.end() ? nullptr : &*found;
}

// Prepares trials of one request.
class Preparer {
 public:
  Preparer(const TuneRequest& request, Launches* launches) : request_(request), launches_(*launches) {}

  Result<std::unique_ptr<Trial>> operator()(const Tiles& tiles) {
    TENON_ASSIGN_OR_RETURN(const Artifact artifact, artifact_with(tiles));
    const Variant* variant = variant_called(artifact, request_.variant);
    if (variant == nullptr || !(variant->tiles == tiles)) return std::unique_ptr<Trial>();
    if (!texts_.insert(variant->text.text).second) return std::unique_ptr<Trial>();
    Result<std::unique_ptr<Trial>> trial = launches_.trial(artifact.name, *variant);
    const bool skipped = !trial.ok() && trial.status().code() == Code::unsupported && !(tiles == Tiles());
    if (skipped) return std::unique_ptr<Trial>();
    if (trial.ok() && trial.value() == nullptr) {
      loader::log(loader::LogTopic::compile, loader::LogLevel::warning,
                  fmt::format("{} with tiles {} gives other results than with its default tiles, and is not used.",
                              artifact.name, tiles_text(tiles)));
    }
    return trial;
  }

  Result<Artifact> artifact_with(const Tiles& tiles) const {
    return make_artifact(*request_.kernel, {}, request_.dialect->info,
                         [&](const std::string& name) { return name == request_.variant ? tiles : Tiles(); });
  }

 private:
  const TuneRequest& request_;
  Launches& launches_;
  std::set<std::string> texts_;
};

double process_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

Result<Found> tune(const TuneRequest& request) {
  try {
    TENON_ASSIGN_OR_RETURN(const std::unique_ptr<Launches> launches,
                           Launches::make(request.device, request.dialect->info, *request.kernel, request.parameters,
                                          request.most_bytes, request.wait));
    Preparer preparer(request, launches.get());
    TENON_ASSIGN_OR_RETURN(const Artifact plain, preparer.artifact_with({}));
    const Variant* variant = variant_called(plain, request.variant);
    if (variant == nullptr) return Status(Code::internal, "A kernel has no variant of this name.");
    TENON_ASSIGN_OR_RETURN(const Kernel scheduled, parse_kernel(variant->schedule));
    Budget budget;
    const bool on_cpu = request.dialect->info.dialect == EP_DIALECT_C;
    budget.seconds = request.seconds > 0 ? request.seconds : on_cpu ? kSecondsCpu : kSecondsElsewhere;
    const std::vector<Tiles> all = candidates(scheduled);
    TENON_ASSIGN_OR_RETURN(Found found, search(all, std::ref(preparer), budget));
    TunedLine line;
    line.space = space_of(*request.kernel, request.variant);
    line.tiles = found.tiles;
    for (const int64_t size : request.parameters)
      line.sizes += fmt::format("{}{}", line.sizes.empty() ? "" : " ", size);
    line.default_us = 1e6 * found.default_seconds;
    line.best_us = 1e6 * found.best_seconds;
    DataBase& base = data_base_of(request.device, *request.dialect);
    found.kept = base.keep(line);
    if (!found.kept) {
      loader::log(loader::LogTopic::compile, loader::LogLevel::info,
                  fmt::format("the result for {} cannot be kept in '{}'.", plain.name, base.path()));
    }
    return found;
  } catch (const Error& error) {
    return error.status();
  }
}

bool is_tuned(const DeviceState* device, const Dialect& dialect, const Kernel& kernel, const std::string& variant) {
  return data_base_of(device, dialect).find(space_of(kernel, variant)).has_value();
}

TilesOf kept_tiles(const DeviceState* device, const Dialect& dialect, const Kernel& kernel) {
  return [&base = data_base_of(device, dialect), &kernel](const std::string& variant) {
    const std::optional<TunedLine> line = base.find(space_of(kernel, variant));
    return line ? line->tiles : Tiles();
  };
}

Status wait_until_spare(const DeviceState* device) {
  while (true) {
    if (CancellationScope::cancelled_here()) return {Code::cancelled, "The device or the process is ending."};
    const double before = process_seconds();
    std::this_thread::sleep_for(kMoment);
    const double used = process_seconds() - before;
    if (used < kBusy * std::chrono::duration<double>(kMoment).count() && vm::is_idle(device)) return {};
  }
}

}  // namespace tenon::codegen
