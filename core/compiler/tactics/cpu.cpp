#include <algorithm>
#include <optional>

#include "core/compiler/schedule/schedule.h"
#include "core/compiler/tactics/tactic.h"
#include "core/compiler/tactics/tactics.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kColumnVectors = 8;
constexpr int64_t kFewColumns = 16 * kColumnVectors;  // whose sums registers hold
constexpr int64_t kManyColumns = 1024;
constexpr int64_t kMostColumns = 2048;            // whose sums stay in a row
constexpr int64_t kMostRow = int64_t{128} << 10;  // bytes of a row in local memory: half of a small L2

class CpuTactic : public Tactic {
 public:
  CpuTactic(Kernel* kernel, const Tiles& tiles) : Tactic(kernel), tiles_(tiles) {}

  Status run() {
    TENON_RETURN_IF_ERROR(verify(kernel_));
    merge_axes();
    const symbolic::ArenaScope scope(kernel_.arena);
    choose_vector();
    choose_items();
    set_loops();
    while (place_values()) set_loops();
    return verify(kernel_);
  }

 private:
  void choose_items() {
    const std::vector<Id> shared = shared_axes();
    for (const Id axis : shared) {
      if (axis != vector_ && (items_ == kNone || at_most(axis) > at_most(items_))) items_ = axis;
    }
    // Few items of much work each: columns instead.
    if (items_ != kNone && contains(shared, vector_) && at_most(items_) < 64 && at_most(vector_) > kManyColumns &&
        !is_transposed()) {
      items_ = vector_;
    }
    if (items_ == kNone && contains(shared, vector_)) items_ = vector_;
    if (items_ == kNone) items_ = add_unit_axis(&kernel_);
    if (vector_ == kNone) vector_ = items_;
    const auto reduces = [](const Stage& stage) { return stage.kind == StageKind::reduce; };
    const auto has_more = [&](const Stage& stage) { return reduces(stage) || stage.axes.size() > 1; };
    const auto any = [&](const auto& is) { return std::any_of(kernel_.stages.begin(), kernel_.stages.end(), is); };
    if (items_ == vector_) {
      in_columns_ = any(has_more);
      step_ = in_columns_ ? tiles_.column_block : tiles_.flat_block;
    } else if (is_transposed()) {
      step_ = tiles_.transpose_block;
      rows_ = items_;
      // Blocks of the lanes, so that memory is read along whole rows.
      in_tiles_ = shared.size() == 2 && at_most(vector_) >= 8 * tiles_.transpose_columns;
      if (in_tiles_) {
        items_ = vector_;
        step_ = tiles_.transpose_columns;
      }
    } else {  // where no reduction is along the lanes, everything is inside of them, and no row is needed
      in_columns_ = contains(shared, vector_) && any(reduces) && !has_wide_sums();
    }
  }

  // Whether sums of columns stay in a row: memory is then read line after line, three times as fast as some columns of
  // each line. A row is short enough for the nearest cache.
  bool has_wide_sums() const {
    const SymDim width = kernel_.axes[vector_].extent;
    return width.is_number() && width.number() > kFewColumns && width.number() <= kMostColumns;
  }

  // Whether some memory is contiguous along the items but not along the lanes.
  bool is_transposed() const {
    bool found = false;
    each_access([&](const Stage&, SymDim index, int64_t) {
      const Stride lanes = stride_of(kernel_.arena, index, kernel_.at(vector_));
      const Stride items = stride_of(kernel_.arena, index, kernel_.at(items_));
      const bool far = !lanes.linear || !lanes.step.is_number() || lanes.step.number() > 1;
      found = found || (far && items.linear && items.step.is_number() && items.step.number() == 1);
    });
    return found && std::all_of(kernel_.stages.begin(), kernel_.stages.end(), [&](const Stage& stage) {
             return stage.kind != StageKind::reduce && contains(stage.axes, vector_);
           });
  }

  // --- Loops

  void set_loops() {
    Node items;
    items.kind = LoopKind::items;
    items.axis = items_;
    items.step = step_;
    items.body = nest(stages_to_run(), step_ == 1 ? std::set<Id>{items_} : std::set<Id>{});
    if (in_tiles_) {
      Node rows;
      rows.axis = rows_;
      rows.step = tiles_.transpose_block;
      rows.body = std::move(items.body);
      items.body = {std::move(rows)};
    }
    kernel_.body = {std::move(items)};
    set_storage();
  }

