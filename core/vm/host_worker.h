// HostWorker: a background thread that runs internal functions one after another. Internal to the library.
//
// Each function is an instruction. It begins when earlier ones have ended and its operands may be used; later users of
// an operand wait for it; its exception poisons the operands that it writes. It may wait for anything except
// instructions, and it submits none.
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
  // A worker that no other owner uses. Errors report its instructions on `device`, which must be the host device.
  static Result<HostWorker*> take(DeviceState* device);
  // Waits for its functions, then makes the worker available again. No other thread may use it meanwhile.
  void give_back();

  // Submits `function`, named `op` in errors (static). With TENON_VM=sync, returns the function's error.
  Status submit(const OpName& op, std::span<const Operand> operands, std::function<void()> function);
  // The number of functions that have not ended.
  uint64_t pending() const;
  // Waits for all functions that were submitted earlier. Their errors stay with the operands that they wrote.
  Status wait();

 private:
  explicit HostWorker(DeviceState* device);

  DeviceQueue* const queue_;  // never freed, like the queues of devices
  Stream* stream_ = nullptr;
};

}  // namespace tenon::vm
