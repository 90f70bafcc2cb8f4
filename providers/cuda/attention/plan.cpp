#include "providers/cuda/attention/plan.h"

#include <fmt/core.h>

#include <algorithm>

#include "ep_api/ep_api.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t least_split = 64;                // keys per split
constexpr int64_t most_folded = int64_t{1} << 24;  // rows of a unit, which the kernels divide as floats
constexpr int64_t few_rows = 16;

// The shared memory of a kernel in attention.cu: rows of queries and two tiles of keys. The variant PLAIN
// holds one row and the weights of its keys.
struct Tile {
  const char* name;  // without the dtype suffix
  int64_t width, rows, keys, size;
};
constexpr Tile tiles[attention_kernels] = {
    {"64_few", 64, 16, 64, 4},    {"64", 64, 64, 64, 4},     {"128_few", 128, 16, 32, 4}, {"128", 128, 64, 32, 4},
    {"256", 256, 32, 32, 4},      {"64_few", 64, 16, 64, 2}, {"64", 64, 64, 64, 2},       {"128_few", 128, 16, 64, 2},
    {"128_some", 128, 64, 64, 2}, {"128", 128, 128, 64, 2},  {"256", 256, 64, 32, 2},     {"plain", 0, 1, 1, 0}};

const Tile& tile_of(AttentionKernel kernel) { return tiles[static_cast<size_t>(kernel)]; }
bool is_wide(AttentionKernel kernel) { return kernel <= AttentionKernel::WIDE_256; }

int64_t divided_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

// True if blocks with the many rows of NARROW_128 are enough to occupy all multiprocessors. Otherwise blocks have fewer
// rows.
bool fills_device(const AttentionSizes& sizes, const AttentionDevice& device) {
  const int64_t blocks = divided_up(sizes.queries, tile_of(AttentionKernel::NARROW_128).rows);
  return sizes.batch * sizes.heads * blocks >= 2 * device.processors;
}

AttentionKernel choose_kernel(const AttentionSizes& sizes, int32_t dtype, const AttentionDevice& device) {
  const int64_t row = std::max(sizes.width, sizes.columns);
  const int64_t rows = sizes.groups == 0 ? 0 : sizes.heads / sizes.groups * sizes.queries;
  for (size_t i = 0; i < attention_kernels; ++i) {
    const auto kernel = static_cast<AttentionKernel>(i);
    const Tile& tile = tile_of(kernel);
    if (kernel == AttentionKernel::NARROW_128_SOME && fills_device(sizes, device)) continue;
    const bool fits = row <= tile.width && (tile.rows > few_rows || rows <= tile.rows);
    if (fits && may_run(kernel, dtype, device)) return kernel;
  }
  return AttentionKernel::PLAIN;
}

}  // namespace

bool may_run(AttentionKernel kernel, int32_t dtype, const AttentionDevice& device) {
  if (kernel == AttentionKernel::PLAIN) return true;
  const bool wide = dtype == EP_DTYPE_f32 || (dtype == EP_DTYPE_bf16 && device.capability < 80);
  return dtype != EP_DTYPE_f64 && is_wide(kernel) == wide && shared_bytes_of(kernel, dtype) <= device.shared_bytes;
}

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
  // Blocks of few rows mostly wait for memory, so a multiprocessor takes more of them.
  const int64_t wanted = device.processors * (tile.rows == few_rows ? 4 : 2);
  if (plan.kernel == AttentionKernel::PLAIN || blocks == 0 || 2 * blocks > wanted) return plan;
  const int64_t splits = std::min({wanted / blocks, sizes.keys / least_split, int64_t{attention_most_splits}});
  if (splits <= 1) return plan;
  plan.split_keys = divided_up(divided_up(sizes.keys, splits), tile.keys) * tile.keys;
  plan.splits = divided_up(sizes.keys, plan.split_keys);
  return plan;
}

uint64_t parts_bytes(const AttentionPlan& plan, int64_t columns) {
  if (plan.splits == 1) return 0;
  return static_cast<uint64_t>(plan.units * plan.unit_rows * plan.splits * attention_part_floats(columns)) *
         sizeof(float);
}

std::string kernel_name(AttentionKernel kernel, int32_t dtype) {
  const char* const name = tile_of(kernel).name;
  if (kernel == AttentionKernel::PLAIN)
    return fmt::format("attention_{}_{}", name, dtype == EP_DTYPE_f64 ? "f64" : "f32");
  return fmt::format("attention_{}_{}", is_wide(kernel) ? "f32" : dtype == EP_DTYPE_f16 ? "f16" : "bf16", name);
}

}  // namespace tenon::provider::cuda
