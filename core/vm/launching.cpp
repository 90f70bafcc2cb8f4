// Launching: DeviceQueue hands instructions to the provider, in ticket order, under the launch right.
#include <algorithm>
#include <utility>

#include "core/device/trace.h"
#include "core/vm/command_list.h"
#include "core/vm/engine.h"
#include "core/vm/granular.h"
#include "core/vm/inline.h"
#include "core/vm/rules.h"
#include "core/vm/segment.h"

namespace tenon::vm {
namespace {

constexpr uint64_t kEventEvery = 128;  // instructions without a mark before one is made

}  // namespace

// Launches the ready instructions of `stream`, at most `budget`. Returns how many it launched.
uint64_t DeviceQueue::launch_ready(Stream& stream, uint64_t budget) {
  const uint64_t first = stream.launched.load(std::memory_order_relaxed);
  const uint64_t last = std::min(stream.submitted.load(std::memory_order_acquire), first + budget);
  uint64_t number = first;
  while (number < last) {
    if (stream.on_host && stream.completed != number) break;
    Slot& slot = stream.slot(number + 1);
    if (lost_.ok() && !slot.deps.empty() && !wait_dependences(stream, slot)) break;
    launch_slot(stream, slot, ++number);
    stream.launched.store(number, std::memory_order_release);
    if (stream.on_host) continue;
    if (number - stream.marked >= kEventEvery || slot.awaited.load(std::memory_order_relaxed)) make_mark(stream);
  }
  return number - first;
}

// Makes `stream` wait for all dependences of `slot`. False if that is not possible yet: a dependence is not launched,
// or it is not done and only the host can wait for it (another device, or the stream of functions).
bool DeviceQueue::wait_dependences(Stream& stream, Slot& slot) {
  Engine& all = engine();
  for (Ticket ticket : slot.deps) {
    Stream& other = all.stream(ticket);
    if (other.done(ticket.number())) continue;
    if (other.queue != this || other.on_host || stream.on_host) return false;
    if (other.launched.load(std::memory_order_relaxed) < ticket.number()) return false;
  }
  for (Ticket ticket : slot.deps) {
    Stream& other = all.stream(ticket);
    if (other.done(ticket.number())) continue;
    EventMark* mark = event_covering(other, ticket.number());
    if (mark == nullptr) continue;
    ep_error* error = nullptr;
    const ep_status code = device_->ops.stream_wait_event(stream.handle, mark->handle, &error);
    if (code != EP_STATUS_OK) wait_instead(other, EventCall::stream_wait, code, error);
  }
  return true;
}

void DeviceQueue::launch_slot(Stream& stream, Slot& slot, uint64_t number) {
  if (slot.submitted_ns != 0) [[unlikely]]
    slot.launched_ns = trace_now();
  if (Status why = why_skipped(slot); !why.ok()) slot.status = std::move(why);
  if (stream.on_host) return launch_on_host(stream, slot, number);
  if (slot.status.ok()) {
    const bool timed = slot.submitted_ns != 0 && stream.times != nullptr;
    if (timed) stream.times->begin(number);
    Status launched = call_provider(stream, slot);
    if (timed) stream.times->end(number);
    if (launched.ok()) [[likely]]
      return;
    slot.status = std::move(launched);
  }
  stream.failed_launch = number;
  launch_failed_ = true;
}

// The failure of an input whose launch failed and which has not retired yet. The output of a failed launch must have no
// reader: an opaque value that was never written may be invalid (rule Y05).
Status DeviceQueue::unpublished_failure(const Slot& slot) {
  for (Ticket source : slot.all_sources()) {
    Stream& stream = Engine::stream(source);
    if (stream.queue != this || stream.on_host || stream.failed_launch < source.number()) continue;
    if (stream.done(source.number())) continue;
    if (const Status& failed = stream.slot(source.number()).status; !failed.ok()) return failed;
  }
  return Status();
}

// The reason why the instruction must not run: an input is known to have failed, or the device is lost. Ok if there is
// none.
Status DeviceQueue::why_skipped(Slot& slot) {
  if (!lost_.ok()) return lost_;
  if (engine().failure_count.load(std::memory_order_acquire) != 0) {
    settle_status(slot);
    if (!slot.status.ok()) return slot.status;
  }
  if (launch_failed_ && holds(kPoison)) {
    if (Status failed = unpublished_failure(slot); !failed.ok()) {
      slot.derived = true;
      return failed;
    }
  }
  const bool fills = slot.policy == Policy::download;  // a download writes its staging memory and does not read it
  if (slot.extras.staging != nullptr && !fills && !slot.extras.staging->failure.ok() && holds(kPoison)) {
    slot.derived = true;
    return slot.extras.staging->failure;
  }
  return Status();
}

// Passes the function of `slot` to the host thread; if `slot` has failed, the thread only destroys it. Earlier
// instructions of the stream have ended.
void DeviceQueue::launch_on_host(Stream& stream, Slot& slot, uint64_t number) {
  HostWork* work = std::exchange(slot.extras.work, nullptr);
  if (work != nullptr) return host_thread_.run(work, !slot.status.ok(), &stream, number);
  stream.host_done.store(number, std::memory_order_release);
}

Status DeviceQueue::call_provider(Stream& stream, Slot& slot) {
  const ep_device_ops& ops = device_->ops;
  ep_error* error = nullptr;
  ep_status code = EP_STATUS_OK;
  switch (slot.policy) {
    case Policy::launch: {
      if (slot.extras.scratch_bytes != 0) TENON_RETURN_IF_ERROR(prepare_scratch(stream, slot));
      ep_launch request{};
      request.operands = slot.buffers.data();
      request.shapes = slot.has_shapes ? slot.shapes.data() : nullptr;
      request.scalars = slot.scalars.data();
      request.operand_count = slot.operand_count;
      request.scalar_count = slot.scalar_count;
      request.workspace = slot.extras.workspace;
      request.scratch = slot.extras.scratch;
      request.tag = stream.ticket(slot.first_tag).bits;
      code = ops.primitive_launch(slot.primitive->handle, stream.handle, &request, nullptr, &error);
      break;
    }
    case Policy::graph: {
      const WideWork& work = *slot.extras.wide;
      ep_graph_launch request{};
      request.operands = work.buffers.data();
      request.operand_count = static_cast<uint32_t>(work.buffers.size());
      request.workspace = slot.extras.workspace;
      request.tag = stream.ticket(slot.first_tag).bits;
      code = ops.graph_launch(work.graph->handle, stream.handle, &request, nullptr, &error);
      break;
    }
    case Policy::segment: return launch_segment(stream, slot);
    case Policy::replay: {
      const WideWork& work = *slot.extras.wide;
      ep_command_list_replay_desc request{};
      request.bindings = work.buffers.data();
      request.binding_count = static_cast<uint32_t>(work.buffers.size());
      request.tag = stream.ticket(slot.first_tag).bits;
      code = ops.command_list_replay(work.list->handle(), stream.handle, &request, &error);
      break;
    }
    case Policy::pack:
      code = ops.primitive_pack(slot.primitive->handle, stream.handle, slot.buffers[0], slot.buffers[1], &error);
      break;
    case Policy::copy:
      code = copy_bytes(*device_, stream.handle, slot.buffers[0], slot.buffers[1], slot.extras.bytes, &error);
      break;
    case Policy::upload:
      code = slot.extras.staging != nullptr && slot.extras.staging->pinned != nullptr
                 ? copy_bytes(*device_, stream.handle, slot.buffers[0], {slot.extras.staging->pinned, 0},
                              slot.extras.bytes, &error)
                 : upload_bytes(*device_, stream.handle, slot.buffers[0], slot.extras.host, slot.extras.bytes, &error);
      break;
    case Policy::download:
      code = download_bytes(*device_, stream.handle, slot.extras.host, slot.buffers[0], slot.extras.bytes, &error);
      break;
    case Policy::peer_copy:
      code =
          ops.peer_copy(stream.handle, slot.buffers[0], slot.extras.peer, slot.buffers[1], slot.extras.bytes, &error);
      break;
    case Policy::semaphore: {
      const SemaphoreWork& work = *slot.extras.semaphore;
      const auto function = work.signals ? ops.stream_signal_semaphore : ops.stream_wait_semaphore;
      code = function(stream.handle, work.semaphore->handle, work.value, &error);
      break;
    }
    case Policy::access:
    case Policy::wait: break;
  }
  if (code == EP_STATUS_OK) [[likely]]
    return Status();
  if (slot.extras.scratch_bytes != 0) stream.clean_scratch = 0;
  const Status status = slot_error(slot, loader::take_error(code, error, {}), device_);
  if (code == EP_STATUS_DEVICE_LOST) lose(status);
  return status;
}

Status DeviceQueue::launch_segment(Stream& stream, Slot& slot) {
  const WideWork& work = *slot.extras.wide;
  if (slot.extras.scratch_bytes != 0) TENON_RETURN_IF_ERROR(prepare_scratch(stream, slot));
  SegmentCall call;
  call.stream = stream.handle;
  call.bindings = work.buffers.data();
  call.scratch = slot.extras.scratch;
  call.first_tag = stream.ticket(slot.first_tag).bits;
  call.cancellations = work.cancellations;
  const SegmentEnd end = launch_all(*work.segment, call);
  if (end.ok()) return Status();
  if (slot.extras.scratch_bytes != 0) stream.clean_scratch = 0;
  const Status status = segment_error(*work.segment, end);
  if (end.code == EP_STATUS_DEVICE_LOST) lose(status);
  return status;
}

Status DeviceQueue::prepare_scratch(Stream& stream, const Slot& slot) {
  if (stream.clean_scratch == slot.extras.scratch_number) return Status();
  // An upload in flight may still read the shorter blocks of zeros, so they are kept.
  if (zeros_.empty() || zeros_.back().size() < slot.extras.scratch_bytes)
    zeros_.emplace_back(slot.extras.scratch_bytes);
  ep_error* error = nullptr;
  const ep_status code = upload_bytes(*device_, stream.handle, slot.extras.scratch, zeros_.back().data(),
                                      slot.extras.scratch_bytes, &error);
  if (code != EP_STATUS_OK) return provider_error(device_, code, error, "zeroing scratch");
  stream.clean_scratch = slot.extras.scratch_number;
  return Status();
}

}  // namespace tenon::vm
