#include <algorithm>
#include <optional>

#include "core/compiler/loop/places.h"
#include "core/compiler/schedule/schedule.h"
#include "core/compiler/tactics/tactics.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kFlatBlock = 4096;   // positions of a flat loop: 32 KiB of f32 in and out
constexpr int64_t kColumnBlock = 128;  // columns at once: 8 lines of f32 of each row, and as many sums in registers
constexpr int64_t kColumnVectors = 8;
constexpr int64_t kManyColumns = 1024;
constexpr int64_t kTransposeBlock = 16;  // rows at once, where memory is contiguous along them: a line of the cache
constexpr int64_t kMostRow = int64_t{128} << 10;  // bytes of a row in local memory: half of a small L2

bool contains(const std::vector<Id>& list, Id id) { return std::find(list.begin(), list.end(), id) != list.end(); }

// How many times as much as an addition an op costs.
int64_t weight(const Expr& expr) {
  if (expr.kind == ExprKind::load) return 1;
  if (expr.kind != ExprKind::unary && expr.kind != ExprKind::binary && expr.kind != ExprKind::ternary) return 0;
  for (const std::string_view cheap :
       {"add",     "sub",         "mul",        "neg",        "abs",         "square",     "relu",
        "maximum", "minimum",     "where",      "eq",         "ne",          "lt",         "le",
        "gt",      "ge",          "clamp",      "fma",        "logical_and", "logical_or", "logical_not",
        "sign",    "bitwise_and", "bitwise_or", "bitwise_xor"}) {
    if (op_name(expr) == cheap) return 1;
  }
  return op_name(expr) == "div" || op_name(expr) == "sqrt" || op_name(expr) == "rsqrt" ? 4 : 16;
}

class Tactic {
 public:
  explicit Tactic(Kernel* kernel) : kernel_(*kernel) {}

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
  // All indices, with the stage that has them and how many bytes an element has. Stores count twice: where memory is
  // contiguous for either, stores are.
  template <class Visit>
  void each_access(const Visit& visit) const {
    for (const Stage& stage : kernel_.stages) {
      std::set<Id> seen;
      each_load(stage.value, &seen,
                [&](const Expr& expr) { visit(stage, expr.index, dtype_size(kernel_.buffers[expr.target].dtype)); });
      if (stage.kind == StageKind::store) visit(stage, stage.index, 2 * dtype_size(stage.dtype));
    }
  }
  template <class Visit>
  void each_load(Id id, std::set<Id>* seen, const Visit& visit) const {
    if (!seen->insert(id).second) return;
    const Expr& expr = kernel_.exprs[id];
    for (size_t i = 0; i < arg_count(expr); ++i) each_load(expr.args[i], seen, visit);
    if (expr.kind == ExprKind::load) visit(expr);
  }

  // --- Axes

  static bool has_quotient(const symbolic::Arena& arena, SymDim size, uint32_t symbol) {
    if (size.is_number()) return false;
    const symbolic::Node& node = arena.node(size);
    if (node.kind == symbolic::Kind::symbol) return false;
    if (node.kind != symbolic::Kind::sum) return symbols_of(arena, size).contains(symbol);
    for (const symbolic::Term& term : node.terms) {
      for (const symbolic::Factor& factor : term.monomial) {
        if (has_quotient(arena, arena.atom(factor.atom), symbol)) return true;
      }
    }
    return false;
  }

