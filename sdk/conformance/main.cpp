// tenon-conform: runs the conformance kit on one provider. `tenon conform` starts it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <span>

#include "loader/note/note.h"
#include "loader/trust/trust.h"
#include "primitives/text/format.h"
#include "primitives/text/progress.h"
#include "sdk/conformance/collectives/collectives.h"
#include "sdk/conformance/expectations.h"
#include "sdk/conformance/jobs.h"
#include "sdk/conformance/report.h"
#include "sdk/conformance/suite.h"

namespace tenon::conformance {
namespace {

struct Options {
  std::string path, expectations, junit, json, beside, devices;
  std::vector<std::string> cases, settings;
  uint32_t device = 0;
  double time_limit = 30;
  int jobs = 1;
  bool list = false, verbose = false, here = false;
};

int fail(const std::string& message, const std::string& remedy = {}) {
  std::fprintf(stderr, "tenon conform: %s\n", message.c_str());
  if (!remedy.empty()) std::fprintf(stderr, "  What to do: %s\n", remedy.c_str());
  return 2;
}

std::optional<loader::PluginNote> note_of(const std::string& path) {
  const auto file = loader::open_checked(path, false);
  if (!file.ok()) return std::nullopt;
  const auto note = loader::read_note(file->descriptor.get(), file->identity.size);
  return note.ok() ? std::optional(note.value()) : std::nullopt;
}

std::string provider_text(const std::string& path) {
  const std::optional<loader::PluginNote> note = note_of(path);
  if (!note) return {};
  return fmt::format("{} {}, ABI {}.{}, {}", note->name, note->version, note->abi_major, note->abi_minor,
                     note->toolchain);
}

Target target_of(const Options& options) {
  Target target{{}, {}, options.device};
  if (!options.path.empty()) target.path = std::filesystem::absolute(options.path).lexically_normal();
  for (const std::string& setting : options.settings) {
    const size_t equals = std::min(setting.find('='), setting.size());
    target.settings.emplace_back(setting.substr(0, equals), setting.substr(std::min(equals + 1, setting.size())));
  }
  return target;
}

// Returns the command that repeats a single case, quoted for a shell.
std::string command_text(const Options& options) {
  const auto quoted = [](const std::string& word) { return fmt::format("'{}'", word); };
  std::string command = fmt::format("tenon conform {}", quoted(options.path));
  if (options.device != 0) command += fmt::format(" --device {}", options.device);
  for (const std::string& setting : options.settings) command += fmt::format(" --set {}", quoted(setting));
  return command;
}

// Reads the file of claims: the file on the command line, or the one next to the library (libtenon_foo.expect for
// libtenon_foo.so).
Result<Expectations> find_expectations(const Options& options) {
  if (!options.expectations.empty()) return Expectations::read(options.expectations);
  const std::string beside = std::filesystem::path(options.path).replace_extension(".expect");
  if (std::filesystem::exists(beside)) return Expectations::read(beside);
  return Expectations();
}

bool write_file(const std::string& file, const std::string& text) {
  if (file == "-") return std::fputs(text.c_str(), stdout) >= 0;
  std::ofstream stream(file);
  stream << text;
  return static_cast<bool>(stream.flush());
}

class Run {
 public:
  Run(const Options& options, const Expectations& expectations, RunInfo info)
      : options_(options), expectations_(expectations), info_(std::move(info)), human_(options.json != "-") {}

  void run(const std::vector<Test>& tests);
  // Returns 0 if nothing failed, else 1.
  int report();

 private:
  void add(const Test& test, Finding finding);
  void run_chosen(std::span<const Test> tests);
  void print_failure(const Row& row);

