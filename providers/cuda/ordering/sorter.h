// Sorter: sorts the rows of a tensor, or returns the first elements of each sorted row.
#pragma once

#include <cstdint>

#include "providers/cuda/primitive.h"

namespace tenon::provider::cuda {

// How rows are sorted.
// * TILES: each row fits a tile, which has one row or several.
// * LEVELS: each tile of a row keeps its first elements; the kept elements are sorted again, until they fit a tile.
// * DIGITS: digit by digit.
enum class SortWay : uint8_t { TILES, LEVELS, DIGITS };
enum class SortTile : uint8_t { SHORT, MIDDLE, LONG };
inline constexpr size_t sort_tiles = 3;
struct SortPlan {
  SortWay way = SortWay::TILES;
  SortTile tile = SortTile::MIDDLE;
  int32_t tile_rows = 1;     // for TILES
  int64_t pieces = 1;        // for DIGITS, per row
  int64_t piece_length = 0;  // for DIGITS
};
// `key` and `element` are bytes. The first `kept` elements of each of `rows` rows are needed.
SortPlan plan_sort(int64_t rows, int64_t length, int64_t kept, int64_t key, int64_t processors);

// Elements per tile.
int64_t length_of(SortTile tile);
// Bytes of the key of an element of `size` bytes.
constexpr int64_t key_bytes(int64_t size) { return size == 8 ? 8 : 4; }
// True if elements of `dtype` have keys.
bool has_keys(int32_t dtype);
// How elements of `dtype` become keys.
KeyArguments key_arguments(int32_t dtype, bool descending);

// The rows along `axis` of up to row_operands operands. An absent operand has no dims.
RowSet rows_along(const OperandShape* operands, int32_t axis);

class Sorter {
 public:
  // Sorts elements of `dtype`. Throws DriverError.
  static Refusal make(ep_device& device, int32_t dtype, Sorter* out);

  // `sort` must have the addresses and strides of operands, the rows, `length`, `kept` and `form`. If next_keys and
  // next_places are set, they receive the result, and `kept` must be `length`.
  uint64_t workspace(int64_t rows, int64_t length, int64_t kept) const;
  ep_status run(ep_stream* stream, const SortArguments& sort, CUdeviceptr workspace, ep_error** error) const;

 private:
  ep_status run_tiles(ep_stream* stream, const SortArguments& sort, const SortPlan& plan, ep_error** error) const;
  ep_status run_levels(ep_stream* stream, SortArguments sort, SortTile tile, CUdeviceptr workspace,
                       ep_error** error) const;
  ep_status run_digits(ep_stream* stream, SortArguments sort, const SortPlan& plan, CUdeviceptr workspace,
                       ep_error** error) const;

  int32_t dtype_ = 0;
  int64_t key_ = 4;
  int64_t processors_ = 1;
  CUfunction tiles_[sort_tiles] = {};
  CUfunction count_ = nullptr;
  CUfunction offset_ = nullptr;
  CUfunction scatter_ = nullptr;
};

}  // namespace tenon::provider::cuda
