#include "core/vm/vm.h"

#include "core/vm/inline.h"
namespace tenon::vm {
Status launch(const OpLaunch& launch, std::span<const Ticket> waits) { return inline_launch(launch, waits); }
Status copy(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  return inline_copy(dst, src, bytes, waits);
}
Status upload(const Operand& dst, const void* src, uint64_t bytes, std::span<const Ticket> waits) {
  return inline_upload(dst, src, bytes, waits);
}
Status download(void* dst, const Operand& src, uint64_t bytes) { return inline_download(dst, src, bytes); }
Status settle(Storage*, bool, bool) { return Status(); }
Status synchronize(DeviceState*) { return Status(); }
void pending_uses(Storage*, std::vector<Ticket>*) {}
bool is_done(Ticket) { return true; }
Status wait(Ticket) { return Status(); }
void run_deleter(std::function<void()> deleter) { deleter(); }
Result<uint16_t> create_stream(DeviceState*) { return uint16_t{0}; }
uint16_t current_stream(DeviceState*) { return 0; }
void set_current_stream(DeviceState*, uint16_t) {}
Status attach(DeviceState* device) {
  if (device->synchronous) return Status();
  return Status(Code::unsupported, device->opened->spelling + " is asynchronous.");
}
}  // namespace tenon::vm
