// Imported objects: memory files and the fake's own blocks as memory, memory files as semaphores (foreign.h).
#include <fmt/core.h>

#include <cstring>

#include "sdk/provider/import.h"
#include "tests/fakes/async/device.h"

namespace tenon::fakes {
namespace {

constexpr uint8_t no_uuid[16] = {};

ep_status memory_import(ep_device* device, const ep_import_desc* desc, ep_memory** out, ep_error** error) {
  if (is_lost()) return lost(device, error);
  const provider::ImportTerms terms{"the asynchronous fake", "memory", memory_handles, no_uuid};
  const ep_status checked = provider::check_memory_import(device->host, *desc, terms, error);
  if (checked != EP_STATUS_OK) return checked;
  AsyncControl& control = async_control();
  if (due(control.fail_import, control.failed_imports)) {
    return fail(device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "this import was told to fail.");
  }
  if (desc->handle_type == EP_HANDLE_CUDA_POINTER) {
    *out = new ep_memory(provider::object_of<char>(desc->handle), desc->size);
  } else {
    Foreign file = Foreign::open(provider::descriptor_of(desc->handle), desc->size);
    if (!file.mapped()) {
      return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT,
                  fmt::format("the file behind {} has fewer than {} bytes.", desc->handle, desc->size));
    }
    *out = new ep_memory(std::move(file));
  }
  if (control.shadow.load()) (*out)->shadow = ShadowMemory(desc->size);
  control.imports.fetch_add(1);
  return EP_STATUS_OK;
}

ep_status memory_native_handle(ep_device*, ep_memory* memory, uint64_t* out, ep_error**) {
  *out = reinterpret_cast<uintptr_t>(memory->data());
  return EP_STATUS_OK;
}

ep_status semaphore_import(ep_device* device, const ep_import_desc* desc, ep_semaphore** out, ep_error** error) {
  if (is_lost()) return lost(device, error);
  const provider::ImportTerms terms{"the asynchronous fake", "semaphore", semaphore_handles, no_uuid};
  constexpr uint32_t kinds = 1 << EP_SEMAPHORE_BINARY | 1 << EP_SEMAPHORE_TIMELINE;
  const ep_status checked = provider::check_semaphore_import(device->host, *desc, terms, kinds, error);
  if (checked != EP_STATUS_OK) return checked;
  Foreign file = Foreign::open(provider::descriptor_of(desc->handle), sizeof(uint64_t));
  if (!file.mapped()) {
    return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT,
                fmt::format("the file behind {} is not a semaphore.", desc->handle));
  }
  *out = new ep_semaphore{std::move(file), desc->semaphore};
  async_control().semaphores.fetch_add(1);
  return EP_STATUS_OK;
}

void semaphore_destroy(ep_device*, ep_semaphore* semaphore) {
  if (semaphore != nullptr) async_control().semaphores.fetch_sub(1);
  delete semaphore;
}

ep_status push(ep_stream* stream, Command::Kind kind, ep_semaphore* semaphore, uint64_t value) {
  Command command;
  command.kind = kind;
  command.semaphore = semaphore;
  command.point = value;
  stream->push(std::move(command));
  return EP_STATUS_OK;
}

ep_status stream_wait_semaphore(ep_stream* stream, ep_semaphore* semaphore, uint64_t value, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (is_lost()) return lost(stream->device, error);
  AsyncControl& control = async_control();
  if (due(control.fail_semaphore, control.failed_semaphores)) {
    return fail(stream->device->host, error, EP_STATUS_OUT_OF_HOST_MEMORY, "this wait was told to fail.");
  }
  return push(stream, Command::await, semaphore, value);
}

ep_status stream_signal_semaphore(ep_stream* stream, ep_semaphore* semaphore, uint64_t value, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (is_lost()) return lost(stream->device, error);
  push(stream, Command::signal, semaphore, value);
  stream->flush();
  return EP_STATUS_OK;
}

}  // namespace

bool has_come(ep_semaphore& semaphore, uint64_t value) {
  const uint64_t now = semaphore.file.counter().load(std::memory_order_acquire);
  return semaphore.kind == EP_SEMAPHORE_TIMELINE ? now >= value : now != 0;
}

void run_semaphore(const Command& command) {
  std::atomic<uint64_t>& counter = command.semaphore->file.counter();
  const bool timeline = command.semaphore->kind == EP_SEMAPHORE_TIMELINE;
  if (command.kind == Command::await) {
    if (!timeline) counter.fetch_sub(1, std::memory_order_acq_rel);
  } else if (!timeline) {
    if (counter.fetch_add(1, std::memory_order_acq_rel) != 0) {
      async_control().violate("a binary semaphore is signalled twice without a wait");
    }
  } else {
    const uint64_t before = counter.exchange(command.point, std::memory_order_acq_rel);
    if (before >= command.point) {
      async_control().violate(fmt::format("a timeline at {} is signalled with {}", before, command.point));
    }
  }
}

void fill_interop(ep_device_ops* ops) {
  ops->memory_import = memory_import;
  ops->memory_native_handle = memory_native_handle;
  ops->semaphore_import = semaphore_import;
  ops->semaphore_destroy = semaphore_destroy;
  ops->stream_wait_semaphore = stream_wait_semaphore;
  ops->stream_signal_semaphore = stream_signal_semaphore;
}

}  // namespace tenon::fakes
