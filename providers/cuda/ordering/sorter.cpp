#include "providers/cuda/ordering/sorter.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "providers/cuda/ordering/pieces.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t blocks_per_processor = 4;  // for a sort by digits
constexpr int64_t least_cut = 4;             // a level keeps at most 1 / least_cut of a tile

int64_t parts_of(int64_t count, int64_t size) { return (count + size - 1) / size; }
// The number of elements of a row that remain after a level.
int64_t left_of(int64_t length, int64_t tile, int64_t kept) {
  const int64_t before = (length - 1) / tile;
  return before * kept + std::min(kept, length - before * tile);
}

// Keys and places of `count` elements.
struct Pairs {
  uint64_t keys;
  uint64_t places;
};
uint64_t pairs_bytes(int64_t count, int64_t key) { return aligned_bytes(count * key) + aligned_bytes(count * 4); }
Pairs pairs_at(CUdeviceptr address, int64_t count, int64_t key) {
  return {address, address + aligned_bytes(count * key)};
}

void read_from(const Pairs& pairs, SortArguments* sort) {
  sort->keys = pairs.keys;
  sort->places = pairs.places;
}
void write_to(const Pairs& pairs, SortArguments* sort) {
  sort->next_keys = pairs.keys;
  sort->next_places = pairs.places;
}

}  // namespace

KeyArguments key_arguments(int32_t dtype, bool descending) {
  KeyArguments form{};
  const DTypeClass of = dtype_class(dtype);
  form.form = of == DTypeClass::FLOAT ? key_float : of == DTypeClass::INT ? key_signed : key_unsigned;
  form.size = dtype_size(dtype);
  form.descending = descending ? 1 : 0;
  switch (dtype) {
    case EP_DTYPE_f64: form.infinity = UINT64_C(0x7ff0000000000000); break;
    case EP_DTYPE_f32: form.infinity = 0x7f800000; break;
    case EP_DTYPE_f16: form.infinity = 0x7c00; break;
    default: form.infinity = 0x7f80;  // bf16
  }
  return form;
}

bool has_keys(int32_t dtype) {
  const int32_t size = dtype_size(dtype);
  return size != 0 && size <= 8 && (!is_floating(dtype) || size > 1);
}

int64_t length_of(SortTile tile) {
  switch (tile) {
    case SortTile::SHORT: return int64_t{row_block} * sort_items_short;
    case SortTile::MIDDLE: return int64_t{row_block} * sort_items_middle;
    default: return int64_t{row_block} * sort_items_long;
  }
}

SortPlan plan_sort(int64_t rows, int64_t length, int64_t kept, int64_t key, int64_t processors) {
  SortPlan plan;
  for (const SortTile tile : {SortTile::SHORT, SortTile::MIDDLE, SortTile::LONG}) {
    if (length > length_of(tile) || (tile == SortTile::LONG && key == 8)) continue;
    plan.tile = tile;
    const int64_t room = std::min<int64_t>(length_of(tile) / length, sort_most_rows);
    plan.tile_rows = static_cast<int32_t>(std::min(room, rows));
    return plan;
  }
  for (const SortTile tile : {SortTile::MIDDLE, SortTile::LONG}) {
    if (kept > length_of(tile) / least_cut || (tile == SortTile::LONG && key == 8)) continue;
    plan.way = SortWay::LEVELS;
    plan.tile = tile;
    return plan;
  }
  plan.way = SortWay::DIGITS;
  const int64_t tile = length_of(plan.tile);
  const int64_t tiles = parts_of(length, tile);
  const int64_t wanted = std::max<int64_t>(processors * blocks_per_processor / rows, 1);
  plan.piece_length = parts_of(tiles, wanted) * tile;
  plan.pieces = parts_of(length, plan.piece_length);
  return plan;
}

RowSet rows_along(const OperandShape* operands, int32_t axis) {
  RowSet rows{};
  rows.count = 1;
  for (int32_t from = 0; from < operands[0].rank; ++from) {
    const int64_t dim = operands[0].dims[from];
    if (from == axis || dim == 1) continue;
    rows.count *= dim;
    const auto stride = [&](int32_t i) { return operands[i].rank == 0 ? 0 : operands[i].strides[from]; };
    const int32_t last = rows.rank - 1;
    bool continues = last >= 0;
    for (int32_t i = 0; i < row_operands && continues; ++i) continues = rows.strides[i][last] == stride(i) * dim;
    const int32_t to = continues ? last : rows.rank++;
    rows.dims[to] = continues ? rows.dims[to] * dim : dim;
    for (int32_t i = 0; i < row_operands; ++i) rows.strides[i][to] = stride(i);
  }
  if (rows.rank == 0) rows.dims[rows.rank++] = 1;
  return rows;
}

Refusal Sorter::make(ep_device& device, int32_t dtype, Sorter* out) {
  out->dtype_ = dtype;
  out->key_ = key_bytes(dtype_size(dtype));
  out->processors_ = device.facts.processors;
  const std::pair<const char*, CUfunction*> kernels[] = {{"sort_tile_{}_short_block", &out->tiles_[0]},
                                                         {"sort_tile_{}_middle_block", &out->tiles_[1]},
                                                         {"sort_count_{}_block", &out->count_},
                                                         {"sort_scatter_{}_block", &out->scatter_},
                                                         {"sort_offset_warp", &out->offset_}};
  for (const auto& [pattern, function] : kernels) {
    const std::string name = fmt::format(fmt::runtime(pattern), out->key_);
    if (Refusal refusal = find_kernel(device, Family::SORT, name.c_str(), function)) return refusal;
  }
  if (out->key_ == 4) return find_kernel(device, Family::SORT, "sort_tile_4_long_block", &out->tiles_[2]);
  return {};
}

