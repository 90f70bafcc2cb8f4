// Runs the shared cases on one provider, through the raw C ABI, against the reference:
//
//   provider_cases path/to/libtenon_x.so [filter] [--device N] [--expect kind,kind...] [--set key=value]
//       [--list] [--verbose]
//
// `filter` is part of a case's name. What the provider does not support is counted, not failed, unless --expect names
// its kind and it is an f32 case. Each case runs with static dims, with dims and strides given at launch where the
// provider says it can, and in place where the kind allows it. Ends with 0 if nothing failed.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "primitives/descriptor/descriptor.h"
#include "primitives/reference/reference.h"
#include "primitives/status/sentence.h"
#include "primitives/table/table.h"
#include "tests/cases/image.h"
#include "tests/cases/provider.h"

namespace tenon::cases {
namespace {

struct Options {
  std::string library;
  std::string filter;
  std::string expect;  // ",kind,kind,"
  Settings settings;
  uint32_t device = 0;
  bool list = false;
  bool verbose = false;
};

struct Tally {
  int passed = 0;
  int failed = 0;
  int unsupported = 0;
};

// What a crash is to be blamed on.
char current_case[512] = "none";

void report_crash(int signal_number) {
  const char head[] = "\ncrashed in case ";
  (void)!write(STDERR_FILENO, head, sizeof(head) - 1);
  (void)!write(STDERR_FILENO, current_case, std::strlen(current_case));
  (void)!write(STDERR_FILENO, "\n", 1);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// Dims and strides left to the launch, as far as `flags` allow; 0 and 1 among the strides keep their value.
ep_primitive_desc with_any(ep_primitive_desc desc, uint64_t flags) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    ep_operand_desc& operand = desc.operands[i];
    for (int32_t axis = 0; axis < operand.rank; ++axis) {
      if (flags & EP_SUPPORT_FLAG_ANY_DIMS) operand.dims[axis] = EP_ANY;
      if (flags & EP_SUPPORT_FLAG_ANY_STRIDES && operand.strides[axis] > 1) operand.strides[axis] = EP_ANY;
    }
  }
  return desc;
}

// What the provider's terms ask of the host: scalars in the descriptor, better aligned operands.
ep_primitive_desc on_terms(const Case& test, const ep_primitive_desc& asked, const ep_support_info& terms) {
  ep_primitive_desc desc = asked;
  for (uint32_t slot = 0; slot < EP_MAX_SCALARS && slot < test.scalars.size(); ++slot) {
    if ((terms.baked_scalars >> slot & 1) == 0) continue;
    desc.baked_scalars |= uint32_t{1} << slot;
    desc.scalars[slot] = test.scalars[slot];
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    desc.operands[i].alignment = std::max(desc.operands[i].alignment, terms.alignment[i]);
  }
  return desc;
}

class Runner {
 public:
  Runner(Provider* provider, const Options& options) : provider_(*provider), options_(options) {}

  void run(const Case& test);
  // Prints the table; true if nothing failed.
  bool report() const;

 private:
  Status run_modes(const Case& test, const ep_support_info& terms);
  Status run_mode(const Case& test, const ep_primitive_desc& launched, bool in_place);
  void refused(const Case& test, const Status& status);

