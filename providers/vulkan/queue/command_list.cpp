#include "providers/vulkan/queue/command_list.h"

#include <cstring>

namespace tenon::provider::vulkan {

CommandList::~CommandList() {
  for (StagingBlock* block : blocks) staging->give_back(block);
  if (pool != VK_NULL_HANDLE) context->api.vkDestroyCommandPool(context->device, pool, nullptr);
}

void CommandList::clear_faults() {
  for (const FaultWatch& watch : watches) std::memset(watch.slot.host(), 0, sizeof(FaultSlot));
}

uint64_t CommandList::device_bytes() const {
  uint64_t bytes = 0;
  for (const StagingBlock* block : blocks) bytes += block->block.size;
  return bytes;
}

// While a stream records, its open batch uses the list's command buffer and is never submitted.
ep_status CommandStream::begin_list(ep_error** error) {
  std::lock_guard lock(mutex_);
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  if (open_ != nullptr && open_->operations != 0) {
    if (const ep_status status = submit(error); status != EP_STATUS_OK) return status;
  }
  auto list = std::make_shared<CommandList>(context_, staging_);
  if (const ep_status status = make_commands(*context_, 0, &list->pool, &list->commands, error);
      status != EP_STATUS_OK) {
    return status;
  }
  if (const ep_status status = begin_commands(list->commands, 0, error); status != EP_STATUS_OK) return status;
  auto batch = std::make_unique<Batch>();
  batch->commands = list->commands;
  waiting_ = std::move(open_);
  open_ = std::move(batch);
  list_ = std::move(list);
  list_failed_ = false;
  records_ = true;
  list_begins_ = recordings_;
  return EP_STATUS_OK;
}

ep_status CommandStream::end_list(std::shared_ptr<CommandList>* out_list, ep_error** error) {
  std::lock_guard lock(mutex_);
  const std::shared_ptr<CommandList> list = std::move(list_);
  records_ = false;
  barrier(VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  const std::unique_ptr<Batch> batch = std::move(open_);
  open_ = std::move(waiting_);
  list->blocks = std::move(batch->blocks);
  list->watches = std::move(batch->watches);
  const VkResult result = context_->api.vkEndCommandBuffer(list->commands);
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  if (result != VK_SUCCESS) return context_->failed(error, "vkEndCommandBuffer", result);
  if (list_failed_) return fail_text(context_->host, error, EP_STATUS_UNSUPPORTED, "A recorded call has failed.");
  if (batch->work >= context_->most_work) {
    return fail_text(
        context_->host, error, EP_STATUS_UNSUPPORTED,
        "The list has more work than one submission may have; kernel drivers reset a device that runs longer.");
  }
  *out_list = list;
  return EP_STATUS_OK;
}

ep_status CommandStream::replay(const std::shared_ptr<CommandList>& list, uint64_t tag, ep_error** error) {
  // The last replay is done. Its faults are read before the next replay overwrites the slots.
  if (const std::shared_ptr<CommandStream> last = list->last.lock()) {
    if (const ep_status status = last->retire(error); status != EP_STATUS_OK) return status;
  }
  std::lock_guard lock(mutex_);
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  std::unique_ptr<Batch> batch;
  if (const ep_status status = take_batch(&batch, error); status != EP_STATUS_OK) return status;
  if (open_ != nullptr && open_->operations != 0) {
    if (const ep_status status = submit(error); status != EP_STATUS_OK) {
      idle_.push_back(std::move(batch));
      return status;
    }
  }
  batch->value = submitted_ + 1;
  batch->list = list;
  batch->tag = tag;
  list->last = weak_from_this();
  // An open batch without operations is submitted after this one.
  if (open_ != nullptr) open_->value = batch->value + 1;
  const VkResult result = queue_submit(*batch);
  return submitted(std::move(batch), "vkQueueSubmit", result, error);
}

}  // namespace tenon::provider::vulkan
