// FaultyMachine: the machine of the wrapped asynchronous fake. It can be opened again and repeats calls that failed.
#pragma once

#include "tests/e2e/faults/verdict.h"
#include "tests/unit/vm/async_machine.h"

namespace tenon::testing {

class FaultyMachine final : public AsyncMachine {
 public:
  // `verdict` checks the errors of failed attempts.
  explicit FaultyMachine(Verdict& verdict) : AsyncMachine("faulty"), verdict_(verdict) {}

  // Tries again until the fault has passed.
  bool open_again();
  // Retires the provider and checks that nothing of it is left.
  void close();

  // Repeats a call that failed before any submission. Returns the result of the last attempt.
  Result<StorageHandle> allocate(int device, uint64_t words) override;
  Status mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
             bool whole) override;

 private:
  template <class Try>
  auto persist(Try attempt);

  Verdict& verdict_;
};

}  // namespace tenon::testing
