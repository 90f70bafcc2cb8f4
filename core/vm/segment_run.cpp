// Runs segments: at once on the caller, or as one instruction of an asynchronous stream.
#include <array>
#include <vector>

#include "core/device/process.h"
#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "core/vm/inline.h"
#include "core/vm/rules.h"
#include "core/vm/segment.h"
#include "core/vm/thread_scratch.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

Status wrong_binding(const SegmentRun& run, size_t index) {
  const std::string& wanted = run.segment->device()->opened->spelling;
  const Storage* storage = run.bindings[index].storage;
  if (storage == nullptr) {
    return Status(Code::invalid_argument, fmt::format("Binding {} of a run on {} has no memory.", index, wanted));
  }
  const bool again = storage->device->opened->spelling == wanted;
  return Status(Code::invalid_argument,
                fmt::format("Binding {} of a run on {} is memory of {}{}.", index, wanted,
                            storage->device->opened->spelling, again ? ", which was opened again" : ""),
                again ? "Prepare the program again." : "");
}

Status check(const SegmentRun& run) {
  const Segment& segment = *run.segment;
  if (run.bindings.size() != segment.bindings()) {
    return Status(Code::invalid_argument, fmt::format("A segment has {} bindings, but a run gives {}.",
                                                      segment.bindings(), run.bindings.size()));
  }
  for (size_t i = 0; i < run.bindings.size(); ++i) {
    const Storage* storage = run.bindings[i].storage;
    if (storage == nullptr || storage->device != segment.device()) return wrong_binding(run, i);
  }
  return Status();
}

// Waits until the run may use its storages. Storages that it only overwrites come last: if one of them is also read,
// its poison counts.
Status settle_all(const SegmentRun& run) {
  for (const bool whole : {false, true}) {
    for (const Operand& binding : run.bindings) {
      if (binding.whole == whole) TENON_RETURN_IF_ERROR(settle_operand(binding));
    }
  }
  Constants* constants = run.segment->constants();
  return constants != nullptr ? constants->settle() : Status();
}

void poison_outputs(const SegmentRun& run, const Status& poison) {
  if (!holds(kPoison)) return;
  std::lock_guard lock(engine().submission);
  for (const Operand& binding : run.bindings) {
    if (!binding.write) continue;
    binding.storage->poison = poison;
    binding.storage->attention.store(true, std::memory_order_relaxed);
  }
}

Status launch_here(const SegmentRun& run, ThreadScratch* scratch) {
  const Segment& segment = *run.segment;
  constexpr size_t kFew = 32;
  std::array<ep_buffer, kFew> few;
  std::vector<ep_buffer> many(run.bindings.size() > kFew ? run.bindings.size() : 0);
  ep_buffer* addresses = many.empty() ? few.data() : many.data();
  for (size_t i = 0; i < run.bindings.size(); ++i) {
    addresses[i] = run.bindings[i].storage->block.at(run.bindings[i].offset);
  }
  const std::vector<Cancellation> cancellations = CancellationScope::here();
  SegmentCall call;
  call.stream = segment.device()->inline_stream;
  call.bindings = addresses;
  if (scratch != nullptr) call.scratch = scratch->block.at(0);
  call.cancellations = cancellations;
  const SegmentEnd end = launch_all(segment, call);
  if (end.ok()) [[likely]]
    return Status();
  if (scratch != nullptr) scratch->dirty = true;
  return segment_error(segment, end);
}

// If there is no scratch for the run, it has written nothing, and nothing is poisoned.
Status run_inline(const SegmentRun& run) {
  const Segment& segment = *run.segment;
  TraceScope trace(kSegment.op, "launch", segment.device());
  Status status = settle_all(run);
  if (status.ok()) {
    ThreadScratch* scratch = nullptr;
    if (segment.scratch_bytes() != 0) {
      TENON_ASSIGN_OR_RETURN(scratch, thread_scratch_of(segment.device(), segment.scratch_bytes()));
    }
    status = launch_here(run, scratch);
  }
  if (!status.ok()) poison_outputs(run, status);
  return status;
}

Status submit_segment(const SegmentRun& run) {
  const Segment& segment = *run.segment;
  DeviceState* device = segment.device();
  TENON_RETURN_IF_ERROR(check_stream(device, run.stream));
  TraceScope trace(kSegment.op, "submit", device);
  Stream& stream = device->queue->stream(run.stream);
  if (segment.scratch_bytes() != 0) TENON_RETURN_IF_ERROR(grow_scratch(stream, segment.scratch_bytes()));
  Request request;
  request.policy = Policy::segment;
  request.stream = &stream;
  request.segment = &run;
  request.op = &kSegment;
  request.operands = run.bindings;
  return submit_and_follow(request, false);
}

}  // namespace

Status run(const SegmentRun& run) {
  TENON_RETURN_IF_ERROR(process::usable());
  TENON_RETURN_IF_ERROR(check(run));
  return run.segment->device()->synchronous ? run_inline(run) : submit_segment(run);
}

}  // namespace tenon::vm
