#include "providers/cuda/attention/plan.h"

#include <algorithm>

#include "ep_api/ep_api.h"
#include "providers/cuda/kernels/arguments.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t least_split = 128;  // keys
constexpr int64_t most_splits = 128;
constexpr int64_t most_folded = int64_t{1} << 24;  // rows of a unit, which the kernels divide as floats

// What a kernel of attention.cu holds in shared memory: rows of queries, and two tiles of keys. PLAIN has a row and the
// weights of its keys.
struct Tile {
  int64_t width, rows, keys, size;
};
constexpr Tile tiles[attention_kernels] = {{64, 64, 64, 4},   {128, 64, 32, 4}, {256, 32, 32, 4}, {64, 128, 64, 2},
                                           {128, 128, 64, 2}, {256, 64, 32, 2}, {0, 1, 1, 0}};

const Tile& tile_of(AttentionKernel kernel) { return tiles[static_cast<size_t>(kernel)]; }

int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

AttentionKernel choose_kernel(const AttentionSizes& sizes, int32_t dtype, const AttentionDevice& device) {
  const bool narrow = dtype == EP_DTYPE_f16 || (dtype == EP_DTYPE_bf16 && device.capability >= 80);
  const int64_t row = std::max(sizes.width, sizes.columns);
  if (dtype == EP_DTYPE_f64) return AttentionKernel::PLAIN;
  for (size_t i = 0; i < 3; ++i) {
    const auto kernel = static_cast<AttentionKernel>(narrow ? i + 3 : i);
    if (row <= tile_of(kernel).width && shared_bytes_of(kernel, dtype) <= device.shared_bytes) return kernel;
  }
  return AttentionKernel::PLAIN;
}

}  // namespace

int64_t shared_bytes_of(AttentionKernel kernel, int32_t dtype) {
  if (kernel == AttentionKernel::PLAIN) return int64_t{attention_chunk} * (dtype == EP_DTYPE_f64 ? 8 : 4);
  const Tile& tile = tile_of(kernel);
  return (tile.rows + 2 * tile.keys) * tile.width * tile.size;
}

AttentionPlan plan_attention(const AttentionSizes& sizes, int32_t dtype, const AttentionDevice& device) {
  AttentionPlan plan;
  plan.kernel = choose_kernel(sizes, dtype, device);
  const Tile& tile = tile_of(plan.kernel);
  const int64_t ratio = sizes.groups == 0 ? 1 : sizes.heads / sizes.groups;
  if (sizes.queries < tile.rows && ratio * sizes.queries < most_folded) plan.fold = static_cast<int32_t>(ratio);
  plan.units = sizes.batch * sizes.heads / plan.fold;
  plan.unit_rows = plan.fold * sizes.queries;
  plan.row_blocks = divided_up(plan.unit_rows, tile.rows);
  plan.split_keys = std::max<int64_t>(sizes.keys, 1);
  const int64_t blocks = plan.blocks();
  if (plan.kernel == AttentionKernel::PLAIN || blocks == 0 || blocks >= device.processors) return plan;
  const int64_t splits = std::min({2 * device.processors / blocks, sizes.keys / least_split, most_splits});
  if (splits <= 1) return plan;
  plan.split_keys = divided_up(divided_up(sizes.keys, splits), tile.keys) * tile.keys;
  plan.splits = divided_up(sizes.keys, plan.split_keys);
  return plan;
}

uint64_t parts_bytes(const AttentionPlan& plan, int64_t columns) {
  if (plan.splits == 1) return 0;
  return static_cast<uint64_t>(plan.units * plan.unit_rows * plan.splits * (columns + 2)) * sizeof(float);
}

const char* kernel_name(AttentionKernel kernel, int32_t dtype) {
  const bool half = dtype == EP_DTYPE_f16;
  switch (kernel) {
    case AttentionKernel::WIDE_64: return "attention_f32_64";
    case AttentionKernel::WIDE_128: return "attention_f32_128";
    case AttentionKernel::WIDE_256: return "attention_f32_256";
    case AttentionKernel::NARROW_64: return half ? "attention_f16_64" : "attention_bf16_64";
    case AttentionKernel::NARROW_128: return half ? "attention_f16_128" : "attention_bf16_128";
    case AttentionKernel::NARROW_256: return half ? "attention_f16_256" : "attention_bf16_256";
    default: return dtype == EP_DTYPE_f64 ? "attention_plain_f64" : "attention_plain_f32";
  }
}

}  // namespace tenon::provider::cuda
