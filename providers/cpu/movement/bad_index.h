// Reads indices of gather, scatter and pooling_backward, and keeps the first one that is out of range.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// The first out-of-range index of any thread.
struct BadIndex {
  std::atomic<bool> met{false};
  std::atomic<int64_t> value{0};
  std::atomic<int64_t> limit{0};  // the length of its axis

  void note(int64_t index, int64_t length) {
    if (met.exchange(true)) return;
    value = index;
    limit = length;
  }
  // Fills the fault of a launch. Operand `number` holds the index.
  ep_status answer(const ep_launch& launch, int32_t number, ep_fault* out_fault) const {
    if (!met) return EP_STATUS_OK;
    if (out_fault != nullptr) *out_fault = {launch.tag, EP_FAULT_INDEX_OUT_OF_RANGE, number, value, limit, 0};
    return EP_STATUS_FAULT;
  }
};

// Returns the position for `index` along an axis of `length`, or -1 if the index is out of range.
inline int64_t resolve_index(int64_t index, int64_t length, BadIndex* bad) {
  const int64_t position = index < 0 ? index + length : index;
  if (position >= 0 && position < length) return position;
  bad->note(index, length);
  return -1;
}

// Returns element `offset` of INDICES, whose type is i64 (`wide`) or i32.
inline int64_t index_at(const char* base, int64_t offset, bool wide) {
  if (wide) return reinterpret_cast<const int64_t*>(base)[offset];
  return reinterpret_cast<const int32_t*>(base)[offset];
}

}  // namespace tenon::provider::cpu
