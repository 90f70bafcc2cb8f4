// Schedules kernels for devices of groups of work-items.
#include <bit>

#include "core/codegen/schedule/schedule.h"
#include "core/codegen/tactics/tactic.h"
#include "core/codegen/tactics/tactics.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

constexpr int64_t kWorkItems = 256;  // work-items of a group that adds up
constexpr int64_t kMostInPack = 8;   // each value takes as many registers

class GroupTactic : public Tactic {
 public:
  GroupTactic(Kernel* kernel, const GroupLimits& limits, const Tiles& tiles)
      : Tactic(kernel), limits_(limits), tiles_(tiles) {}

  Status run() {
    TENON_RETURN_IF_ERROR(verify(kernel_));
    if (limits_.work_items < 1) return {Code::unsupported, "The device has no groups of work-items."};
    merge_axes();
    const symbolic::ArenaScope scope(kernel_.arena);
    choose_vector();
    choose_items();
    choose_pack();
    choose_widths();
    set_loops();
    if (keep_rows()) set_loops();
    while (place_values()) set_loops();
    add_barriers();
    return verify(kernel_);
  }

 private:
  bool is_reduced(Id axis) const {
    return std::any_of(kernel_.stages.begin(), kernel_.stages.end(),
                       [&](const Stage& stage) { return contains(stage.reduce_axes, axis); });
  }

  void choose_items() {
    merge_shared_axes();
    const std::vector<Id> shared = shared_axes();
    for (const Id axis : shared) {
      if (axis != vector_ && (items_ == kNone || at_most(axis) > at_most(items_))) items_ = axis;
    }
    if (items_ == kNone && contains(shared, vector_)) items_ = vector_;
    if (items_ == kNone) items_ = add_unit_axis(&kernel_);
    if (vector_ == kNone) vector_ = items_;
    // If a long axis is contiguous in memory and the other axes are short, the items are columns.
    if (items_ != vector_ && contains(shared, vector_) && at_most(items_) < 16 && at_most(vector_) > kWorkItems) {
      items_ = vector_;
    }
    in_columns_ = !is_reduced(vector_);
  }

