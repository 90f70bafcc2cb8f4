#include "loader/probe/probe.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "loader/kept/kept.h"
#include "loader/log/log.h"
#include "loader/probe/cache.h"
#include "loader/probe/child.h"
#include "loader/search/search.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

// The prefixes of the drivers' own variables, which choose the driver that a plug-in uses.
constexpr std::string_view driver_variables[] = {"LD_",  "VK_",  "MESA_", "LIBGL_", "LP_", "CUDA_", "NVIDIA_",
                                                 "OCL_", "POCL", "HIP_",  "ROCR_",  "HSA", "ZE_",   "ONEAPI_"};

// Results expire, since a driver may be repaired or installed without a change to any file that the result depends on.
constexpr std::chrono::seconds lifetime_with_devices = std::chrono::hours(24);
constexpr std::chrono::seconds lifetime_without_devices = std::chrono::minutes(10);

// Everything that a result depends on besides files.
std::string question_of(const ProbedPlugin& plugin) {
  std::vector<std::string> lines;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const auto chooses = [&](std::string_view prefix) { return text.starts_with(prefix); };
    if (std::any_of(std::begin(driver_variables), std::end(driver_variables), chooses)) lines.emplace_back(text);
  }
  std::sort(lines.begin(), lines.end());
  for (const auto& [key, value] : plugin.values) lines.push_back(fmt::format("setting {}={}", key, value));
  std::string question = fmt::format("{}\n{}\n{} s\n", plugin.provider, plugin.file.path, settings().probe_seconds);
  for (const std::string& line : lines) question += line + "\n";
  return question;
}

std::string request_for(const ProbedPlugin& plugin) {
  Record request;
  request.add("provider", plugin.provider);
  request.add("path", plugin.file.path);
  request.add("state", file_state(plugin.file.path));
  for (const auto& [key, value] : plugin.values) {
    request.add("key", key);
    request.add("value", value);
  }
  return request.encode();
}

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  return name ? fmt::format("signal {} (SIG{})", number, name) : fmt::format("signal {}", number);
}

// The end of a sentence about the child's failure; empty if it answered.
std::string misdeed(const ChildRun& run) {
  const bool answered = Record::decode(run.answer).has_value();
  switch (run.end) {
    case ChildEnd::not_started: return fmt::format("could not be started: {}", std::strerror(run.number));
    case ChildEnd::died_of_signal: return fmt::format("died of {}", signal_text(run.number));
    case ChildEnd::overran: return fmt::format("did not end within {} s", settings().probe_seconds);
    case ChildEnd::exited: break;
  }
  if (run.number != 0) return fmt::format("ended with exit status {}", run.number);
  if (answered) return {};
  if (run.answer.empty()) return "ended without an answer";
  return fmt::format("answered with {} bytes that are not an answer", run.answer.size());
}

Status refusal(const std::string& provider, const ChildRun& run) {
  const std::string what = misdeed(run);
  if (what.empty()) return {};
  return Status(run.end == ChildEnd::overran ? Code::timeout : Code::internal,
                fmt::format("the provider '{}' was not loaded: the child process that probed it {}.{}", provider, what,
                            run.printed.empty() ? "" : fmt::format(" It printed: {}", run.printed)),
                fmt::format("Repair the provider '{}' or its driver, or remove the provider. `tenon doctor "
                            "--probe` probes it again; else this answer is kept for ten minutes.",
                            provider));
}

// The files that the result depends on. If the child did not answer, only the plug-in and the helper are known.
std::vector<std::string> files_of(const ProbedPlugin& plugin, const std::string& helper, const ChildRun& run) {
  const std::optional<Record> answer = Record::decode(run.answer);
  std::vector<std::string> files = answer ? answer->all("library") : std::vector<std::string>();
  files.push_back(plugin.file.path);
  files.push_back(helper);
  return files;
}

Result<std::string> trusted_helper(bool check_owners) {
  const std::string path = find_probe_helper(library_folder());
  if (path.empty()) return Status(Code::not_found, "the program tenon-probe is not installed with this library.");
  TENON_ASSIGN_OR_RETURN(const CheckedFile file, open_checked(path, check_owners));
  return file.path;
}

void warn_unprobed(const std::string& provider, const std::string& reason) {
  log(LogTopic::load, LogLevel::warning,
      fmt::format("the provider '{}' is loaded without having been probed in a child process: {}", provider, reason));
}

}  // namespace

std::string find_probe_helper(const std::string& folder) {
  for (const char* up : {"..", "../.."}) {
    std::string path = fmt::format("{}/{}/" TENON_LIBEXEC_FOLDER "/tenon/tenon-probe", folder, up);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

Status probe_plugin(const ProbedPlugin& plugin) {
  const Settings& current = settings();
  if (current.probe == Probe::off || (current.probe == Probe::flagged && !plugin.is_flagged)) return {};
  const bool check_owners = current.trust == Trust::owned;
  const std::string own = user_cache_folder();
  const ProbeCache cache(own.empty() ? own : fmt::format("{}/probes", own), plugin.provider, question_of(plugin));
  if (current.probe == Probe::flagged) {
    if (const std::optional<Status> known = cache.load()) return *known;
  }
  const Result<std::string> helper = trusted_helper(check_owners);
  if (!helper.ok()) {
    warn_unprobed(plugin.provider, helper.status().message());
    return {};
  }
  if (log_enabled(LogTopic::load, LogLevel::debug))
    log(LogTopic::load, LogLevel::debug, fmt::format("probing {} in a child process", plugin.file.path));
  const ChildRun run =
      run_child(helper.value(), request_for(plugin), std::chrono::milliseconds(1000) * current.probe_seconds);
  if (run.end == ChildEnd::not_started) {
    warn_unprobed(plugin.provider, fmt::format("'{}' {}.", helper.value(), misdeed(run)));
    return {};
  }
  Status answer = refusal(plugin.provider, run);
  const std::optional<Record> record = Record::decode(run.answer);
  const bool has_devices = answer.ok() && record && !record->all("device").empty();
  cache.store(answer, files_of(plugin, helper.value(), run),
              has_devices ? lifetime_with_devices : lifetime_without_devices);
  return answer;
}

}  // namespace tenon::loader
