// Primitive: one created primitive of one device, shared by everything that launches it. Internal to the library.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ep_api/ep_api.h"
#include "primitives/accuracy/accuracy.h"

namespace tenon {

struct DeviceState;

// Kept alive by the primitive cache, the per-thread choice tables and every VM slot that is still to launch or finish
// it.
struct Primitive {
  std::atomic<int32_t> count{1};
  alignas(64) DeviceState* device = nullptr;  // on another cache line than `count`, which several threads write
  ep_primitive* primitive = nullptr;
  std::string implementation;  // "onednn", "simd", "plain"
  Tier tier = Tier::full;      // of its results
  uint64_t host_bytes = 0;
  uint64_t device_bytes = 0;
  uint64_t workspace_bytes = 0;  // if dims are static
  uint64_t scratch_bytes = 0;
  int32_t pack_operand = -1;  // the operand that every launch takes packed; -1: none
  uint64_t pack_bytes = 0;
  uint64_t pack_layout = 0;        // as in ep_primitive_info
  bool dynamic = false;            // the descriptor holds EP_ANY: launches give shapes
  bool dynamic_workspace = false;  // primitive_workspace says how much, per shape

  void retain() { count.fetch_add(1, std::memory_order_relaxed); }
  // Gives `references` back; destroys the primitive when the last user is gone.
  void release(int32_t references = 1);
};

}  // namespace tenon
