// Takes faults of kernels once a later event was seen, and handles the loss of a device. Under the launch right.
#include <algorithm>

#include "core/vm/command_list.h"
#include "core/vm/engine.h"
#include "core/vm/inline.h"
#include "core/vm/segment.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

constexpr int kTries = 3;  // attempts to take a fault

const OpName& called_op(const Slot& slot) {
  return slot.has_note && slot.note.called != nullptr ? *slot.note.called : *slot.op;
}

// The caller's name of operand `operand` of the launch; empty if unknown.
std::string_view slot_argument(const Slot& slot, int32_t operand) {
  return slot.has_note ? argument_name(called_op(slot), slot.note.operand_inputs, operand) : std::string_view();
}

Status lost_count() {
  return Status(Code::invalid_argument, "a kernel found invalid data, but the device does not say which kernel.");
}

// The error of the instruction in `slot`, which met the bad data of `fault`.
Status fault_error(const Slot& slot, const ep_fault& fault, const DeviceState* device) {
  if (slot.policy == Policy::graph) return graph_fault(*slot.extras.wide->graph, fault);
  if (slot.policy == Policy::segment) {
    const Segment& segment = *slot.extras.wide->segment;
    const uint64_t launch = Ticket{fault.tag}.number() - slot.first_tag;
    if (launch < segment.launches().size()) return node_fault(segment.name(launch), fault, device);
  }
  if (slot.policy == Policy::replay) {
    const Segment& segment = *slot.extras.wide->segment;
    const uint32_t launch = EP_FAULT_NODE(fault.flags);
    if (launch < segment.launches().size()) return node_fault(segment.name(launch), fault, device);
  }
  return slot_error(slot, fault_status(fault, slot_argument(slot, fault.operand)), device);
}

// The instruction in flight on `stream` that contains the launch with `tag`; none if it has retired.
uint64_t instruction_of(Stream& stream, uint64_t tag, uint64_t launched) {
  uint64_t low = stream.retired.load(std::memory_order_relaxed), high = launched;
  while (low < high) {  // the last one whose first tag is at most `tag` is in (low, high], or is `low`
    const uint64_t middle = low + (high - low + 1) / 2;
    if (stream.slot(middle).first_tag <= tag) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

Status slot_error(const Slot& slot, const Status& cause, const DeviceState* device) {
  const std::string what = slot.has_note ? call_text(slot.op->op, slot.note.inputs) : std::string();
  const Status status = launch_error(cause, called_op(slot).op, what, device);
  return slot.label == nullptr ? status : with_label(status, *slot.label, device->opened->spelling);
}

void DeviceQueue::take_faults(Stream& stream, uint64_t seen_before) {
  const uint64_t launched = stream.launched.load(std::memory_order_relaxed);
  for (int failed = 0;;) {
    ep_fault fault{};
    ep_error* error = nullptr;
    const ep_status code = device_->ops.stream_take_fault(stream.handle, &fault, &error);
    if (code != EP_STATUS_OK) {
      const Status status = loader::take_error(code, error, {});
      if (code == EP_STATUS_NOT_FOUND) return;
      if (code != EP_STATUS_DEVICE_LOST && ++failed < kTries) continue;
      lose(status.with_context(fmt::format("while taking faults of {}", device_->opened->spelling)));
      return fail_unknown(stream, seen_before);
    }
    stream.clean_scratch = 0;
    const uint64_t number = instruction_of(stream, Ticket{fault.tag}.number(), launched);
    const bool overflow = (fault.flags & EP_FAULT_FLAG_OVERFLOW) != 0;
    for (uint64_t i = overflow ? seen_before + 1 : number; i <= (overflow ? launched : number); ++i) {
      if (i <= stream.retired.load(std::memory_order_relaxed) || i > launched) continue;
      Slot& slot = stream.slot(i);
      if (slot.policy == Policy::replay) slot.extras.wide->list->soil();
      if (!slot.status.ok()) continue;
      slot.status = i == number ? fault_error(slot, fault, device_) : slot_error(slot, lost_count(), device_);
    }
  }
}

// The device is lost. It cannot be known whether the instructions after `seen_before` met bad data, so they fail.
void DeviceQueue::fail_unknown(Stream& stream, uint64_t seen_before) {
  stream.completed = stream.launched.load(std::memory_order_relaxed);
  for (uint64_t i = std::max(seen_before, stream.retired.load(std::memory_order_relaxed)) + 1; i <= stream.completed;
       ++i) {
    if (stream.slot(i).status.ok()) stream.slot(i).status = lost_;
  }
}

// The device is lost: launched instructions count as ended, the others fail. If the device itself did not report the
// loss, it may still access memory that will now be freed, so this function waits for it.
void DeviceQueue::lose(const Status& why) {
  if (!lost_.ok()) return;
  lost_ = Status(Code::device_lost, why.message(), why.remedy());
  for (uint16_t i = 0; i < stream_count() && why.code() != Code::device_lost; ++i) {
    if (!streams_[i]->on_host) static_cast<void>(synchronize(*streams_[i]));
  }
  for (uint16_t i = 0; i < stream_count(); ++i) {
    Stream& stream = *streams_[i];
    if (stream.on_host) continue;  // a running function finishes
    for (uint64_t n = stream.completed + 1; n <= stream.launched.load(std::memory_order_relaxed); ++n) {
      if (stream.slot(n).status.ok()) stream.slot(n).status = lost_;
    }
    stream.completed = stream.launched.load(std::memory_order_relaxed);
  }
}

}  // namespace tenon::vm