uint64_t Sorter::workspace(int64_t rows, int64_t length, int64_t kept) const {
  const SortPlan plan = plan_sort(rows, length, kept, key_, processors_);
  const int64_t tile = length_of(plan.tile);
  if (plan.way == SortWay::TILES) return 0;
  if (plan.way == SortWay::LEVELS) {
    // At most two levels exist at a time: the one that is read and the one that is written.
    const int64_t first = left_of(length, tile, kept);
    const uint64_t second = first > tile ? pairs_bytes(rows * left_of(first, tile, kept), key_) : 0;
    return pairs_bytes(rows * first, key_) + second;
  }
  const int32_t passes = dtype_size(dtype_);
  const int64_t buffers = std::min(passes - 1, 2);
  return static_cast<uint64_t>(buffers) * pairs_bytes(rows * length, key_) +
         aligned_bytes(rows * digit_values * plan.pieces * 4) + aligned_bytes(rows * digit_values * 4);
}

ep_status Sorter::run(ep_stream* stream, const SortArguments& given, CUdeviceptr workspace, ep_error** error) const {
  SortArguments sort = given;
  sort.passes = sort.form.size;
  sort.pieces = 1;
  sort.tile_rows = 1;
  const SortPlan plan = plan_sort(sort.rows.count, sort.length, sort.kept, key_, processors_);
  if (plan.way == SortWay::TILES) return run_tiles(stream, sort, plan, error);
  if (plan.way == SortWay::LEVELS) return run_levels(stream, sort, plan.tile, workspace, error);
  return run_digits(stream, sort, plan, workspace, error);
}

ep_status Sorter::run_tiles(ep_stream* stream, const SortArguments& given, const SortPlan& plan,
                            ep_error** error) const {
  SortArguments sort = given;
  sort.tile_rows = plan.tile_rows;
  sort.next_length = sort.kept;
  const int64_t tiles = parts_of(sort.rows.count, plan.tile_rows);
  const CUfunction function = tiles_[static_cast<size_t>(plan.tile)];
  return launch_kernel(stream, function, {std::min(tiles, most_blocks), row_block}, &sort, error);
}

ep_status Sorter::run_levels(ep_stream* stream, SortArguments sort, SortTile by, CUdeviceptr workspace,
                             ep_error** error) const {
  const int64_t tile = length_of(by);
  const int64_t rows = sort.rows.count;
  const int64_t first = left_of(sort.length, tile, sort.kept);
  const Pairs result = {sort.next_keys, sort.next_places};
  const Pairs pairs[] = {
      pairs_at(workspace, rows * first, key_),
      pairs_at(workspace + pairs_bytes(rows * first, key_), rows * left_of(first, tile, sort.kept), key_)};
  for (int level = 0; sort.length > tile; ++level) {
    sort.pieces = parts_of(sort.length, tile);
    sort.next_length = left_of(sort.length, tile, sort.kept);
    write_to(pairs[level % 2], &sort);
    const Geometry geometry = {std::min(rows * sort.pieces, most_blocks), row_block};
    if (const ep_status status = launch_kernel(stream, tiles_[static_cast<size_t>(by)], geometry, &sort, error);
        status != EP_STATUS_OK)
      return status;
    read_from(pairs[level % 2], &sort);
    sort.length = sort.next_length;
  }
  write_to(result, &sort);
  sort.pieces = 1;
  return run_tiles(stream, sort, plan_sort(rows, sort.length, sort.kept, key_, processors_), error);
}

ep_status Sorter::run_digits(ep_stream* stream, SortArguments sort, const SortPlan& plan, CUdeviceptr workspace,
                             ep_error** error) const {
  const int64_t rows = sort.rows.count;
  const int64_t count = rows * sort.length;
  const int64_t buffers = std::min(sort.passes - 1, 2);
  const uint64_t bytes = pairs_bytes(count, key_);
  const Pairs result = {sort.next_keys, sort.next_places};
  const Pairs pairs[] = {pairs_at(workspace, count, key_), pairs_at(workspace + bytes, count, key_)};
  sort.counts = workspace + static_cast<uint64_t>(buffers) * bytes;
  sort.totals = sort.counts + aligned_bytes(rows * digit_values * plan.pieces * 4);
  sort.pieces = plan.pieces;
  sort.piece_length = plan.piece_length;
  const Geometry by_piece = {std::min(rows * plan.pieces, most_blocks), row_block};
  const Geometry by_digit = {std::min(parts_of(rows * digit_values, row_block / row_warp), most_blocks), row_block};
  for (int32_t pass = 0; pass < sort.passes; ++pass) {
    sort.shift = pass * digit_bits;
    if (pass > 0) read_from(pairs[(pass - 1) % 2], &sort);
    write_to(pass + 1 < sort.passes ? pairs[pass % 2] : result, &sort);
    const std::pair<CUfunction, const Geometry*> steps[] = {
        {count_, &by_piece}, {offset_, &by_digit}, {scatter_, &by_piece}};
    for (const auto& [function, geometry] : steps) {
      if (const ep_status status = launch_kernel(stream, function, *geometry, &sort, error); status != EP_STATUS_OK)
        return status;
    }
  }
  return EP_STATUS_OK;
}

}  // namespace tenon::provider::cuda
