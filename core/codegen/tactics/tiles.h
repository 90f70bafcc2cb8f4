// Tiles: the numbers of a tactic that may be others without another result. What a kernel does for whom they are good
// is for core/codegen/tune to find out.
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
  int64_t column_block = 128;       // columns at once: 8 lines of f32 of each row, and as many sums in registers
  int64_t transpose_block = 256;    // rows of a tile, along which its memory is contiguous
  int64_t transpose_columns = 128;  // lanes of a tile: with the rows 144 KiB of f32
  int64_t unroll = 0;               // vectors of a loop that adds nothing up; 0: by what it computes
  // For a device of groups:
  int64_t work_items = 256;   // of a group; a sum over more positions is added up by 256 in any case
  int64_t per_work_item = 4;  // positions of a flat loop
  int64_t group_columns = 32;
  int64_t group_rows = 0;  // at most so many; 0: as many as there are work-items for
  // For both: additions that cost less than to keep their result.
  int64_t cheap = 6;

  friend bool operator==(const Tiles&, const Tiles&) = default;
};

// Every member once: what it is called in files, and which numbers it may have.
struct TileRow {
  std::string_view name;
  int64_t Tiles::*member;
  int64_t least, most;
};
std::span<const TileRow> tile_rows();

// "flat_block 8192, unroll 2": the members that differ from the defaults. "default", if none does.
std::string tiles_text(const Tiles& tiles);

// The loops of a scheduled kernel in which its reductions add up, as text. Two schedules of one kernel with equal texts
// give equal results to the last bit.
std::string sums_text(const Kernel& kernel);

}  // namespace tenon::codegen
