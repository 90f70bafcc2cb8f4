#include "providers/vulkan/queue/staging.h"

#include <algorithm>
#include <bit>

namespace tenon::provider::vulkan {
namespace {

const MemoryType& type_of(const Context& context, StagingKind kind) {
  const MemoryPlan& plan = context.memory;
  switch (kind) {
    case StagingKind::UPLOAD: return plan.upload;
    case StagingKind::DOWNLOAD: return plan.download;
    default: return plan.parameters;
  }
}

}  // namespace

Staging::~Staging() { trim(); }

VkResult Staging::take(StagingKind kind, uint64_t size, StagingBlock** out_block, const char** out_call) {
  const uint64_t wanted = std::bit_ceil(std::max(size, block_size));
  {
    std::lock_guard lock(mutex_);
    const auto fits = [&](const StagingBlock* one) { return one->kind == kind && one->block.size == wanted; };
    const auto found = std::find_if(idle_.begin(), idle_.end(), fits);
    if (found != idle_.end()) {
      *out_block = *found;
      idle_.erase(found);
      idle_bytes_ -= wanted;
      return VK_SUCCESS;
    }
  }
  auto made = std::make_unique<StagingBlock>();
  made->kind = kind;
  VkResult result = allocate_block(context_, type_of(context_, kind), wanted, &made->block, out_call);
  // The window of device memory for parameters is small and shared by all processes. Host memory is used instead.
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY && kind == StagingKind::PARAMETERS) {
    result = allocate_block(context_, context_.memory.upload, wanted, &made->block, out_call);
  }
  if (result != VK_SUCCESS) return result;
  context_.host->device_memory_report(context_.host, context_.owner, static_cast<int64_t>(made->block.size));
  *out_block = made.release();
  return VK_SUCCESS;
}

void Staging::give_back(StagingBlock* block) {
  block->used = 0;
  {
    std::lock_guard lock(mutex_);
    if (idle_bytes_ + block->block.size <= kept) {
      idle_.push_back(block);
      idle_bytes_ += block->block.size;
      return;
    }
  }
  drop(block);
}

void Staging::trim() {
  std::vector<StagingBlock*> idle;
  {
    std::lock_guard lock(mutex_);
    idle.swap(idle_);
    idle_bytes_ = 0;
  }
  for (StagingBlock* block : idle) drop(block);
}

void Staging::drop(StagingBlock* block) {
  context_.host->device_memory_report(context_.host, context_.owner, -static_cast<int64_t>(block->block.size));
  free_block(context_, &block->block);
  delete block;
}

}  // namespace tenon::provider::vulkan
