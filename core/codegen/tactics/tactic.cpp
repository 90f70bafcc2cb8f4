#include "core/codegen/tactics/tactic.h"

#include "core/codegen/schedule/schedule.h"

namespace tenon::codegen {
namespace {

// The cost of an op, relative to an addition.
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

bool has_quotient(const symbolic::Arena& arena, SymDim size, uint32_t symbol) {
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

}  // namespace

void Tactic::merge_axes() {
  bool found = true;
  while (found) {
    found = false;
    for (Id outer = 0; outer < kernel_.axes.size() && !found; ++outer) {
      for (Id inner = 0; inner < kernel_.axes.size() && !found; ++inner) found = merges(outer, inner);
    }
  }
}

void Tactic::merge_shared_axes() {
  Id merged = kNone;
  for (const Id axis : shared_axes()) {
    if (axis == vector_) continue;
    merged = merged == kNone ? axis : merge(&kernel_, merged, axis).value();
  }
}

bool Tactic::merges(Id outer, Id inner) {
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

bool Tactic::is_used(Id axis) const {
  return std::any_of(kernel_.stages.begin(), kernel_.stages.end(), [&](const Stage& stage) {
    return contains(stage.axes, axis) || contains(stage.reduce_axes, axis);
  });
}

double Tactic::accesses_at(SymDim index) const {
  const std::set<uint32_t> symbols = symbols_of(kernel_.arena, index);
  double accesses = 1;
  for (Id axis = 0; axis < kernel_.axes.size(); ++axis) {
    if (!symbols.contains(kernel_.at(axis).index())) continue;
    accesses *= static_cast<double>(std::clamp<int64_t>(at_most(axis), 1, kSomeExtent));
  }
  return accesses;
}

double Tactic::bytes_along(Id axis) const {
  double bytes = 0;
  each_access([&](const Stage&, SymDim index, int64_t size) {
    const Stride stride = stride_of(kernel_.arena, index, kernel_.at(axis));
    if (!stride.linear || !stride.step.is_number() || stride.step.number() != 1) return;
    bytes += static_cast<double>(size) * accesses_at(index);
  });
  return bytes;
}

void Tactic::choose_vector() {
  double most = -1;
  for (Id axis = 0; axis < kernel_.axes.size(); ++axis) {
    if (!is_used(axis)) continue;
    const SymDim extent = kernel_.axes[axis].extent;
    const double bytes = extent.is_number() && extent.number() <= 1 ? 0 : bytes_along(axis);
    if (bytes > most) {
      most = bytes;
      vector_ = axis;
    }
  }
}

std::vector<Id> Tactic::shared_axes() const {
  std::vector<Id> shared;
  for (Id axis = 0; axis < kernel_.axes.size(); ++axis) {
    const bool all = std::all_of(kernel_.stages.begin(), kernel_.stages.end(),
                                 [&](const Stage& stage) { return contains(stage.axes, axis); });
    if (all) shared.push_back(axis);
  }
  return shared;
}

std::vector<Id> Tactic::stages_to_run() const {
  std::vector<Id> stages;
  for (size_t id = 0; id < kernel_.stages.size(); ++id) {
    if (kernel_.stages[id].storage != Storage::inlined) stages.push_back(static_cast<Id>(id));
  }
  return stages;
}

bool Tactic::reads_any(const Places& places, Id stage, const std::vector<bool>& others) const {
  const std::vector<Id>& reads = places.reads(stage);
  return std::any_of(reads.begin(), reads.end(), [&](Id read) { return others[read]; });
}

std::vector<Id> Tactic::left(Id stage, const std::set<Id>& done) const {
  std::vector<Id> result;
  for (const Id axis : kernel_.stages[stage].axes) {
    if (!done.contains(axis)) result.push_back(axis);
  }
  for (const Id axis : kernel_.stages[stage].reduce_axes) {
    if (!done.contains(axis)) result.push_back(axis);
  }
  return result;
}

std::vector<Node> Tactic::nest(std::vector<Id> stages, const std::set<Id>& done) const {
  return nest(Places(kernel_), std::move(stages), done);
}

std::vector<Node> Tactic::nest(const Places& places, std::vector<Id> stages, const std::set<Id>& done) const {
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
    const Id axis = next_axis(first, done);
    std::vector<Id> inside, outside;
    std::vector<bool> later(kernel_.stages.size(), false);  // readers of these stages come after the loop
    for (const Id stage : stages) {
      // In this order: most stages of a long kernel read one that comes later, and the rest takes time.
      const bool joins =
          !reads_any(places, stage, later) && contains(left(stage, done), axis) && next_axis(stage, done) == axis;
      (joins ? inside : outside).push_back(stage);
      later[stage] = !joins || contains(kernel_.stages[stage].reduce_axes, axis);
    }
    std::set<Id> inner = done;
    inner.insert(axis);
    Node loop = loop_over(axis, inside);
    loop.body = nest(places, inside, inner);
    nodes.push_back(std::move(loop));
    stages = outside;
  }
  return nodes;
}

bool Tactic::is_near(const Place& place) const {
  bool near = place.level == place.result;
  for (size_t i = place.result; i < place.loops.size(); ++i) {
    near = near && contains(kernel_.stages[place.stage].reduce_axes, place.loops[i]->axis);
  }
  return near;
}

int64_t Tactic::cost(Id expr, std::set<Id>* seen) const {
  if (!seen->insert(expr).second) return 0;
  const Expr& each = kernel_.exprs[expr];
  int64_t sum = weight(each);
  for (size_t i = 0; i < arg_count(each); ++i) sum += cost(each.args[i], seen);
  if (each.kind == ExprKind::stage && kernel_.stages[each.target].storage == Storage::inlined) {
    sum += cost(kernel_.stages[each.target].value, seen);
  }
  return sum;
}

}  // namespace tenon::codegen
