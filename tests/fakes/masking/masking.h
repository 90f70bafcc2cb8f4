// The masking fake: wraps a provider, refuses chosen kinds, and counts what passes. For tests of the fallback ladder.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>

#include "ep_api/ep_api.h"

namespace tenon::fakes {

// What was refused and what came through, of all devices of the wrapped provider. Test and devices share it.
struct MaskingControl {
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> copies{0};  // copy, upload and download
  std::atomic<uint64_t> bytes_copied{0};
  std::atomic<uint64_t> refused{0};  // answers of primitive_support and primitive_create
  // From now on, of all kinds but copy: operands that are not row-major, descriptors with an epilogue.
  std::atomic<bool> refuses_strides{false};
  std::atomic<bool> refuses_epilogues{false};
  // The alignment to ask for of all operands, of all kinds but copy (of copy too where aligns_copy is set); 0 none.
  std::atomic<int32_t> alignment{0};
  std::atomic<bool> aligns_copy{false};

  // Kinds (EP_PRIMITIVE_*) to refuse from now on; kernels that exist already still run.
  void refuse(std::set<int32_t> kinds);
  bool refuses(int32_t kind) const;
  // Counters to 0, nothing refused.
  void reset();
};

MaskingControl& masking_control();

// The provider to wrap, before masking_query is first called: a query function, or the path of a plug-in. By default
// the configuration says: `[provider.masking]` path = "...", refuse = "softmax,matmul".
void masking_wrap(ep_plugin_query_fn query);
void masking_wrap(const std::string& path);

ep_status masking_query(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error);

}  // namespace tenon::fakes
