// Tiles: the parameters of a tactic that do not change results. core/codegen/tune searches for good ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

struct Tiles {
  // For a CPU:
  int64_t flat_block = 4096;        // positions of a flat loop: 32 KiB of f32 in and out
  int64_t column_block = 128;       // columns at once: 8 lines of f32 of each row, with as many sums in registers
  int64_t transpose_block = 256;    // rows of a tile, along which its memory is contiguous
  int64_t transpose_columns = 128;  // lanes of a tile: with the rows 144 KiB of f32
  int64_t unroll = 0;  // vectors in a row of a loop without reduction; 0: depends on what the loop computes
  // For a device of groups:
  int64_t work_items = 256;   // work-items per group; sums over more positions always use 256
  int64_t per_work_item = 4;  // positions of a flat loop
  int64_t group_columns = 32;
  int64_t group_rows = 0;  // maximum rows of a group; 0: as many as there are work-items for
  // For both: a value that costs at most this many additions is computed again instead of kept.
  int64_t cheap = 6;

  friend bool operator==(const Tiles&, const Tiles&) = default;
};

// One row per member: its name in files, and the numbers it may have.
struct TileRow {
  std::string_view name;
  int64_t Tiles::*member;
  int64_t least, most;
};
std::span<const TileRow> tile_rows();

// The members that differ from the defaults, such as "flat_block 8192, unroll 2"; "default" if none does.
std::string tiles_text(const Tiles& tiles);

// The loops of a scheduled kernel that reductions add up in, as text. Two schedules of one kernel with equal texts give
// the same result bits.
std::string sums_text(const Kernel& kernel);

}  // namespace tenon::codegen
