#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "loader/loader.h"
#include "loader/settings/settings.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/device_table.h"
#include "sdk/cli/table.h"
#include "sdk/report/report.h"

namespace tenon::cli {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool is_refused(const loader::Candidate& candidate) { return candidate.code == Code::invalid_argument; }

// True if the child process that probed it crashed, hung or gave no answer.
bool is_quarantined(const loader::Candidate& candidate) {
  return candidate.stage == loader::Stage::probed && candidate.code != Code::ok;
}

bool has_settings(const loader::Candidate& candidate) {
  return loader::settings().provider_values.count(candidate.provider) != 0;
}

// One sentence per wrong setting: of the loader, of the default device, and of providers that refused to start.
std::vector<std::string> wrong_settings(const Status& default_device,
                                        const std::vector<loader::Candidate>& candidates) {
  std::vector<std::string> sentences;
  const loader::Settings& settings = loader::settings();
  if (!settings.status.ok()) {
    sentences.push_back(settings.status.message());
  } else if (!default_device.ok() && !settings.device.empty()) {
    const std::string origin = loader::describe_origin("device", settings.origins.at("device"));
    const bool has_suggestion = !default_device.parts().suggestion.empty();
    sentences.push_back(fmt::format("the value '{}' of {} names no device that is there.{}", settings.device, origin,
                                    has_suggestion ? fmt::format(" {}", default_device.remedy()) : ""));
  }
  for (const loader::Candidate& candidate : candidates) {
    if (is_refused(candidate) && has_settings(candidate)) sentences.push_back(first_line(candidate.sentence));
  }
  return sentences;
}

void print_errors(const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences) std::fprintf(stderr, "tenon: %s\n", sentence.c_str());
  if (!sentences.empty()) std::fprintf(stderr, "  `tenon doctor` says more.\n");
}

}  // namespace

void apply(const ReportOptions& options) {
  if (options.probe) throw_if_error(loader::set_argument("probe", "all"));
}

int list_devices(const ReportOptions& options) {
  apply(options);
  const std::vector<loader::ListedDevice> devices = loader::list_devices();
  const Result<std::string> default_device = loader::resolve_device("");
  const std::string chosen = default_device.ok() ? default_device.value() : std::string();
  const std::vector<loader::Candidate> candidates = loader::explain();
  const std::vector<std::string> wrong =
      wrong_settings(default_device.ok() ? Status() : default_device.status(), candidates);
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const loader::ListedDevice& device : devices) list.push_back(report::device_json(device, chosen));
    const std::string error = wrong.empty() ? std::string() : wrong.front();
    nlohmann::json quarantined = nlohmann::json::array();
    for (const loader::Candidate& candidate : candidates) {
      if (is_quarantined(candidate)) quarantined.push_back(candidate.sentence);
    }
    const nlohmann::json all = {{"devices", list}, {"settings_error", error}, {"quarantined", quarantined}};
    std::printf("%s\n", report::json_text(all).c_str());
  } else if (!devices.empty()) {
    print_table(device_rows(devices, chosen));
  }
  std::fflush(stdout);
  std::vector<std::string> errors = wrong;
  if (devices.empty()) errors.insert(errors.begin(), "There is no device.");
  for (const loader::Candidate& candidate : candidates) {
    const bool is_named = is_quarantined(candidate) || (is_refused(candidate) && !has_settings(candidate));
    if (is_named) errors.push_back(first_line(candidate.sentence));
  }
  print_errors(errors);
  return devices.empty() || !wrong.empty() ? 1 : 0;
}

}  // namespace tenon::cli