  const Options& options_;
  const Expectations& expectations_;
  RunInfo info_;
  const bool human_;
  std::vector<Row> rows_;
  std::map<std::string, int> failures_;  // indexed by group
  std::optional<Progress> progress_;     // while run() runs
};

void Run::add(const Test& test, Finding finding) {
  rows_.push_back({&test, expectations_.judge(test.name, std::move(finding))});
  const Row& row = rows_.back();
  if (progress_) progress_->at(rows_.size(), test.name);
  if (!human_) return;
  const bool bad = is_bad(row.finding.outcome);
  if (progress_ && (bad || options_.verbose)) progress_->clear();
  if (bad) {
    print_failure(row);
  } else if (options_.verbose) {
    std::printf("%s %s%s%s\n", std::string(outcome_name(row.finding.outcome)).c_str(), test.name.c_str(),
                row.finding.sentence.empty() ? "" : ": ", row.finding.sentence.c_str());
    if (!row.finding.output.empty()) std::printf("  it printed: %s\n", row.finding.output.c_str());
  }
  std::fflush(stdout);
}

// Prints only the first failure of each group, because one broken kernel can fail hundreds of cases.
void Run::print_failure(const Row& row) {
  constexpr int shown = 5;
  const std::string group = group_of(row.test->name);
  const int number = ++failures_[group];
  if (number <= shown || options_.verbose) {
    std::fputs(failure_text(row, info_).c_str(), stdout);
  } else if (number == shown + 1) {
    std::printf("... and more of %s: the table counts them, --verbose prints them\n", group.c_str());
  }
}

void Run::run_chosen(std::span<const Test> tests) {
  std::vector<Test> to_run;
  std::vector<const Test*> originals;
  for (const Test& test : tests) {
    if (const Expectation* skip = expectations_.skip(test.name)) {
      add(test, {Outcome::skipped, fmt::format("skipped as the expectations say: {}", skip->reason), {}, 0});
    } else {
      to_run.push_back(test);
      originals.push_back(&test);
    }
  }
  const auto done = [&](size_t i, const Finding& finding) { add(*originals[i], finding); };
  if (options_.here) {
    run_here(to_run, done);
  } else if (options_.jobs > 1) {
    run_in_jobs(to_run, options_.time_limit, options_.jobs, done);
  } else {
    run_in_children(to_run, options_.time_limit, done);
  }
}

void Run::run(const std::vector<Test>& tests) {
  const auto begin = std::chrono::steady_clock::now();
  const bool whole = options_.cases.empty();
  progress_.emplace("starting", tests.size());
  const bool refused = [&] {
    if (!whole || options_.here) return false;
    run_chosen(std::span(tests).first(1));
    return is_bad(rows_.front().finding.outcome);
  }();
  if (refused) {
    for (size_t i = 1; i < tests.size(); ++i) {
      rows_.push_back({&tests[i], {Outcome::skipped, "the loader refuses the provider.", {}, 0}});
    }
  } else {
    run_chosen(std::span(tests).subspan(whole && !options_.here ? 1 : 0));
  }
  progress_.reset();
  info_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int Run::report() {
  if (human_) std::fputs(table_text(rows_, info_).c_str(), stdout);
  if (human_ && !expectations_.given()) {
    std::printf(
        "No file of expectations: what it does not claim was counted as skipped, not judged. --help says how to write "
        "one.\n");
  }
  if (!options_.json.empty() && !write_file(options_.json, json_text(rows_, info_))) {
    return fail(fmt::format("'{}' cannot be written.", options_.json));
  }
  if (!options_.junit.empty() && !write_file(options_.junit, junit_text(rows_, info_))) {
    return fail(fmt::format("'{}' cannot be written.", options_.junit));
  }
  return std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return is_bad(row.finding.outcome); }) ? 1 : 0;
}

int list(const std::vector<Test>& tests) {
  for (const Test& test : tests) {
    std::printf("%s%s%s\n", test.name.c_str(), test.claim.empty() ? "" : "\t", test.claim.c_str());
  }
  return 0;
}

// Plug-ins that move data between processes have their own tests, which every rank runs.
int run_collectives(const Options& options) {
  if (!options.cases.empty() || !options.expectations.empty() || !options.junit.empty() || !options.json.empty() ||
      options.list || options.here || options.jobs != 1) {
    return fail(
        "a plug-in that carries data between processes accepts only --set, --time-limit, --verbose, --beside and "
        "--devices.",
        "mpirun -n 3 tenon conform path/to/libtenon_foo.so");
  }
  const Target target = target_of(options);
  const auto whole = [](const std::string& path) {
    return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
  };
  return check_collectives(target.path, target.settings, options.time_limit, options.verbose,
                           {whole(options.beside), whole(options.devices)});
}

int run(const Options& options) {
  const std::optional<loader::PluginNote> note = options.path.empty() ? std::nullopt : note_of(options.path);
  if (note && note->kind == EP_PLUGIN_KIND_COLLECTIVES) return run_collectives(options);
  if (!options.beside.empty() || !options.devices.empty()) {
    return fail("--beside and --devices are for plug-ins that carry data between processes.");
  }
  const auto expectations = find_expectations(options);
  if (!expectations.ok()) return fail(expectations.status().message(), expectations.status().remedy());
  std::vector<Test> tests = make_suite(target_of(options), expectations.value());
  if (const Status known = expectations->check(tests); !known.ok()) return fail(known.message(), known.remedy());
  if (!options.cases.empty()) {
    for (const std::string& pattern : options.cases) {
      const bool any = std::any_of(tests.begin(), tests.end(), [&](const Test& t) { return matches(pattern, t.name); });
      if (!any) return fail(fmt::format("no test is called '{}'.", pattern), suggestion(pattern, tests));
    }
    std::erase_if(tests, [&](const Test& test) {
      return std::none_of(options.cases.begin(), options.cases.end(),
                          [&](const std::string& pattern) { return matches(pattern, test.name); });
    });
  }
  if (options.list) return list(tests);
  if (options.path.empty()) return fail("which provider?", "tenon conform path/to/libtenon_foo.so");
  if (!std::filesystem::exists(options.path)) return fail(fmt::format("there is no file '{}'.", options.path));
  RunInfo info{options.path, provider_text(options.path), command_text(options)};
  if (options.json != "-") {
    std::printf("tenon conform %s (%s)\n", info.path.c_str(),
                info.provider.empty() ? "its note cannot be read" : info.provider.c_str());
  }
  Run run(options, expectations.value(), info);
  run.run(tests);
  return run.report();
}

void add_options(CLI::App* app, Options* options) {
  app->add_option("PATH", options->path, "The provider: path/to/libtenon_foo.so");
  app->add_option("--case,-c", options->cases,
                  "Only these tests: names or patterns (* and ?: '*odd*'), with commas between them; more than once")
      ->allow_extra_args(false)
      ->delimiter(',');
  app->add_option("--expect", options->expectations,
                  "File of expectations; without it libtenon_foo.expect beside the library, if there is one");
  app->add_option("--device", options->device, "Number of the device")->capture_default_str();
  app->add_option("--set", options->settings, "KEY=VALUE: a setting of the provider; more than once")
      ->allow_extra_args(false);
  app->add_option("--beside", options->beside, "The plug-in that finds the ranks, for one that joins by tickets");
  app->add_option("--devices", options->devices, "The provider of the devices whose memory that one takes");
  app->add_option("--time-limit", options->time_limit,
                  "Seconds without a new call of the plug-in after which a test is hung; an exchange may take so long")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  app->add_option("--jobs,-j", options->jobs, "How many tests run at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app->add_option("--junit", options->junit, "Write JUnit XML to this file");
  app->add_option("--json", options->json,
                  "Write JSON to this file; - is standard output, which then holds nothing else");
  app->add_flag("--list", options->list, "Print the names of the tests and what each holds a provider to");
  app->add_flag("--verbose,-v", options->verbose, "Print every test, and why one is skipped");
  app->add_flag("--in-process", options->here, "No child processes: for a debugger");
  app->footer(
      "Expectations are lines: 'supports PATTERN' (unsupported is then a failure), 'supports nothing',\n"
      "'fails PATTERN WHY' (a known defect), 'skips PATTERN WHY', '# ...'. A pattern may leave out 'primitives/'.\n"
      "Exit code: 0 nothing failed, 1 something failed, crashed, hung or passed unexpectedly, 2 wrong arguments.");
}

}  // namespace
}  // namespace tenon::conformance

int main(int argc, char** argv) {
  tenon::conformance::Options options;
  CLI::App app{"Holds a provider to the contract of ep_api and its primitives to the reference.", "tenon conform"};
  tenon::conformance::add_options(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return tenon::conformance::run(options);
}
