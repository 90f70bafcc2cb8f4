// The rules for objects of other APIs: imports and semaphores.
#include "ep_api/ep_names.h"
#include "loader/layers/validate/rules.h"
#include "primitives/text/format.h"

namespace tenon::loader::validate {
namespace {

void check_desc(Call& call, const ep_import_desc* desc) {
  if (desc == nullptr) return call.refuse("A01", "the description of the import is NULL");
  if (desc->struct_type == EP_STRUCT_IMPORT_DESC && desc->struct_size >= sizeof(ep_import_desc)) return;
  call.refuse("T01", fmt::format("the description's struct_size is {} and its struct_type {}", desc->struct_size,
                                 desc->struct_type));
}

// `taken`: the mask of the handle types that the device states to accept.
void check_type(Call& call, ep_status status, const ep_import_desc& desc, uint64_t taken) {
  if (status != EP_STATUS_OK) return;
  const bool stated = desc.handle_type > 0 && desc.handle_type < 64 && (taken >> desc.handle_type & 1) != 0;
  if (stated) return;
  call.blame("I02", fmt::format("it took a handle of type {} ({}); its description says that it takes {}",
                                desc.handle_type, ep_handle_name(desc.handle_type), handle_names(taken)));
}

bool is_event(int32_t type) { return type == EP_HANDLE_CUDA_EVENT || type == EP_HANDLE_CL_EVENT; }

void check_value(Call& call, const Semaphore& semaphore, uint64_t value) {
  if (semaphore.counts == EP_SEMAPHORE_TIMELINE || value == 0) return;
  call.refuse("I03", fmt::format("the value is {}, and only timeline semaphores have values", value));
}

}  // namespace

void before(Tag<Slot::memory_import>, Call& call, Device&, ImportDesc& desc, Argument<ep_memory**>&, Error&) {
  check_desc(call, desc.value);
  if (!call.refused() && desc.value->size == 0) call.refuse("A01", "memory of 0 bytes is to be imported");
}

void after(Tag<Slot::memory_import>, Call& call, ep_status status, Device&, ImportDesc& desc,
           Argument<ep_memory**>& out, Error&) {
  check_type(call, status, *desc.value, call.layer->info.memory_handles);
  if (out.object == nullptr) return;
  out.object->size = desc.value->size;
  out.object->imported = true;
}

void before(Tag<Slot::stream_import>, Call& call, Device&, ImportDesc& desc, Argument<ep_stream**>&, Error&) {
  check_desc(call, desc.value);
}

void after(Tag<Slot::stream_import>, Call& call, ep_status status, Device&, ImportDesc& desc, Argument<ep_stream**>&,
           Error&) {
  check_type(call, status, *desc.value, call.layer->info.stream_handles);
}

void before(Tag<Slot::semaphore_import>, Call& call, Device&, ImportDesc& desc, Argument<ep_semaphore**>&, Error&) {
  check_desc(call, desc.value);
  if (call.refused()) return;
  const int32_t counts = desc.value->semaphore;
  const bool known = counts >= EP_SEMAPHORE_BINARY && counts <= EP_SEMAPHORE_EVENT;
  if (known && (counts == EP_SEMAPHORE_EVENT) == is_event(desc.value->handle_type)) return;
  call.refuse("I03",
              fmt::format("a semaphore of type {} is to count as {}", ep_handle_name(desc.value->handle_type), counts));
}

void after(Tag<Slot::semaphore_import>, Call& call, ep_status status, Device&, ImportDesc& desc,
           Argument<ep_semaphore**>& out, Error&) {
  check_type(call, status, *desc.value, call.layer->info.semaphore_handles);
  if (out.object != nullptr) out.object->counts = desc.value->semaphore;
}

void before(Tag<Slot::semaphore_destroy>, Call& call, Device&, SemaphoreHandle& semaphore) {
  if (semaphore.object != nullptr) call.check_unused(*semaphore.object);
}

void after(Tag<Slot::semaphore_destroy>, Call&, ep_status, Device&, SemaphoreHandle& semaphore) {
  if (semaphore.object != nullptr) Objects::instance().bury(semaphore.object);
}

void before(Tag<Slot::stream_wait_semaphore>, Call& call, StreamHandle&, SemaphoreHandle& semaphore, Number& value,
            Error&) {
  if (semaphore.object != nullptr) check_value(call, *semaphore.object, value.value);
}

void after(Tag<Slot::stream_wait_semaphore>, Call&, ep_status status, StreamHandle& stream, SemaphoreHandle& semaphore,
           Number&, Error&) {
  if (status == EP_STATUS_OK) submitted(*stream.object, {semaphore.object});
}

void before(Tag<Slot::stream_signal_semaphore>, Call& call, StreamHandle&, SemaphoreHandle& semaphore, Number& value,
            Error&) {
  if (semaphore.object == nullptr) return;
  const Semaphore& object = *semaphore.object;
  check_value(call, object, value.value);
  if (object.counts == EP_SEMAPHORE_EVENT) call.refuse("I03", "an event of another API is to be signalled");
  if (object.counts != EP_SEMAPHORE_TIMELINE || value.value > object.last_signal) return;
  call.refuse("I03", fmt::format("the value {} is to be signalled, and {} was signalled before", value.value,
                                 object.last_signal));
}

void after(Tag<Slot::stream_signal_semaphore>, Call&, ep_status status, StreamHandle& stream,
           SemaphoreHandle& semaphore, Number& value, Error&) {
  if (status != EP_STATUS_OK) return;
  semaphore.object->last_signal = value.value;
  submitted(*stream.object, {semaphore.object});
}

}  // namespace tenon::loader::validate