  // Merges axes while one is found whose indices all collapse.
  void merge_axes() {
    bool found = true;
    while (found) {
      found = false;
      for (Id outer = 0; outer < kernel_.axes.size() && !found; ++outer) {
        for (Id inner = 0; inner < kernel_.axes.size() && !found; ++inner) found = merges(outer, inner);
      }
    }
  }
  bool merges(Id outer, Id inner) {
    if (outer == inner || !is_used(outer) || !is_used(inner)) return false;
    Kernel copy = kernel_;
    const Result<Id> merged = merge(&copy, outer, inner);
    if (!merged.ok()) return false;
    const uint32_t symbol = copy.at(merged.value()).index();
    for (const Expr& expr : copy.exprs) {
      if (has_quotient(copy.arena, expr.index, symbol)) return false;
    }
    for (const Stage& stage : copy.stages) {
      if (has_quotient(copy.arena, stage.index, symbol)) return false;
    }
    kernel_ = std::move(copy);
    return true;
  }
  bool is_used(Id axis) const {
    return std::any_of(kernel_.stages.begin(), kernel_.stages.end(), [&](const Stage& stage) {
      return contains(stage.axes, axis) || contains(stage.reduce_axes, axis);
    });
  }

  int64_t bytes_along(Id axis) const {
    int64_t bytes = 0;
    each_access([&](const Stage&, SymDim index, int64_t size) {
      const Stride stride = stride_of(kernel_.arena, index, kernel_.at(axis));
      if (stride.linear && stride.step.is_number() && stride.step.number() == 1) bytes += size;
    });
    return bytes;
  }

  void choose_vector() {
    int64_t most = -1;
    for (Id axis = 0; axis < kernel_.axes.size(); ++axis) {
      if (!is_used(axis)) continue;
      const SymDim extent = kernel_.axes[axis].extent;
      const int64_t bytes = extent.is_number() && extent.number() <= 1 ? 0 : bytes_along(axis);
      if (bytes > most) {
        most = bytes;
        vector_ = axis;
      }
    }
  }

  // The greatest number that is known to be no more than the extent.
  int64_t at_most(Id axis) const { return kernel_.arena.range(kernel_.axes[axis].extent).hi; }