  // Spatial axes before reduced ones, and the lanes last. A transposition has its rows inside of the lanes; where the
  // items are columns, everything is, so that sums of columns stay in registers.
  Id next_axis(Id stage, const std::set<Id>& done) const override {
    const std::vector<Id> axes = left(stage, done);
    if (in_columns_ && contains(axes, vector_)) return vector_;
    Id next = kNone;
    for (const Id axis : axes) {
      if (axis == vector_ || axis == rows_) continue;
      if (is_shared(axis)) return axis;  // the loop of all stages
      if (next == kNone) next = axis;
    }
    return next != kNone ? next : contains(axes, vector_) ? vector_ : axes.front();
  }
  bool is_shared(Id axis) const { return contains(shared_axes(), axis); }

  Node loop_over(Id axis, const std::vector<Id>& stages) const override {
    Node loop;
    loop.axis = axis;
    loop.kind = axis == vector_ ? LoopKind::vector : LoopKind::serial;
    if (loop.kind == LoopKind::vector) loop.unroll = unroll(stages);
    return loop;
  }

  // By what is computed alone where something is added up along the lanes: how long an axis is, what is known of that,
  // and tiles change no order of additions.
  int64_t unroll(const std::vector<Id>& stages) const {
    const bool adds = std::any_of(stages.begin(), stages.end(),
                                  [&](Id stage) { return contains(kernel_.stages[stage].reduce_axes, vector_); });
    if (!adds && tiles_.unroll != 0) return tiles_.unroll;
    int64_t sum = 0;
    for (const Id stage : stages) {
      std::set<Id> seen;
      sum += cost(kernel_.stages[stage].value, &seen);
    }
    if (in_columns_) return sum < 16 ? kColumnVectors : sum < 48 ? 4 : 2;
    return sum < 16 ? 4 : sum < 48 ? 2 : 1;
  }

  // Registers where all readers are in the same loops, rows elsewhere.
  void set_storage() {
    const Places places(kernel_);
    for (size_t id = 0; id < kernel_.stages.size(); ++id) {
      Stage& stage = kernel_.stages[id];
      if (stage.storage == Storage::inlined) continue;
      const Place& place = *places.of(static_cast<Id>(id)).front();
      const bool near = is_near(place);
      stage.storage = near || stage.kind == StageKind::store ? Storage::registers : Storage::row;
    }
  }

  // Inlines a value in a row that is cheap, or too long for a row. Whether it did.
  bool place_values() {
    for (size_t id = 0; id < kernel_.stages.size(); ++id) {
      Stage& stage = kernel_.stages[id];
      if (stage.kind != StageKind::value || stage.storage != Storage::row) continue;
      std::set<Id> seen;
      if (cost(stage.value, &seen) > tiles_.cheap && row_bytes(static_cast<Id>(id)) <= kMostRow) continue;
      stage.storage = Storage::inlined;
      return true;
    }
    return false;
  }

  // At most: the product of the extents of the loops that its readers do not share.
  int64_t row_bytes(Id id) const {
    const Places places(kernel_);
    const Place& place = *places.of(id).front();
    int64_t bytes = 8;
    for (size_t i = 0; i < place.level; ++i) {
      if (place.loops[i]->kind == LoopKind::vector) bytes *= 16 * place.loops[i]->unroll;
    }
    for (const Id axis : kernel_.stages[id].axes) {
      int64_t positions = 1;
      for (size_t i = place.level; i < place.loops.size(); ++i) {
        if (place.loops[i]->axis == axis) positions = at_most(axis);
      }
      for (size_t i = 0; i < place.level; ++i) {
        if (place.loops[i]->axis == axis) positions = std::min(positions, place.loops[i]->step);
      }
      if (positions > kMostRow || __builtin_mul_overflow(bytes, std::max<int64_t>(positions, 1), &bytes))
        return kMostRow + 1;
    }
    return bytes;
  }

  const Tiles tiles_;
  Id items_ = kNone;
  int64_t step_ = 1;
  bool in_columns_ = false;
  Id rows_ = kNone;  // of a transposition: along these memory is contiguous, too
  bool in_tiles_ = false;
};

}  // namespace

Status schedule_for_cpu(Kernel* kernel, const Tiles& tiles) {
  if (kernel->scheduled()) {
    return {Code::invalid_argument, fmt::format("Kernel {} has loops already.", kernel->name)};
  }
  Kernel copy = *kernel;
  try {
    TENON_RETURN_IF_ERROR(CpuTactic(&copy, tiles).run());
  } catch (const Error& error) {
    return error.status();
  }
  *kernel = std::move(copy);
  return {};
}

}  // namespace tenon::compiler
