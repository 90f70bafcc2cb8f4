#include "sdk/conformance/contract/contract.h"

#include <algorithm>
#include <string_view>

#include "sdk/conformance/contract/foundation.h"
#include "sdk/conformance/contract/sample.h"
#include "sdk/conformance/primitive/check.h"

namespace tenon::conformance {
namespace {

Status bring(const ContractTest& test, Subject& subject) {
  switch (test.needs) {
    case Needs::nothing: return {};
    case Needs::library: return subject.load();
    case Needs::plugin: return subject.start();
    default: break;
  }
  TENON_RETURN_IF_ERROR(subject.open());
  if (test.needs == Needs::events && !subject.has_events()) {
    return skipped("the device is synchronous and has no events.");
  }
  if (test.needs == Needs::primitives && find_samples(subject).empty()) {
    return skipped("it supports none of the cases of the primitives.");
  }
  return {};
}

}  // namespace

Status run_contract_test(const ContractTest& test, const Target& target) {
  Subject subject(target);
  Status status = bring(test, subject);
  if (status.ok()) status = test.run(subject);
  subject.close();
  if (status.code() == skip_code) return status;
  const Status violation = subject.host.take_violation();
  return violation.ok() ? explain(target, std::move(status)) : violation;
}

std::vector<uint8_t> random_bytes(size_t size, uint64_t seed) {
  std::vector<uint8_t> bytes(size);
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 0x1234567;
  for (uint8_t& byte : bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<uint8_t>(1 + (state >> 33) % 255);
  }
  return bytes;
}

namespace {

Status exercise_transfers(Subject& subject, const Stream& stream) {
  const uint64_t begin = subject.granularity();  // the smallest offset above 0 where a copy may begin
  TENON_ASSIGN_OR_RETURN(const Memory first, subject.allocate(5000));
  TENON_ASSIGN_OR_RETURN(const Memory second, subject.allocate(5000 + begin));
  const std::vector<uint8_t> sent = random_bytes(4999, 3);
  std::vector<uint8_t> received(sent.size(), 0);
  const Drain drain(subject, stream);
  TENON_RETURN_IF_ERROR(subject.upload(stream, first, 0, sent));
  TENON_RETURN_IF_ERROR(subject.copy(stream, second, begin, first, 0, sent.size()));
  TENON_RETURN_IF_ERROR(subject.download(stream, second, begin, received));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  return sent == received ? Status() : broken("M08", "the downloaded bytes differ from the uploaded bytes");
}

Status exercise(Subject& subject, size_t from, size_t to) {
  TENON_RETURN_IF_ERROR(subject.open());
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  TENON_RETURN_IF_ERROR(exercise_transfers(subject, stream));
  const std::vector<cases::Case>& samples = find_sound_samples(subject);
  for (size_t i = from; i < std::min(to, samples.size()); ++i) {
    const Status status = run_case(subject, stream, samples[i]);
    if (!status.ok() && status.code() != skip_code) return status;
  }
  TENON_RETURN_IF_ERROR(exercise_interop(subject, stream));
  TENON_RETURN_IF_ERROR(exercise_lists(subject, stream));
  return exercise_graphs(subject, stream);
}

}  // namespace

Status exercise(Subject& subject) { return exercise(subject, 0, ~size_t{0}); }
Status exercise(Subject& subject, size_t only) { return exercise(subject, only, only + 1); }

}  // namespace tenon::conformance