  // Limits the work-items along an axis to its steps. More work-items would add nothing and change no sum.
  int64_t width_over(Id axis, int64_t most) const {
    const int64_t step = axis == vector_ ? pack_ : 1;
    const int64_t positions = std::clamp<int64_t>(at_most(axis), 1, most * step);
    return std::min<int64_t>(most,
                             static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(ceil_of(positions, step)))));
  }
  static int64_t ceil_of(int64_t positions, int64_t step) { return (positions + step - 1) / step; }

  void choose_pack() {
    pack_ = pack_along(kernel_, vector_, limits_.vector_bytes);
    const bool whole = kernel_.arena.divisor(kernel_.axes[vector_].extent) % pack_ == 0;
    if (!is_reduced(vector_) && (!whole || longest_other(true) != kNone)) pack_ = 1;
  }

  void choose_widths() {
    const auto most = static_cast<int64_t>(std::bit_floor(limits_.work_items));
    const auto tiled = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(tiles_.work_items)));
    const int64_t work_items = std::min(kWorkItems, most);
    if (items_ == vector_) {
      const Id other = longest_other();
      if (other == kNone) {
        widths_[0] = is_reduced(vector_) ? work_items : std::min(tiled, most);
        step_ = widths_[0] * std::max(tiles_.per_work_item, pack_);
        return;
      }
      const auto columns = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(tiles_.group_columns)));
      widths_[0] = width_over(vector_, std::min(columns, work_items));
      step_ = widths_[0];
      second_ = other;
    } else {
      widths_[0] = width_over(vector_, work_items);
      second_ = items_;
    }
    widths_[1] = width_over(second_, rows_beside(work_items / widths_[0]));
    if (second_ == items_) step_ = widths_[1];
  }

  // The most work-items along dim 1; `most` if they add up together.
  int64_t rows_beside(int64_t most) const {
    if (tiles_.group_rows == 0 || is_reduced(second_)) return most;
    return std::min(most, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(tiles_.group_rows))));
  }

  // The longest axis other than the lanes' axis, preferably a reduced one; kNone if there is none. `of_reduced`:
  // considers reduced axes only.
  Id longest_other(bool of_reduced = false) const {
    Id found = kNone;
    bool found_reduced = false;
    for (Id axis = 0; axis < kernel_.axes.size(); ++axis) {
      if (axis == vector_ || !is_used(axis)) continue;
      const bool reduced = is_reduced(axis);
      if (of_reduced && !reduced) continue;
      const bool longer = found == kNone || at_most(axis) > at_most(found);
      if (found == kNone || (reduced && !found_reduced) || (reduced == found_reduced && longer)) {
        found = axis;
        found_reduced = reduced;
      }
    }
    return found;
  }

  // The order of loops: the items, if a group has several; then columns, if rows are added up; then other axes; then
  // those that work-items take. Spatial axes are outside of reduced ones, so that a sum is one number.
  Id next_axis(Id stage, const std::set<Id>& done) const override {
    const std::vector<Id> axes = left(stage, done);
    if (contains(axes, items_)) return items_;
    if (in_columns_ && contains(axes, vector_)) return vector_;
    const bool spatial = contains(kernel_.stages[stage].axes, axes.front());
    Id found = kNone;
    for (const Id axis : axes) {
      if (contains(kernel_.stages[stage].axes, axis) != spatial) continue;
      if (axis != vector_ && axis != second_) return axis;
      if (found == kNone || axis == second_) found = axis;
    }
    return found;
  }

  Node loop_over(Id axis, const std::vector<Id>&) const override {
    Node loop;
    loop.axis = axis;
    if (axis != vector_ && axis != second_) return loop;
    loop.kind = LoopKind::work_items;
    loop.dim = axis == vector_ ? 0 : 1;
    loop.width = widths_[static_cast<size_t>(loop.dim)];
    return loop;
  }

  void set_loops() {
    Node items;
    items.kind = LoopKind::items;
    items.axis = items_;
    items.step = step_;
    items.body = nest(stages_to_run(), step_ == 1 ? std::set<Id>{items_} : std::set<Id>{});
    if (pack_ > 1 && !each_along_lanes(&items.body, [](Node* loop) { return is_innermost(*loop); })) {
      pack_ = 1;
      choose_widths();
      return set_loops();
    }
    if (pack_ > 1) each_along_lanes(&items.body, [this](Node* loop) { return put_pack(loop), true; });
    kernel_.body = {std::move(items)};
    const Places places(kernel_);
    for (size_t id = 0; id < kernel_.stages.size(); ++id) {
      Stage& stage = kernel_.stages[id];
      if (stage.storage == Storage::inlined) continue;
      const bool near = is_near(*places.of(static_cast<Id>(id)).front());
      stage.storage = near || stage.kind == StageKind::store ? Storage::registers : Storage::shared;
    }
  }

  // True if visit(loop) is true for each work_items loop over the axis of the lanes.
  template <class Visit>
  bool each_along_lanes(std::vector<Node>* nodes, const Visit& visit) const {
    return std::all_of(nodes->begin(), nodes->end(), [&](Node& node) {
      if (node.kind == LoopKind::work_items && node.axis == vector_) return visit(&node);
      return each_along_lanes(&node.body, visit);
    });
  }
  static bool is_innermost(const Node& loop) {
    return std::none_of(loop.body.begin(), loop.body.end(), [](const Node& node) { return node.is_loop(); });
  }
  void put_pack(Node* loop) const {
    Node pack;
    pack.axis = loop->axis;
    pack.body = std::move(loop->body);
    loop->step = pack_;
    loop->body = {std::move(pack)};
  }

  // Makes a value of an input row that several loops read, so that memory is read once. True if there was one.
  bool keep_rows() {
    const Places places(kernel_);
    std::map<Id, std::set<const Node*>> loops;  // by load: the loops that read it
    for (const Id stage : stages_to_run()) {
      const Place& place = *places.of(stage).front();
      std::set<Id> seen;
      each_load(kernel_.stages[stage].value, &seen, [&](const Expr& expr) {
        if (is_row(expr)) loops[first_like(expr)].insert(place.loops.back());
      });
    }
    bool found = false;
    for (const auto& [load, readers] : loops) {
      if (readers.size() < 2) continue;
      keep_row(load);
      found = true;
    }
    return found;
  }
  // True for a load that reads a different element for each position along the lanes and the items.
  bool is_row(const Expr& expr) const {
    if (expr.kind != ExprKind::load || expr.args[0] != kNone || items_ == vector_) return false;
    const std::set<uint32_t> symbols = symbols_of(kernel_.arena, expr.index);
    return symbols.contains(kernel_.at(items_).index()) && symbols.contains(kernel_.at(vector_).index());
  }
  bool is_like(const Expr& a, const Expr& b) const {
    return a.kind == ExprKind::load && a.target == b.target && a.args[0] == b.args[0] && identical(a.index, b.index);
  }
  Id first_like(const Expr& expr) const {
    const auto found =
        std::find_if(kernel_.exprs.begin(), kernel_.exprs.end(), [&](const Expr& each) { return is_like(each, expr); });
    return static_cast<Id>(found - kernel_.exprs.begin());
  }
  // The value becomes the first stage, with a name that nothing else has.
  void keep_row(Id load) {
    const Expr row = kernel_.exprs[load];
    for (Expr& expr : kernel_.exprs) {
      if (expr.kind == ExprKind::stage) ++expr.target;
      if (is_like(expr, row)) expr = Expr{.kind = ExprKind::stage, .dtype = row.dtype, .target = 0};
    }
    for (Id& kept : kept_) ++kept;
    kept_.push_back(0);
    kernel_.exprs.push_back(row);
    Stage stage;
    stage.name = fmt::format("row_of_{}_{}", row.target, kept_.size());
    stage.dtype = row.dtype;
    const std::set<uint32_t> symbols = symbols_of(kernel_.arena, row.index);
    for (Id axis = 0; axis < kernel_.axes.size(); ++axis) {
      if (symbols.contains(kernel_.at(axis).index())) stage.axes.push_back(axis);
    }
    stage.value = static_cast<Id>(kernel_.exprs.size() - 1);
    kernel_.stages.insert(kernel_.stages.begin(), std::move(stage));
  }

  // True if the expression reads a kept row. If each reader computed it again, the memory would be read as often.
  bool reads_row(Id expr) const {
    bool found = false;
    std::set<Id> seen;
    each_load(expr, &seen, [&](const Expr& load) { found = found || is_row(load); });
    return found;
  }

  // Inlines one shared value that is cheap, or that does not fit into the shared memory with the reductions; rows of
  // inputs are inlined last. True if it did.
  bool place_values() {
    std::vector<Id> order = stages_to_run();
    const auto rank = [&](Id id) {
      return kernel_.stages[id].kind == StageKind::reduce ? 0 : contains(kept_, id) ? 2 : 1;
    };
    std::stable_sort(order.begin(), order.end(), [&](Id a, Id b) { return rank(a) < rank(b); });
    int64_t bytes = 0;
    for (const Id id : order) {
      Stage& stage = kernel_.stages[id];
      if (stage.storage != Storage::shared) continue;
      std::set<Id> seen;
      const bool cheap = stage.kind == StageKind::value && !contains(kept_, id) && !reads_row(stage.value) &&
                         cost(stage.value, &seen) <= tiles_.cheap;
      const int64_t more = shared_bytes(stage);
      if (!cheap && bytes + more <= limits_.shared_bytes) {
        bytes += more;
        continue;
      }
      if (stage.kind != StageKind::value) {
        throw Error(
            Code::unsupported,
            fmt::format("Stage {} needs {} bytes of shared memory in addition to {}; a group of the device has {}.",
                        stage.name, more, bytes, limits_.shared_bytes));
      }
      stage.storage = Storage::inlined;
      return true;
    }
    return false;
  }

  int64_t shared_bytes(const Stage& stage) const {
    int64_t bytes = dtype_size(stage.dtype) == 8 ? 8 : 4;
    for (const Id axis : stage.axes) {
      const int64_t positions = axis == items_ ? step_ : at_most(axis);
      if (positions > limits_.shared_bytes || __builtin_mul_overflow(bytes, std::max<int64_t>(positions, 1), &bytes)) {
        return limits_.shared_bytes + 1;
      }
    }
    return bytes;
  }

  void add_barriers() {
    while (add_barrier()) {
    }
  }
  // Adds a barrier before the first loop that reads data that other work-items wrote since the last barrier. True if
  // there was one.
  bool add_barrier() {
    const Places places(kernel_);
    for (const Id reader : stages_to_run()) {
      const Place& place = *places.of(reader).front();
      for (const Id source : places.reads(reader)) {
        if (kernel_.stages[source].storage != Storage::shared) continue;
        const Place& written = *places.of(source).front();
        if (same_work_items(written, place)) continue;
        size_t shared = 0;
        while (shared < std::min(written.loops.size(), place.loops.size()) &&
               written.loops[shared] == place.loops[shared]) {
          ++shared;
        }
        if (put_barrier(&kernel_.body, written, place, shared)) return true;
      }
    }
    return false;
  }
  bool same_work_items(const Place& written, const Place& place) const {
    const std::array<Dealt, 2> writers = dealt(written.loops, written.result);
    const std::array<Dealt, 2> readers = dealt(place.loops, place.loops.size());
    for (size_t dim = 0; dim < 2; ++dim) {
      if (widths_[dim] > 1 && (writers[dim].first == kNone || writers[dim] != readers[dim])) return false;
    }
    return true;
  }
  // The axes and steps of the work_items loops, by dim.
  using Dealt = std::pair<Id, int64_t>;
  static std::array<Dealt, 2> dealt(const std::vector<const Node*>& loops, size_t count) {
    std::array<Dealt, 2> found{Dealt{kNone, 1}, Dealt{kNone, 1}};
    for (size_t i = 0; i < count; ++i) {
      if (loops[i]->kind != LoopKind::work_items) continue;
      found[static_cast<size_t>(loops[i]->dim)] = {loops[i]->axis, loops[i]->step};
    }
    return found;
  }
  static bool put_barrier(std::vector<Node>* nodes, const Place& written, const Place& place, size_t shared) {
    for (size_t depth = 0; depth < shared; ++depth) {
      const auto loop =
          std::find_if(nodes->begin(), nodes->end(), [&](const Node& node) { return &node == place.loops[depth]; });
      nodes = &loop->body;
    }
    const auto holds = [&](const Node& node, const Place& each) {
      return shared < each.loops.size() ? &node == each.loops[shared] : !node.is_barrier && node.stage == each.stage;
    };
    bool between = false;
    for (size_t i = 0; i < nodes->size(); ++i) {
      const Node& node = (*nodes)[i];
      if (between && node.is_barrier) return false;
      if (holds(node, written)) between = true;
      if (!holds(node, place)) continue;
      Node barrier;
      barrier.is_barrier = true;
      nodes->insert(nodes->begin() + static_cast<ptrdiff_t>(i), std::move(barrier));
      return true;
    }
    return false;
  }

  GroupLimits limits_;
  const Tiles tiles_;
  Id items_ = kNone;
  Id second_ = kNone;  // axis along dim 1
  bool in_columns_ = false;
  std::vector<Id> kept_;  // values that hold rows of inputs
  int64_t pack_ = 1;      // adjacent positions that a work-item takes
  int64_t step_ = 1;
  std::array<int64_t, 2> widths_{1, 1};
};

}  // namespace

