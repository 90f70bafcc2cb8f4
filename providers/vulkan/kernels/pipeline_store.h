// PipelineStore: the driver's pipeline cache of one device, which the host keeps for later runs. The blob's key names
// the device and driver; the driver also checks the blob.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/vulkan/queue/context.h"

namespace tenon::provider::vulkan {

class PipelineStore {
 public:
  explicit PipelineStore(Context* context) : context_(context) {}
  // Gives the host the changes since the cache was last given.
  ~PipelineStore();
  PipelineStore(const PipelineStore&) = delete;
  PipelineStore& operator=(const PipelineStore&) = delete;

  // Without a cache (the driver refuses to make one), every pipeline is compiled again.
  void open();
  VkPipelineCache handle() const { return handle_; }
  // Call after making a pipeline with handle(). Gives the cache to the host after 1, 2, 4, 8, ... pipelines, since a
  // process seldom closes its devices before it ends. Threads: any.
  void note_made();

 private:
  void give_to_host();

  Context* context_;
  VkPipelineCache handle_ = VK_NULL_HANDLE;
  std::atomic<uint64_t> made_{0}, given_{0};
};

}  // namespace tenon::provider::vulkan
