// Staging: blocks of host-visible memory for transfers and for the parameters of launches. A batch of commands takes
// blocks, fills them from the front, and returns them when the device is done with the batch.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "providers/vulkan/queue/block.h"

namespace tenon::provider::vulkan {

enum class StagingKind : uint8_t { UPLOAD, DOWNLOAD, PARAMETERS };

struct StagingBlock {
  Block block;
  StagingKind kind = StagingKind::UPLOAD;
  uint64_t used = 0;
};

// A range of bytes in a staging block.
struct StagedRange {
  StagingBlock* block = nullptr;
  uint64_t offset = 0;

  char* host() const { return block->block.host + offset; }
  uint64_t address() const { return block->block.address + offset; }
};

class Staging {
 public:
  static constexpr uint64_t block_size = UINT64_C(256) << 10;
  static constexpr uint64_t largest_piece = UINT64_C(16) << 20;  // largest piece of a transfer, in bytes
  static constexpr uint64_t kept = UINT64_C(64) << 20;           // limit of bytes in idle blocks that are kept

  explicit Staging(Context& context) : context_(context) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Takes an empty block of at least `size` bytes.
  VkResult take(StagingKind kind, uint64_t size, StagingBlock** out_block, const char** out_call);
  void give_back(StagingBlock* block);
  // Frees the idle blocks.
  void trim();

 private:
  void drop(StagingBlock* block);

  Context& context_;
  std::mutex mutex_;
  std::vector<StagingBlock*> idle_;
  uint64_t idle_bytes_ = 0;
};

}  // namespace tenon::provider::vulkan
