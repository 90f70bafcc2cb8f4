#include "providers/vulkan/queue/timestamps.h"

namespace tenon::provider::vulkan {

Timestamps::~Timestamps() {
  for (VkQueryPool pool : pools_) context_->api.vkDestroyQueryPool(context_->device, pool, nullptr);
}

VkResult Timestamps::take(std::shared_ptr<Place>* out_place) {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    VkQueryPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = pool_size;
    pools_.reserve(pools_.size() + 1);
    free_.reserve(pools_.size() * pool_size + pool_size);  // so that giving back needs no memory
    VkQueryPool pool = VK_NULL_HANDLE;
    const VkResult result = context_->api.vkCreateQueryPool(context_->device, &info, nullptr, &pool);
    if (result != VK_SUCCESS) return result;
    pools_.push_back(pool);
    for (uint32_t i = pool_size; i-- > 0;) free_.push_back({pool, i});
  }
  const Free taken = free_.back();
  *out_place = std::make_shared<Place>(shared_from_this(), taken.pool, taken.query);
  free_.pop_back();
  return VK_SUCCESS;
}

void Timestamps::give_back(VkQueryPool pool, uint32_t query) {
  std::lock_guard lock(mutex_);
  free_.push_back({pool, query});
}

void Timestamps::Place::write(VkCommandBuffer commands) const {
  const DeviceApi& api = owner_->context_->api;
  api.vkCmdResetQueryPool(commands, pool_, query_, 1);
  api.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool_, query_);
}

VkResult Timestamps::Place::read(uint64_t* out_ticks) const {
  return owner_->context_->api.vkGetQueryPoolResults(owner_->context_->device, pool_, query_, 1, sizeof *out_ticks,
                                                     out_ticks, sizeof *out_ticks, VK_QUERY_RESULT_64_BIT);
}

}  // namespace tenon::provider::vulkan
