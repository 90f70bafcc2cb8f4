// Block: a piece of device memory handed out by an Allocator.
#pragma once

#include <cstdint>

#include "ep_api/ep_api.h"

namespace tenon::memory {

struct Block {
  ep_memory* memory = nullptr;  // the provider's handle; null: no memory
  uint64_t offset = 0;          // bytes from its beginning
  uint64_t size = 0;            // usable bytes, at least the number requested
  char* host = nullptr;         // host address of the first byte if the memory is mapped, else null
  void* owner = nullptr;        // used by the allocator only: the extent or size class of the block

  ep_buffer at(uint64_t byte_offset) const { return {memory, offset + byte_offset}; }
};

}  // namespace tenon::memory
