// FaultyMachine: the machine of the wrapped asynchronous fake, which can be opened anew and tries again what failed.
#pragma once

#include "tests/e2e/faults/verdict.h"
#include "tests/unit/vm/async_machine.h"

namespace tenon::testing {

class FaultyMachine final : public AsyncMachine {
 public:
  // Errors of tries are checked by `verdict`.
  explicit FaultyMachine(Verdict& verdict) : AsyncMachine("faulty"), verdict_(verdict) {}

  // As many tries as it takes one fault to pass.
  bool open_again();
  // Retires the provider, of which nothing may be left.
  void close();

  // What fails before anything is submitted is tried again; the answer is that of the last try.
  Result<StorageHandle> allocate(int device, uint64_t words) override;
  Status mix(int device, int stream, View dst, View a, View b, int64_t words, int64_t tag, int64_t how,
             bool whole) override;

 private:
  template <class Try>
  auto persist(Try attempt);

  Verdict& verdict_;
};

}  // namespace tenon::testing
