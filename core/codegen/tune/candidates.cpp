#include "core/codegen/tune/candidates.h"

#include <algorithm>
#include <utility>

namespace tenon::codegen {
namespace {

// The choices that the loops of a kernel allow.
struct Shape {
  bool in_groups = false;   // it has groups of work-items
  bool has_blocks = false;  // an item is a block of the axis of the lanes
  bool has_tiles = false;   // an item is a block of rows or columns of a transposition
  bool has_values = false;  // it has values that may be kept or computed again
};

void look(const std::vector<Node>& nodes, const Node* items, Shape* shape) {
  for (const Node& node : nodes) {
    if (!node.is_loop()) continue;
    const Node* outer = items != nullptr ? items : &node;
    if (node.kind == LoopKind::work_items) shape->in_groups = true;
    if (node.kind == LoopKind::vector && node.axis == outer->axis) shape->has_blocks = true;
    if (node.kind == LoopKind::serial && node.step > 1) shape->has_tiles = true;
    look(node.body, outer, shape);
  }
}

class List {
 public:
  void add(int64_t Tiles::*member, std::initializer_list<int64_t> numbers) {
    for (const int64_t number : numbers) {
      Tiles tiles;
      tiles.*member = number;
      add(tiles);
    }
  }
  void add(const Tiles& tiles) {
    if (tiles == Tiles() || std::find(all_.begin(), all_.end(), tiles) != all_.end()) return;
    all_.push_back(tiles);
  }
  std::vector<Tiles> take() { return std::move(all_); }

 private:
  std::vector<Tiles> all_;
};

}  // namespace

std::vector<Tiles> candidates(const Kernel& scheduled) {
  Shape shape;
  look(scheduled.body, nullptr, &shape);
  shape.has_values = std::any_of(scheduled.stages.begin(), scheduled.stages.end(),
                                 [](const Stage& stage) { return stage.kind == StageKind::value; });
  List list;
  if (shape.in_groups) {
    list.add(&Tiles::group_rows, {1, 4, 2});
    list.add(&Tiles::per_work_item, {1, 2, 8});
    list.add(&Tiles::work_items, {128, 512, 64});
    Tiles one;  // many small groups
    one.work_items = 128;
    one.per_work_item = 1;
    list.add(one);
    list.add(&Tiles::group_columns, {64, 16});
    if (shape.has_values) list.add(&Tiles::cheap, {0, 40});
    return list.take();
  }
  if (shape.has_blocks) {
    list.add(&Tiles::flat_block, {16384, 1024});
    list.add(&Tiles::column_block, {256, 64, 512});
  }
  list.add(&Tiles::unroll, {1, 4, 2, 8});
  if (shape.has_tiles) {
    for (const auto& [columns, rows] : {std::pair<int64_t, int64_t>{64, 256}, {128, 128}, {256, 128}, {64, 512}}) {
      Tiles tiles;
      tiles.transpose_columns = columns;
      tiles.transpose_block = rows;
      list.add(tiles);
    }
  }
  if (shape.has_values) list.add(&Tiles::cheap, {0, 40});
  if (shape.has_blocks) list.add(&Tiles::flat_block, {65536});
  return list.take();
}

Tiles joined(const Tiles& first, const Tiles& second) {
  Tiles both = first;
  for (const TileRow& row : tile_rows()) {
    if (both.*row.member == Tiles{}.*row.member) both.*row.member = second.*row.member;
  }
  return both;
}

}  // namespace tenon::codegen
