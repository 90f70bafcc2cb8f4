// Primitive: one created primitive of one device, shared by all code that launches it. Internal to the library.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ep_api/ep_api.h"
#include "primitives/accuracy/accuracy.h"

namespace tenon {

struct DeviceState;

// The primitive cache, the per-thread choice tables, and every VM slot that still has to launch or finish it keep it
// alive.
struct Primitive {
  std::atomic<int32_t> count{1};
  alignas(64) DeviceState* device = nullptr;  // not on the cache line of `count`, which several threads write
  ep_primitive* handle = nullptr;
  std::string implementation;  // "onednn", "simd", "plain"
  Tier tier = Tier::full;      // the accuracy tier of the results
  uint64_t host_bytes = 0;
  uint64_t device_bytes = 0;
  uint64_t workspace_bytes = 0;  // if dims are static
  uint64_t scratch_bytes = 0;
  int32_t pack_operand = -1;  // the operand that every launch needs packed; -1: none
  uint64_t pack_bytes = 0;
  uint64_t pack_layout = 0;        // as in ep_primitive_info
  bool dynamic = false;            // the descriptor contains EP_ANY: launches give shapes
  bool dynamic_workspace = false;  // primitive_workspace returns the size for each shape

  void retain() { count.fetch_add(1, std::memory_order_relaxed); }
  // Releases `references`; destroys the primitive with the last one.
  void release(int32_t references = 1);
};

}  // namespace tenon
