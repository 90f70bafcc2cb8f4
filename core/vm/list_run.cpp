// Runs of command lists: a replay is one instruction of a stream.
#include <vector>

#include "core/device/process.h"
#include "core/device/trace.h"
#include "core/vm/command_list.h"
#include "core/vm/engine.h"
#include "primitives/text/format.h"

namespace tenon::vm {

Status CommandList::check(std::span<const Operand> bindings) const {
  const DeviceState* device = segment_->device();
  if (handle_ == nullptr) {
    return Status(Code::cancelled, fmt::format("The provider of {} was retired.", device->opened->spelling),
                  "Open the device again, and prepare the program again.");
  }
  if (bindings.size() != bindings_.size()) {
    return Status(Code::invalid_argument, fmt::format("A command list has {} bindings, but a run gives {}.",
                                                      bindings_.size(), bindings.size()));
  }
  for (size_t i = 0; i < bindings.size(); ++i) {
    const Operand& was = bindings_[i].operand;
    if (bindings_[i].moving_bytes != 0) continue;
    if (bindings[i].storage == was.storage && bindings[i].offset == was.offset) continue;
    return Status(Code::invalid_argument,
                  fmt::format("Binding {} of a command list has a fixed address, but the run gives other memory.", i));
  }
  return Status();
}

// All are instructions: the replay waits for these copies, and later readers wait for the copies of copy_out.
Status CommandList::copy_in(std::span<const Operand> bindings) const {
  for (const uint32_t index : moving_) {
    const Operand& given = bindings[index];
    if (given.write && given.whole) continue;
    const Operand own(kept_[index].get(), 0, true, true);
    TENON_RETURN_IF_ERROR(
        copy(own, Operand(given.storage, given.offset, false, false), bindings_[index].moving_bytes, {}));
  }
  return Status();
}

Status CommandList::copy_out(std::span<const Operand> bindings) const {
  for (const uint32_t index : moving_) {
    if (!bindings[index].write) continue;
    const Operand own(kept_[index].get(), 0, false, false);
    TENON_RETURN_IF_ERROR(copy(bindings[index], own, bindings_[index].moving_bytes, {}));
  }
  return Status();
}

// Zeroes the scratch before the first replay, and after one that failed.
Status CommandList::clean_scratch() {
  if (!scratch_ || !soiled_.load(std::memory_order_relaxed)) return Status();
  const std::vector<char> zeros(segment_->scratch_bytes());
  TENON_RETURN_IF_ERROR(upload(Operand(scratch_.get(), 0, true, true), zeros.data(), zeros.size(), {}));
  soiled_.store(false, std::memory_order_relaxed);
  return Status();
}

Status CommandList::replay(std::span<const Operand> bindings, uint16_t stream) {
  std::vector<Operand> operands;
  for (size_t i = 0; i < bindings.size(); ++i) {
    Operand operand = recorded(i);
    if (bindings_[i].moving_bytes == 0 || device_moves_) operand = bindings[i];
    operand.write = bindings[i].write;
    operand.whole = bindings[i].whole;
    operands.push_back(operand);
  }
  // An earlier failure no longer matters once the scratch is zero again.
  if (scratch_) operands.emplace_back(scratch_.get(), 0, true, true);
  const SegmentRun run{segment_.get(), bindings, stream};
  Request request;
  request.policy = Policy::replay;
  request.stream = &segment_->device()->queue->stream(stream);
  request.segment = &run;
  request.list = this;
  request.op = &kReplay;
  request.operands = operands;
  replays_.fetch_add(1, std::memory_order_relaxed);
  return submit_and_follow(request, false, &last_);
}

Status CommandList::run(std::span<const Operand> bindings, uint16_t stream) {
  TENON_RETURN_IF_ERROR(process::usable());
  const std::lock_guard lock(mutex_);
  TENON_RETURN_IF_ERROR(check(bindings));
  TENON_RETURN_IF_ERROR(check_stream(segment_->device(), stream));
  if (last_ && !is_done(last_)) return vm::run(SegmentRun{segment_.get(), bindings, stream});
  TraceScope trace(kReplay.op, "submit", segment_->device());
  TENON_RETURN_IF_ERROR(clean_scratch());
  if (device_moves_ || moving_.empty()) return replay(bindings, stream);
  TENON_RETURN_IF_ERROR(copy_in(bindings));
  TENON_RETURN_IF_ERROR(replay(bindings, stream));
  return copy_out(bindings);
}

}  // namespace tenon::vm
