#include "core/codegen/tactics/tiles.h"

#include <algorithm>

#include "core/codegen/loop/places.h"
#include "core/codegen/tactics/tactic.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

constexpr TileRow kRows[] = {
    {"flat_block", &Tiles::flat_block, 64, 1 << 20},
    {"column_block", &Tiles::column_block, 16, 1 << 16},
    {"transpose_block", &Tiles::transpose_block, 1, 1024},
    {"transpose_columns", &Tiles::transpose_columns, 16, 1 << 16},
    {"unroll", &Tiles::unroll, 0, 16},
    {"work_items", &Tiles::work_items, 1, 1024},
    {"per_work_item", &Tiles::per_work_item, 1, 64},
    {"group_columns", &Tiles::group_columns, 1, 1024},
    {"group_rows", &Tiles::group_rows, 0, 1024},
    {"cheap", &Tiles::cheap, 0, 1 << 20},
};

}  // namespace

std::span<const TileRow> tile_rows() { return kRows; }

std::string tiles_text(const Tiles& tiles) {
  std::string text;
  for (const TileRow& row : kRows) {
    if (tiles.*row.member == Tiles{}.*row.member) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", row.name, tiles.*row.member);
  }
  return text.empty() ? "default" : text;
}

std::string sums_text(const Kernel& kernel) {
  const Places places(kernel);
  std::string text;
  for (Id id = 0; id < kernel.stages.size(); ++id) {
    const Stage& stage = kernel.stages[id];
    if (stage.kind != StageKind::reduce) continue;
    text += stage.name;
    for (const Place* place : places.of(id)) {
      for (const Node* loop : place->loops) {
        if (!contains(stage.reduce_axes, loop->axis)) continue;
        text += fmt::format(" {} {} by {} {} {} {}", kernel.axes[loop->axis].name, static_cast<int>(loop->kind),
                            loop->step, loop->unroll, loop->width, loop->dim);
      }
    }
    text += "\n";
  }
  return text;
}

}  // namespace tenon::codegen
