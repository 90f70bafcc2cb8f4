#include "sdk/conformance/suite.h"

#include <memory>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/foundation.h"
#include "sdk/conformance/primitive/check.h"

namespace tenon::conformance {
namespace {

// The device and stream that all primitive cases of one process share.
class OpenDevice {
 public:
  explicit OpenDevice(const Target& target) : subject_(target) {}

  Status run(const cases::Case& test) {
    TENON_RETURN_IF_ERROR(open());
    return explain(subject_.target, check_case(subject_, stream_, test));
  }

  Status close() {
    TENON_RETURN_IF_ERROR(open());
    stream_.reset();
    subject_.close();
    TENON_RETURN_IF_ERROR(subject_.host.take_violation());
    if (subject_.host.bytes_held() == 0 && subject_.host.errors_alive() == 0) return {};
    return broken(
        "L01", "after all cases the plug-in was shut down and still holds {} bytes of the host's memory and {} errors",
        subject_.host.bytes_held(), subject_.host.errors_alive());
  }

 private:
  Status open() {
    if (stream_.get() != nullptr) return {};
    TENON_RETURN_IF_ERROR(subject_.open());
    TENON_ASSIGN_OR_RETURN(stream_, subject_.make_stream());
    return {};
  }

  Subject subject_;
  Stream stream_;
};

// Returns an empty string if the provider supports one of the cases, else the reason of the last refusal.
Result<std::string> why_nothing(Subject& subject) {
  const Status opened = subject.open();
  if (opened.code() == skip_code) return opened.message();
  TENON_RETURN_IF_ERROR(opened);
  std::string why;
  for (const cases::Case& one : cases::all_cases()) {
    const auto terms = ask_support(subject, one.desc);
    if (terms.ok()) return std::string();
    why = terms.status().sentence();
  }
  return why;
}

Status check_claims(const Target& target, bool claims_nothing) {
  Subject subject(target);
  const auto why = why_nothing(subject);
  if (!why.ok()) return skipped("the device cannot be opened: {}", why.status().message());
  if (!why->empty() && !claims_nothing) {
    return broken("P12", "it supports none of the cases, and no file of expectations says 'supports nothing' ({})",
                  why.value());
  }
  if (why->empty() && claims_nothing) {
    return broken("P12", "the expectations say 'supports nothing', and it supports some cases");
  }
  return {};
}

}  // namespace

std::vector<Test> make_suite(const Target& target, const Expectations& expectations) {
  std::vector<Test> tests;
  for (const ContractTest& test : contract_tests()) {
    tests.push_back({test.name, test.rule, test.claim, [&test, target] { return run_contract_test(test, target); }});
  }
  const auto device = std::make_shared<std::unique_ptr<OpenDevice>>();
  const auto get = [device, target]() -> OpenDevice& {
    if (*device == nullptr) *device = std::make_unique<OpenDevice>(target);
    return **device;
  };
  for (const cases::Case& one : cases::all_cases()) {
    std::string name = fmt::format("primitives/{}", one.name);
    tests.push_back({std::move(name), "P14", "", [get, &one] { return get().run(one); }, true});
  }
  tests.push_back({"primitives/closing", "L01", "After all cases it holds no memory of the host.",
                   [get] { return get().close(); }, true, true});
  tests.push_back({"claims/stated", "P12",
                   "A provider must support at least one case, unless it is expected to support none.",
                   [target, nothing = expectations.claims_nothing()] { return check_claims(target, nothing); }});
  return tests;
}

}  // namespace tenon::conformance