  Provider& provider_;
  const Options& options_;
  std::map<int32_t, Tally> tallies_;
  std::map<std::string, int> reasons_;
  std::vector<std::string> failures_;
};

Status Runner::run_mode(const Case& test, const ep_primitive_desc& launched, bool in_place) {
  ep_primitive_desc fixed = launched;
  for (uint32_t i = 0; i < fixed.operand_count; ++i) {
    std::copy_n(test.desc.operands[i].dims, EP_MAX_RANK, fixed.operands[i].dims);
    std::copy_n(test.desc.operands[i].strides, EP_MAX_RANK, fixed.operands[i].strides);
  }
  Image start = make_image(fixed, in_place);
  fill_inputs(test, fixed, &start);
  Image want = start;
  Image got = start;
  std::vector<void*> addresses;
  for (uint32_t i = 0; i < fixed.operand_count; ++i) addresses.push_back(want.address(i));
  ep_fault want_fault = {};
  const Status expected = reference::run(fixed, addresses.data(), test.scalars.data(),
                                         static_cast<uint32_t>(test.scalars.size()), &want_fault);
  if (!expected.ok() && expected.code() != Code::fault) return expected.with_context("  in the reference");
  if (want_fault.code != test.fault) {
    return Status(Code::internal, sentence("the reference met fault ", want_fault.code, ", not ", test.fault, "."));
  }
  ep_fault fault = {};
  const Status status = provider_.run({&launched, &fixed, test.scalars, got.offsets, &got.bytes, &fault});
  if (!status.ok() && status.code() != Code::fault) return status;
  if (status.ok() != expected.ok()) {
    return Status(Code::internal, status.ok() ? sentence("fault ", test.fault, " was not reported.")
                                              : sentence("an unexpected fault: ", status.message()));
  }
  if (!status.ok() && (fault.code != want_fault.code || fault.operand != want_fault.operand)) {
    return Status(Code::internal,
                  sentence("fault ", fault.code, " of operand ", fault.operand, " was reported instead of fault ",
                           want_fault.code, " of operand ", want_fault.operand, "."));
  }
  return compare_images(test, fixed, start, std::move(got), std::move(want));
}

Status Runner::run_modes(const Case& test, const ep_support_info& terms) {
  const ep_primitive_desc fixed = on_terms(test, test.desc, terms);
  const Status plain = run_mode(test, fixed, false);
  if (!plain.ok()) return plain;
  if (can_run_in_place(fixed)) {
    const Status status = run_mode(test, fixed, true);
    if (!status.ok()) return status.with_context("  while running in place");
  }
  const uint64_t any = terms.flags & (EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES);
  if (any == 0) return {};
  const ep_primitive_desc open = with_any(test.desc, any);
  const auto open_terms = provider_.support(open);
  if (!open_terms.ok())
    return open_terms.status().with_context("  though it said that dims or strides may be given at launch");
  const Status status = run_mode(test, on_terms(test, open, *&open_terms.value()), false);
  return status.ok() ? status : status.with_context("  with dims or strides given at launch");
}

void Runner::refused(const Case& test, const Status& status) {
  const std::string kind = table::kind_name(test.desc.kind);
  const bool f32 = test.name.find("/f32/") != std::string::npos;
  if (f32 && options_.expect.find("," + kind + ",") != std::string::npos) {
    ++tallies_[test.desc.kind].failed;
    failures_.push_back(sentence(test.name, ": unsupported, though expected: ", status.message()));
    return;
  }
  ++tallies_[test.desc.kind].unsupported;
  ++reasons_[kind + ": " + status.message()];
  if (options_.verbose) std::printf("unsupported %s: %s\n", test.name.c_str(), status.message().c_str());
}

void Runner::run(const Case& test) {
  std::snprintf(current_case, sizeof(current_case), "%s", test.name.c_str());
  if (options_.verbose) std::printf("case %s\n", test.name.c_str());
  const auto terms = provider_.support(test.desc);
  Status status = terms.status();
  if (status.ok()) status = run_modes(test, terms.value());
  if (status.code() == Code::unsupported) return refused(test, status);
  if (status.ok()) {
    ++tallies_[test.desc.kind].passed;
    return;
  }
  ++tallies_[test.desc.kind].failed;
  const std::string implementation =
      terms.ok() ? std::string(terms->implementation.data, terms->implementation.size) : "none";
  failures_.push_back(
      sentence(test.name, " (", implementation, "): ", status.message(), "\n    ", descriptor::to_string(test.desc)));
}

bool Runner::report() const {
  constexpr size_t shown = 20;
  for (size_t i = 0; i < std::min(failures_.size(), shown); ++i) {
    const std::string name = failures_[i].substr(0, failures_[i].find_first_of(" :"));
    std::printf("FAILED %s\n    provider_cases '%s' '%s'\n", failures_[i].c_str(), options_.library.c_str(),
                name.c_str());
  }
  if (failures_.size() > shown) std::printf("... and %zu more failures\n", failures_.size() - shown);
  if (!options_.verbose && !reasons_.empty())
    std::printf("%zu reasons for 'unsupported'; --verbose lists them\n", reasons_.size());
  Tally total;
  std::printf("%-14s %8s %8s %12s\n", "kind", "passed", "failed", "unsupported");
  for (const auto& [kind, tally] : tallies_) {
    std::printf("%-14s %8d %8d %12d\n", table::kind_name(kind).c_str(), tally.passed, tally.failed, tally.unsupported);
    total.passed += tally.passed;
    total.failed += tally.failed;
    total.unsupported += tally.unsupported;
  }
  std::printf("%d passed, %d failed, %d unsupported\n", total.passed, total.failed, total.unsupported);
  return total.failed == 0;
}

bool parse_options(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--list") {
      options->list = true;
    } else if (word == "--verbose") {
      options->verbose = true;
    } else if (word == "--expect" && has_value) {
      options->expect = sentence(',', std::string_view(argv[++i]), ',');
    } else if (word == "--device" && has_value) {
      options->device = static_cast<uint32_t>(std::atoi(argv[++i]));
    } else if (word == "--set" && has_value) {
      const std::string setting = argv[++i];
      const size_t equals = std::min(setting.find('='), setting.size());
      options->settings.emplace_back(setting.substr(0, equals), setting.substr(std::min(equals + 1, setting.size())));
    } else if (word.starts_with("--")) {
      return false;
    } else if (options->library.empty() && !options->list) {
      options->library = word;
    } else if (options->filter.empty()) {
      options->filter = word;
    } else {
      return false;
    }
  }
  return options->list || !options->library.empty();
}

int run_all(const Options& options) {
  const std::vector<Case> cases = all_cases();
  const auto chosen = [&](const Case& test) { return test.name.find(options.filter) != std::string::npos; };
  if (options.list) {
    for (const Case& test : cases) {
      if (chosen(test)) std::printf("%s\t%s\n", test.name.c_str(), descriptor::to_string(test.desc).c_str());
    }
    return 0;
  }
  auto provider = Provider::open(options.library, options.device, options.settings);
  if (!provider.ok()) {
    std::fprintf(stderr, "provider_cases: %s\n", provider.status().message().c_str());
    return 2;
  }
  for (int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) signal(number, report_crash);
  Runner runner(provider.value().get(), options);
  for (const Case& test : cases) {
    if (chosen(test)) runner.run(test);
  }
  std::snprintf(current_case, sizeof(current_case), "none: closing the device");
  const bool passed = runner.report();
  const Status closed = provider.value()->close();
  if (!closed.ok()) std::printf("FAILED closing: %s\n", closed.message().c_str());
  return passed && closed.ok() ? 0 : 1;
}

}  // namespace
}  // namespace tenon::cases

int main(int argc, char** argv) {
  tenon::cases::Options options;
  if (!tenon::cases::parse_options(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: provider_cases path/to/libtenon_x.so [filter] [--device N] [--expect kind,kind...]\n"
                 "       [--set key=value] [--verbose]\n"
                 "       provider_cases --list [filter]\n");
    return 2;
  }
  return tenon::cases::run_all(options);
}
