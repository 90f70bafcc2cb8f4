// The masking fake: wraps a provider, refuses chosen kinds, and counts calls. For tests of the fallback ladder.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>

#include "ep_api/ep_api.h"

namespace tenon::fakes {

// Counts refusals and calls of all devices of the wrapped provider, and decides what they refuse. Test and devices
// share it.
struct MaskingControl {
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> copies{0};  // copy, upload and download
  std::atomic<uint64_t> bytes_copied{0};
  std::atomic<uint64_t> refused{0};  // refusals by primitive_support and primitive_create
  // Refuses operands that are not row-major, and descriptors with an epilogue, for all kinds but copy.
  std::atomic<bool> refuses_strides{false};
  std::atomic<bool> refuses_epilogues{false};
  // The alignment that all kinds but copy demand of every operand; 0: none. With aligns_copy, copy demands it too.
  std::atomic<int32_t> alignment{0};
  std::atomic<bool> aligns_copy{false};

  // The next `create_fails` calls of primitive_create return `create_answer`. Then counters of calls.
  std::atomic<int64_t> create_fails{0};
  std::atomic<ep_status> create_answer{EP_STATUS_OUT_OF_DEVICE_MEMORY};
  std::atomic<uint64_t> creates{0};
  std::atomic<uint64_t> trims{0};
  std::atomic<uint64_t> modules{0};  // compiled texts

  // The device's description of pool 0. Read when the device is listed, and kept for that device.
  std::atomic<bool> exclusive{false};    // a block holds one tensor
  std::atomic<uint64_t> granularity{1};  // granularity of copies, in bytes
  std::atomic<bool> unmapped{false};     // the host cannot reach the memory
  std::atomic<uint64_t> portable{0};     // portable_dtypes
  std::atomic<uint64_t> flushed{0};      // flushed_dtypes
  // The first breach of these rules of pool 0, or an empty string.
  std::string violation();
  void violate(const std::string& text);

  // Limits of open dims; 0: none. The `greatest_...` are stated in the answer of primitive_support. The others are not
  // stated; a launch or primitive_workspace fails because of them.
  std::atomic<uint64_t> greatest_dim{0}, greatest_elements{0}, greatest_bytes{0};
  std::atomic<int64_t> launch_limit{0};     // elements of operand 0
  std::atomic<int64_t> workspace_limit{0};  // elements of operand 0
  std::atomic<uint64_t> beyond{0};          // launches and calls of primitive_workspace refused because of such a limit
  std::atomic<uint64_t> open_launches{0};   // launches of primitives with open dims

  // Number of descriptors that demanded a precision: portable or full in a call of primitive_support, and relaxed.
  std::atomic<uint64_t> demands{0}, relaxed_demands{0};
  std::atomic<uint64_t> relaxed_creates{0};  // primitives created under EP_PRECISION_RELAXED
  // Says that it keeps demands of precision for `kinds` (EP_SUPPORT_FLAG_PRECISION), and that it uses the permission
  // of relaxed (EP_SUPPORT_FLAG_RELAXED). The kernels are the wrapped
  // provider's.
  void keep(std::set<int32_t> kinds);
  bool keeps(int32_t kind) const;

  // Refuses `kinds` (EP_PRIMITIVE_*) from now on. Existing kernels still run.
  void refuse(std::set<int32_t> kinds);
  bool refuses(int32_t kind) const;
  // Sets counters to 0 and refuses nothing.
  void reset();

 private:
  std::string violation_;
};

MaskingControl& masking_control();

// The provider to wrap, as a query function or as the path of a plug-in. Call it before masking_query. Without a call
// the configuration decides: `[provider.masking]` path = "...", refuse = "softmax,matmul".
void masking_wrap(ep_plugin_query_fn query);
void masking_wrap(const std::string& path);

ep_status masking_query(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error);

}  // namespace tenon::fakes
