// CommandList: a command buffer that can be submitted many times. It owns the staging blocks with the parameters and
// fault slots of its operations.
//
// Owner: the list handle, and each replay until its faults have been read.
#pragma once

#include <memory>
#include <vector>

#include "providers/vulkan/queue/command_stream.h"

namespace tenon::provider::vulkan {

struct CommandList {
  CommandList(std::shared_ptr<Context> its_context, std::shared_ptr<Staging> its_staging)
      : context(std::move(its_context)), staging(std::move(its_staging)) {}
  ~CommandList();
  CommandList(const CommandList&) = delete;
  CommandList& operator=(const CommandList&) = delete;

  // Clears the fault slots for the next replay.
  void clear_faults();
  uint64_t device_bytes() const;

  const std::shared_ptr<Context> context;
  const std::shared_ptr<Staging> staging;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer commands = nullptr;
  std::vector<StagingBlock*> blocks;
  std::vector<FaultWatch> watches;    // `recording` is the number of the recorded call, from 0
  std::weak_ptr<CommandStream> last;  // stream of the last replay
};

// Makes a command pool with one command buffer.
ep_status make_commands(Context& context, VkCommandPoolCreateFlags flags, VkCommandPool* out_pool,
                        VkCommandBuffer* out_commands, ep_error** error);

}  // namespace tenon::provider::vulkan
