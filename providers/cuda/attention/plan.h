// How an attention is cut into blocks. Only the shape and the device decide, so that a repeated launch gives the same
// bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "providers/cuda/kernels/arguments.h"

namespace tenon::provider::cuda {

struct AttentionSizes {
  int64_t batch, heads, groups, queries, keys, width, columns;
};

// The kernels. WIDE kernels compute in f32, NARROW kernels on tensor cores; the number is their longest row. FEW
// kernels are for few queries, SOME kernels for queries that are too few to fill the device.
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

// The facts about a device that a plan needs.
struct AttentionDevice {
  int capability;
  int processors;
  int64_t shared_bytes;  // limit for a block
};

struct AttentionPlan {
  AttentionKernel kernel = AttentionKernel::PLAIN;
  int32_t fold = 1;  // heads that share keys and are combined as rows of one unit
  int64_t units = 0;
  int64_t unit_rows = 0;
  int64_t row_blocks = 0;  // per unit
  int64_t splits = 1;      // parts that the keys are cut into
  int64_t split_keys = 0;

  int64_t blocks() const { return units * row_blocks * splits; }
};
AttentionPlan plan_attention(const AttentionSizes& sizes, int32_t dtype, const AttentionDevice& device);

// True if `kernel` can run for `dtype` on the device.
bool may_run(AttentionKernel kernel, int32_t dtype, const AttentionDevice& device);

// Bytes: shared memory of a block; workspace of a launch.
int64_t shared_bytes_of(AttentionKernel kernel, int32_t dtype);
inline constexpr int32_t combine_shared_bytes = attention_most_splits * 4 + attention_threads * 16;
uint64_t parts_bytes(const AttentionPlan& plan, int64_t columns);

// The name of the kernel for `dtype`.
std::string kernel_name(AttentionKernel kernel, int32_t dtype);

}  // namespace tenon::provider::cuda
