#include "core/vm/thread_scratch.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/device/process.h"
#include "core/vm/granular.h"
#include "core/vm/inline.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

// Plain data, with a separate guard, so that it can be read until the thread has ended. If the thread needs scratch
// after the guard has run, it makes new scratch and keeps it.
thread_local constinit std::vector<ThreadScratch>* thread_scratch = nullptr;

struct ScratchGuard {
  void arm() {}
  ~ScratchGuard() {
    const std::unique_ptr<std::vector<ThreadScratch>> blocks(std::exchange(thread_scratch, nullptr));
    if (blocks == nullptr || process::forked() || process::ended()) return;
    for (ThreadScratch& scratch : *blocks) {
      if (scratch.block.memory == nullptr) continue;
      scratch.device->thread_scratch.fetch_sub(scratch.block.size, std::memory_order_relaxed);
      scratch.device->allocator->release(scratch.block, {});
    }
  }
};
thread_local ScratchGuard scratch_guard;

Status zero_block(DeviceState* device, const memory::Block& block, uint64_t bytes) {
  if (block.host != nullptr) {
    std::memset(block.host, 0, bytes);
    return Status();
  }
  const std::vector<char> zeros(bytes);
  ep_error* error = nullptr;
  const ep_status code = upload_bytes(*device, device->inline_stream, block.at(0), zeros.data(), bytes, &error);
  return loader::take_error(code, error, fmt::format("zeroing scratch of {}", device->opened->spelling));
}

}  // namespace

Result<ThreadScratch*> thread_scratch_of(DeviceState* device, uint64_t bytes) {
  if (thread_scratch == nullptr) {
    thread_scratch = new std::vector<ThreadScratch>;
    scratch_guard.arm();
  }
  auto& blocks = *thread_scratch;
  auto found =
      std::find_if(blocks.begin(), blocks.end(), [&](const ThreadScratch& one) { return one.device == device; });
  ThreadScratch& scratch = found != blocks.end() ? *found : blocks.emplace_back(ThreadScratch{device, {}, true});
  if (scratch.block.size < bytes) {
    if (scratch.block.memory != nullptr) device->allocator->release(scratch.block, {});
    device->thread_scratch.fetch_sub(scratch.block.size, std::memory_order_relaxed);
    scratch.block = {};
    TicketList waits;
    TENON_ASSIGN_OR_RETURN(scratch.block, device->allocator->allocate_aligned(bytes, &waits));
    device->thread_scratch.fetch_add(scratch.block.size, std::memory_order_relaxed);
    TENON_RETURN_IF_ERROR(wait_all(waits));
    scratch.dirty = true;
  }
  if (scratch.dirty) TENON_RETURN_IF_ERROR(zero_block(device, scratch.block, scratch.block.size));
  scratch.dirty = false;
  return &scratch;
}

}  // namespace tenon::vm
