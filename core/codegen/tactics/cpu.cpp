#include <algorithm>
#include <optional>

#include "core/codegen/schedule/schedule.h"
#include "core/codegen/tactics/tactic.h"
#include "core/codegen/tactics/tactics.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

constexpr int64_t kColumnVectors = 8;
constexpr int64_t kFewColumns = 16 * kColumnVectors;  // most columns whose sums fit into registers
constexpr int64_t kManyColumns = 1024;
constexpr int64_t kMostColumns = 2048;              // most columns whose sums are kept in a row
constexpr int64_t kMostBlock = int64_t{384} << 10;  // most bytes of a block of columns that are read again
constexpr int64_t kColumnStep = 64;                 // threads share columns in multiples of this
constexpr int64_t kManyItems = 64;                  // enough for all processors
constexpr int64_t kLeastRow = 64;                   // fewest lanes that are worth a quotient
constexpr int64_t kMostRow = int64_t{128} << 10;    // most bytes of a row in local memory: half of a small L2 cache

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
    std::vector<Id> shared = shared_axes();
    choose_rows(shared);
    if (rows_ == kNone && vector_ != kNone && at_most(vector_) >= kLeastRow) {
      merge_shared_axes();
      shared = shared_axes();
    }
    for (const Id axis : shared) {
      if (axis != vector_ && (items_ == kNone || at_most(axis) > at_most(items_))) items_ = axis;
    }
    // If there are few items with much work each, the items are columns instead.
    if (items_ != kNone && contains(shared, vector_) && at_most(items_) < 64 && at_most(vector_) > kManyColumns &&
        rows_ == kNone) {
      items_ = vector_;
    }
    if (items_ == kNone && contains(shared, vector_)) items_ = vector_;
    if (items_ == kNone) items_ = add_unit_axis(&kernel_);
    if (vector_ == kNone) vector_ = items_;
    const auto reduces = [](const Stage& stage) { return stage.kind == StageKind::reduce; };
    const auto has_more = [&](const Stage& stage) { return reduces(stage) || stage.axes.size() > 1; };
    const auto any = [&](const auto& is) { return std::any_of(kernel_.stages.begin(), kernel_.stages.end(), is); };
    if (rows_ != kNone) {
      choose_tiles(shared);
    } else if (contains(shared, vector_) && any(reduces)) {
      choose_columns();
    } else if (items_ == vector_) {
      in_columns_ = any(has_more);
      step_ = in_columns_ ? tiles_.column_block : tiles_.flat_block;
    }
  }

  // Chooses the loops of reductions that are not along the lanes. If there are few columns, or if several loops read
  // columns that a near cache holds, the reducing loops are inside of the lanes, and sums stay in registers. Otherwise
  // memory is read line after line, and sums are kept in a row.
  void choose_columns() {
    const SymDim width = kernel_.axes[vector_].extent;
    const bool few = width.is_number() && width.number() <= kFewColumns;
    const int64_t length = std::max<int64_t>(reads_again(), 1);
    const bool again = length > 1;
    most_vectors_ = again ? std::min(kColumnVectors, kMostRow / (64 * length)) : kColumnVectors;
    in_columns_ = few || (again && keeps_values() && most_vectors_ > 0);
    if (most_vectors_ == 0) most_vectors_ = kColumnVectors;
    // A block of columns that are read again stays in the cache, together with the next block.
    const int64_t near = kMostBlock / (4 * length) / kColumnStep * kColumnStep;
    columns_ = again && near > 0 ? std::min(near, kMostColumns) : kMostColumns;
    if (items_ == vector_) step_ = in_columns_ ? tiles_.column_block : kColumnStep;
    if (items_ == vector_ && !in_columns_) at_once_ = columns_ / kColumnStep;
  }

  // True if a value is kept because it costs more than keeping it.
  bool keeps_values() const {
    return std::any_of(kernel_.stages.begin(), kernel_.stages.end(), [&](const Stage& stage) {
      std::set<Id> seen;
      return stage.kind == StageKind::value && !is_cheap(stage) && cost(stage.value, &seen) > tiles_.cheap;
    });
  }
  // True if the stage does not have the reduced axis of some reduction, for which it is one number.
  bool is_cheap(const Stage& stage) const {
    return std::any_of(kernel_.stages.begin(), kernel_.stages.end(), [&](const Stage& other) {
      return other.kind == StageKind::reduce && !contains(stage.axes, other.reduce_axes.front());
    });
  }

  // The length of reductions whose results are read by another stage along the reduced axes; 0: there are none.
  int64_t reads_again() const {
    int64_t most = 0;
    for (const Stage& stage : kernel_.stages) {
      if (stage.kind != StageKind::reduce) continue;
      int64_t length = 1;
      for (const Id axis : stage.reduce_axes) {
        if (at_most(axis) > kMostRow || __builtin_mul_overflow(length, at_most(axis), &length)) length = kMostRow;
      }
      const auto id = static_cast<Id>(&stage - kernel_.stages.data());
      const bool again = std::any_of(kernel_.stages.begin() + id + 1, kernel_.stages.end(), [&](const Stage& reader) {
        std::vector<Id> axes = reader.axes;
        axes.insert(axes.end(), reader.reduce_axes.begin(), reader.reduce_axes.end());
        std::set<Id> seen;
        return contains(axes, stage.reduce_axes.front()) && depends_on(reader.value, id, &seen);
      });
      if (again) most = std::max(most, length);
    }
    return most;
  }
  bool depends_on(Id expr, Id stage, std::set<Id>* seen) const {
    if (!seen->insert(expr).second) return false;
    const Expr& each = kernel_.exprs[expr];
    for (size_t i = 0; i < arg_count(each); ++i) {
      if (depends_on(each.args[i], stage, seen)) return true;
    }
    return each.kind == ExprKind::stage &&
           (each.target == stage || depends_on(kernel_.stages[each.target].value, stage, seen));
  }

  // For a transposition: chooses the longest shared axis along which memory is contiguous. Skips the lanes' axis.
  void choose_rows(const std::vector<Id>& shared) {
    const bool adds = std::any_of(kernel_.stages.begin(), kernel_.stages.end(),
                                  [](const Stage& stage) { return stage.kind == StageKind::reduce; });
    if (adds || !contains(shared, vector_)) return;
    for (const Id axis : shared) {
      if (axis == vector_ || (rows_ != kNone && at_most(axis) <= at_most(rows_))) continue;
      each_access([&](const Stage&, SymDim index, int64_t) {
        const Stride lanes = stride_of(kernel_.arena, index, kernel_.at(vector_));
        const Stride rows = stride_of(kernel_.arena, index, kernel_.at(axis));
        const bool far = !lanes.linear || !lanes.step.is_number() || lanes.step.number() > 1;
        if (far && rows.linear && rows.step.is_number() && rows.step.number() == 1) rows_ = axis;
      });
    }
  }

  // The items are positions of another axis if there are many; otherwise blocks of the lanes or of the rows.
  void choose_tiles(const std::vector<Id>& shared) {
    items_ = at_most(vector_) >= at_most(rows_) ? vector_ : rows_;
    step_ = items_ == vector_ ? tiles_.transpose_columns : tiles_.transpose_block;
    for (const Id axis : shared) {
      if (axis == vector_ || axis == rows_ || at_most(axis) < kManyItems) continue;
      if (step_ != 1 || at_most(axis) > at_most(items_)) items_ = axis;
      step_ = 1;
    }
  }

  // --- Loops

  void set_loops() {
    Node items;
    items.kind = LoopKind::items;
    items.axis = items_;
    items.step = step_;
    items.unroll = at_once_;
    if (rows_ != kNone) {
      items.body = blocks();
    } else {
      items.body = nest(stages_to_run(), step_ == 1 ? std::set<Id>{items_} : std::set<Id>{});
    }
    if (has_long_rows()) {  // for sums
      Node columns;
      columns.axis = vector_;
      columns.step = columns_;
      columns.body = std::move(items.body);
      items.body = {std::move(columns)};
    }
    kernel_.body = {std::move(items)};
    set_storage();
  }

  bool has_long_rows() const {
    return items_ != vector_ && rows_ == kNone && !in_columns_ && contains(shared_axes(), vector_) &&
           at_most(vector_) > columns_ &&
           std::any_of(kernel_.stages.begin(), kernel_.stages.end(),
                       [](const Stage& stage) { return stage.kind == StageKind::reduce; });
  }

  // For a transposition: blocks of rows inside of blocks of lanes, inside of the loops over the other axes.
  std::vector<Node> blocks() const {
    std::set<Id> others;
    for (const Id axis : shared_axes()) {
      if (axis != vector_ && axis != rows_) others.insert(axis);
    }
    std::vector<Node> body = nest(stages_to_run(), others);
    const auto wrap = [&](Id axis, int64_t step) {
      Node loop;
      loop.axis = axis;
      loop.step = step;
      loop.body = std::move(body);
      body = {std::move(loop)};
    };
    if (items_ != rows_) wrap(rows_, tiles_.transpose_block);
    if (items_ != vector_) wrap(vector_, tiles_.transpose_columns);
    for (const Id axis : others) {
      if (axis != items_) wrap(axis, 1);
    }
    return body;
  }

  // Spatial axes come before reduced ones, and the lanes last; before them the rows of a transposition. If the items
  // are columns, everything is inside of the lanes, so that sums of columns stay in registers.
  Id next_axis(Id stage, const std::set<Id>& done) const override {
    const std::vector<Id> axes = left(stage, done);
    if (in_columns_ && contains(axes, vector_)) return vector_;
    Id next = kNone;
    for (const Id axis : axes) {
      if (axis == vector_ || axis == rows_) continue;
      if (is_shared(axis)) return axis;  // the loop around all stages
      if (next == kNone) next = axis;
    }
    if (next != kNone) return next;
    return contains(axes, rows_) ? rows_ : contains(axes, vector_) ? vector_ : axes.front();
  }
  bool is_shared(Id axis) const { return contains(shared_axes(), axis); }

  Node loop_over(Id axis, const std::vector<Id>& stages) const override {
    Node loop;
    loop.axis = axis;
    loop.kind = axis == vector_ ? LoopKind::vector : LoopKind::serial;
    if (loop.kind == LoopKind::vector) loop.unroll = unroll(stages);
    return loop;
  }

  // The number of vectors in a row. If something is added up along the lanes, it depends only on the computation:
  // neither lengths nor tiles may change the order of additions.
  int64_t unroll(const std::vector<Id>& stages) const {
    const bool adds = std::any_of(stages.begin(), stages.end(),
                                  [&](Id stage) { return contains(kernel_.stages[stage].reduce_axes, vector_); });
    if (!adds && tiles_.unroll != 0) return tiles_.unroll;
    int64_t sum = 0;
    for (const Id stage : stages) {
      std::set<Id> seen;
      sum += cost(kernel_.stages[stage].value, &seen);
    }
    if (in_columns_) return std::min(most_vectors_, sum < 16 ? kColumnVectors : sum < 48 ? int64_t{4} : int64_t{2});
    return sum < 16 ? 4 : sum < 48 ? 2 : 1;
  }

  // Uses registers if all readers are in the same loops, rows otherwise.
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

  // Inlines one value in a row that is cheap, or too long for a row. True if it did.
  bool place_values() {
    const Places places(kernel_);
    for (size_t id = 0; id < kernel_.stages.size(); ++id) {
      Stage& stage = kernel_.stages[id];
      if (stage.kind != StageKind::value || stage.storage != Storage::row) continue;
      std::set<Id> seen;
      const int64_t cheap = is_read_along_more(places, static_cast<Id>(id)) ? 1 : tiles_.cheap;
      if (cost(stage.value, &seen) > cheap && row_bytes(places, static_cast<Id>(id)) <= kMostRow) continue;
      stage.storage = Storage::inlined;
      return true;
    }
    return false;
  }

  // True if a stage that reads this one has further axes: recomputing the value there would repeat it for each
  // position.
  bool is_read_along_more(const Places& places, Id id) const {
    const size_t axes = kernel_.stages[id].axes.size();
    for (size_t reader = id + 1; reader < kernel_.stages.size(); ++reader) {
      const Stage& stage = kernel_.stages[reader];
      if (stage.storage == Storage::inlined || !contains(places.reads(static_cast<Id>(reader)), id)) continue;
      if (stage.axes.size() + stage.reduce_axes.size() > axes) return true;
    }
    return false;
  }

  // At most: the product of the extents of the loops that its readers do not share.
  int64_t row_bytes(const Places& places, Id id) const {
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
  int64_t at_once_ = 1;
  int64_t columns_ = kMostColumns;  // columns of a block
  bool in_columns_ = false;
  int64_t most_vectors_ = kColumnVectors;  // vectors of columns
  Id rows_ = kNone;                        // for a transposition: another axis along which memory is contiguous
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

}  // namespace tenon::codegen
