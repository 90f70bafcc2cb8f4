// How an attention is cut into blocks. The shape and the device alone decide it, so that a repeated launch gives the
// same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "providers/cuda/kernels/arguments.h"

namespace tenon::provider::cuda {

struct AttentionSizes {
  int64_t batch, heads, groups, queries, keys, width, columns;
};

// The kernels. WIDE ones compute in f32, NARROW ones on tensor cores; the number is the longest row of theirs. FEW ones
// are for few queries, SOME ones for fewer than fill a device.
enum class AttentionKernel : size_t {
  WIDE_64_FEW,
  WIDE_64,
  WIDE_128_FEW,
  WIDE_128,
  WIDE_256,
  NARROW_64_FEW,
  NARROW_64,
  NARROW_128_FEW,
  NARROW_128_SOME,
  NARROW_128,
  NARROW_256,
  PLAIN
};
inline constexpr size_t attention_kernels = static_cast<size_t>(AttentionKernel::PLAIN) + 1;

// What the plan must know of a device.
struct AttentionDevice {
  int capability;
  int processors;
  int64_t shared_bytes;  // that a block may have
};

struct AttentionPlan {
  AttentionKernel kernel = AttentionKernel::PLAIN;
  int32_t fold = 1;  // heads that share keys and go together as rows of one unit
  int64_t units = 0;
  int64_t unit_rows = 0;
  int64_t row_blocks = 0;  // of a unit
  int64_t splits = 1;      // of the keys
  int64_t split_keys = 0;

  int64_t blocks() const { return units * row_blocks * splits; }
};
AttentionPlan plan_attention(const AttentionSizes& sizes, int32_t dtype, const AttentionDevice& device);

// True if a plan for `dtype` on the device may have the kernel.
bool may_run(AttentionKernel kernel, int32_t dtype, const AttentionDevice& device);

// The bytes of shared memory of a block, and of workspace of a launch.
int64_t shared_bytes_of(AttentionKernel kernel, int32_t dtype);
inline constexpr int32_t combine_shared_bytes = attention_most_splits * 4 + attention_threads * 16;
uint64_t parts_bytes(const AttentionPlan& plan, int64_t columns);

// The name of a kernel that takes `dtype`.
std::string kernel_name(AttentionKernel kernel, int32_t dtype);

}  // namespace tenon::provider::cuda