int64_t pack_along(const Kernel& kernel, Id axis, int64_t vector_bytes) {
  Kernel copy = kernel;  // a copy, because strides are added to its arena
  const symbolic::ArenaScope scope(copy.arena);
  int64_t largest = 0;
  const auto see = [&](SymDim index, DType dtype) {
    const Stride stride = stride_of(copy.arena, index, copy.at(axis));
    if (stride.linear && identical(stride.step, 1)) largest = std::max(largest, dtype_size(dtype));
  };
  for (const Expr& expr : kernel.exprs) {
    if (expr.kind == ExprKind::load) see(expr.index, kernel.buffers[expr.target].dtype);
  }
  for (const Stage& stage : kernel.stages) {
    if (stage.kind == StageKind::store) see(stage.index, stage.dtype);
  }
  if (largest == 0 || vector_bytes < 2 * largest) return 1;
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(vector_bytes / largest, kMostInPack))));
}

Status schedule_for_groups(Kernel* kernel, const GroupLimits& limits, const Tiles& tiles) {
  if (kernel->scheduled()) {
    return {Code::invalid_argument, fmt::format("Kernel {} has loops already.", kernel->name)};
  }
  Kernel copy = *kernel;
  try {
    TENON_RETURN_IF_ERROR(GroupTactic(&copy, limits, tiles).run());
  } catch (const Error& error) {
    return error.status();
  }
  *kernel = std::move(copy);
  return {};
}

}  // namespace tenon::codegen
