// HostWorker: a thread beside the callers that runs functions of ours one after the other. Internal to the library.
//
// Each function is an instruction: it begins once those before it have ended and its operands may be used; who uses an
// operand later waits for it; what it throws is the poison of the operands that it writes. It may wait for whatever it
// likes but for instructions, and it submits none.
//
// Threads: every function is thread-safe.
#pragma once

#include <functional>
#include <span>

#include "core/device/call_site.h"
#include "core/device/device_state.h"
#include "core/vm/vm.h"
#include "primitives/status/status.h"

namespace tenon::vm {

struct Stream;

class HostWorker {
 public:
  // One that nobody else has. Errors name its instructions as those of `device`, which is the host's.
  static Result<HostWorker*> take(DeviceState* device);
  // Waits for its functions, then lets others have it. Nobody uses it meanwhile.
  void give_back();

  // Submits `function`, named `op` in errors (static). In TENON_VM=sync its error comes back here.
  Status submit(const OpName& op, std::span<const Operand> operands, std::function<void()> function);
  // How many functions have not ended.
  uint64_t pending() const;
  // Waits for all functions that were submitted before. Their errors stay with what they wrote.
  Status wait();

 private:
  explicit HostWorker(DeviceState* device);

  DeviceQueue* const queue_;  // never freed, as the queues of devices are not
  Stream* stream_ = nullptr;
};

}  // namespace tenon::vm
