// PipelineStore: the driver's pipeline cache of one device, which the host keeps for later runs. The blob's key names
// the device and driver; the driver checks the blob once more.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/vulkan/queue/context.h"

namespace tenon::provider::vulkan {

class PipelineStore {
 public:
  explicit PipelineStore(Context* context) : context_(context) {}
  // Gives the host what was made since it was last given.
  ~PipelineStore();
  PipelineStore(const PipelineStore&) = delete;
  PipelineStore& operator=(const PipelineStore&) = delete;

  // Without a cache (the driver refuses to make one) every pipeline is compiled anew.
  void open();
  VkPipelineCache handle() const { return handle_; }
  // To be called after a pipeline was made with handle(). Gives the cache to the host after 1, 2, 4, 8, ... pipelines,
  // since a process that ends seldom closes its devices. Threads: any.
  void note_made();

 private:
  void give_to_host();

  Context* context_;
  VkPipelineCache handle_ = VK_NULL_HANDLE;
  std::atomic<uint64_t> made_{0}, given_{0};
};

}  // namespace tenon::provider::vulkan
