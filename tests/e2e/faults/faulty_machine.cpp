#include "tests/e2e/faults/faulty_machine.h"

#include "core/background/cancellation.h"
#include "core/tensor/device.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "tests/fakes/faulty/faulty.h"

namespace tenon::testing {
namespace {

constexpr int kTries = 4;

}  // namespace

bool FaultyMachine::open_again() {
  for (int i = 0; i < kTries; ++i) {
    const Status status = open();
    if (status.ok()) return true;
    verdict_.check(status);
    if (status.code() == Code::device_lost) close();
  }
  return false;
}

void FaultyMachine::close() {
  drop_primitives();
  try {
    tenon::retire("faulty");
  } catch (const Error& error) {
    if (error.code() != Code::not_found) verdict_.fail(std::string("retiring: ") + error.what());
  }
  forget();
  if (const uint64_t left = fakes::async_control().allocated_bytes; left != 0) {
    verdict_.fail(fmt::format("{} bytes of device memory are left after retiring", left));
  }
}

template <class Try>
auto FaultyMachine::persist(Try attempt) {
  // Each attempt can be cancelled separately.
  const auto once = [&] {
    const Cancellation stop;
    fakes::faulty(0).on_cancel([stop] { stop.cancel(); });
    const CancellationScope scope(stop);
    return attempt();
  };
  auto result = once();
  for (int i = 1; i < kTries && !result.ok(); ++i) {
    verdict_.check(result.status());
    result = once();
  }
  return result;
}

Result<StorageHandle> FaultyMachine::allocate(int device, uint64_t words) {
  return persist([&] { return AsyncMachine::allocate(device, words); });
}

Status FaultyMachine::mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
                          bool whole) {
  const Result<Primitive*> made = persist([&] { return primitive(device, words); });
  if (!made.ok()) return made.status();
  return AsyncMachine::mix(device, stream, dst, a, b, words, tag, how, whole);
}

}  // namespace tenon::testing