  void choose_items() {
    std::vector<Id> shared;
    for (Id axis = 0; axis < kernel_.axes.size(); ++axis) {
      if (is_shared(axis)) shared.push_back(axis);
    }
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
      step_ = in_columns_ ? kColumnBlock : kFlatBlock;
    } else if (is_transposed()) {
      step_ = kTransposeBlock;
    } else {  // where no reduction is along the lanes, everything is inside of them, and no row is needed
      in_columns_ = contains(shared, vector_) && any(reduces);
    }
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
    std::vector<Id> stages;
    for (size_t id = 0; id < kernel_.stages.size(); ++id) {
      if (kernel_.stages[id].storage != Storage::inlined) stages.push_back(static_cast<Id>(id));
    }
    Node items;
    items.kind = LoopKind::items;
    items.axis = items_;
    items.step = step_;
    items.body = nest(stages, step_ == 1 ? std::set<Id>{items_} : std::set<Id>{});
    kernel_.body = {std::move(items)};
    set_storage();
  }

  // Whether `stage` reads one of `others`, through inlined ones too.
  bool reads_any(Id stage, const std::vector<Id>& others) const {
    const Places places(kernel_);
    for (const Id read : places.reads(stage)) {
      if (contains(others, read)) return true;
    }
    return false;
  }

  std::vector<Id> left(Id stage, const std::set<Id>& done) const {
    std::vector<Id> result;
    for (const Id axis : kernel_.stages[stage].axes) {
      if (!done.contains(axis)) result.push_back(axis);
    }
    for (const Id axis : kernel_.stages[stage].reduce_axes) {
      if (!done.contains(axis)) result.push_back(axis);
    }
    return result;
  }
  // Spatial axes before reduced ones, and the lanes last. A transposition has its rows inside of the lanes; where the
  // items are columns, everything is, so that sums of columns stay in registers.
  Id next_axis(Id stage, const std::set<Id>& done) const {
    const std::vector<Id> axes = left(stage, done);
    if (in_columns_ && contains(axes, vector_)) return vector_;
    const bool rows_last = step_ == kTransposeBlock && items_ != vector_;
    Id next = kNone;
    for (const Id axis : axes) {
      if (axis == vector_ || (rows_last && axis == items_)) continue;
      if (is_shared(axis)) return axis;  // the loop of all stages
      if (next == kNone) next = axis;
    }
    return next != kNone ? next : contains(axes, vector_) ? vector_ : axes.front();
  }
  bool is_shared(Id axis) const {
    return std::all_of(kernel_.stages.begin(), kernel_.stages.end(),
                       [&](const Stage& stage) { return contains(stage.axes, axis); });
  }

  std::vector<Node> nest(std::vector<Id> stages, const std::set<Id>& done) const {
    std::vector<Node> nodes;
    while (!stages.empty()) {
      const Id first = stages.front();
      if (left(first, done).empty()) {
        Node step;
        step.stage = first;
        nodes.push_back(std::move(step));
        stages.erase(stages.begin());
        continue;
      }
      Node loop;
      loop.axis = next_axis(first, done);
      std::vector<Id> inside, waiting, outside;
      for (const Id stage : stages) {
        const std::vector<Id> axes = left(stage, done);
        const bool joins = contains(axes, loop.axis) && next_axis(stage, done) == loop.axis &&
                           !reads_any(stage, waiting) && !reads_any(stage, outside);
        (joins ? inside : outside).push_back(stage);
        // What reads a sum, or what waits for one, comes after the loop.
        if (joins && contains(kernel_.stages[stage].reduce_axes, loop.axis)) waiting.push_back(stage);
      }
      std::set<Id> inner = done;
      inner.insert(loop.axis);
      loop.kind = loop.axis == vector_ ? LoopKind::vector : LoopKind::serial;
      if (loop.kind == LoopKind::vector) loop.unroll = unroll(inside);
      loop.body = nest(inside, inner);
      nodes.push_back(std::move(loop));
      stages = outside;
    }
    return nodes;
  }

  int64_t cost(Id expr, std::set<Id>* seen) const {
    if (!seen->insert(expr).second) return 0;
    const Expr& each = kernel_.exprs[expr];
    int64_t sum = weight(each);
    for (size_t i = 0; i < arg_count(each); ++i) sum += cost(each.args[i], seen);
    if (each.kind == ExprKind::stage && kernel_.stages[each.target].storage == Storage::inlined) {
      sum += cost(kernel_.stages[each.target].value, seen);
    }
    return sum;
  }
  // By what is computed alone: how long an axis is, and what is known of that, changes no order of additions.
  int64_t unroll(const std::vector<Id>& stages) const {
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
      bool near = true;
      for (size_t i = place.result; i < place.loops.size(); ++i) {
        near = near && contains(stage.reduce_axes, place.loops[i]->axis);
      }
      near = near && place.level == place.result;
      stage.storage = near || stage.kind == StageKind::store ? Storage::registers : Storage::row;
    }
  }

  // Inlines a value in a row that is cheap, or too long for a row. Whether it did.
  bool place_values() {
    for (size_t id = 0; id < kernel_.stages.size(); ++id) {
      Stage& stage = kernel_.stages[id];
      if (stage.kind != StageKind::value || stage.storage != Storage::row) continue;
      std::set<Id> seen;
      if (cost(stage.value, &seen) > 6 && row_bytes(static_cast<Id>(id)) <= kMostRow) continue;
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

  Kernel& kernel_;
  Id vector_ = kNone;
  Id items_ = kNone;
  int64_t step_ = 1;
  bool in_columns_ = false;
};

}  // namespace

Status schedule_for_cpu(Kernel* kernel) {
  if (kernel->scheduled()) {
    return {Code::invalid_argument, fmt::format("Kernel {} has loops already.", kernel->name)};
  }
  Kernel copy = *kernel;
  try {
    TENON_RETURN_IF_ERROR(Tactic(&copy).run());
  } catch (const Error& error) {
    return error.status();
  }
  *kernel = std::move(copy);
  return {};
}

}  // namespace tenon::compiler
