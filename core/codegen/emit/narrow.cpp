#include "core/codegen/emit/narrow.h"

#include <algorithm>

#include "primitives/status/error.h"

namespace tenon::codegen {
namespace {

using symbolic::Kind;

// Bounds of the magnitudes of sizes, as sizes over parameters alone.
class Bounds {
 public:
  explicit Bounds(Kernel* kernel) : kernel_(*kernel), arena_(kernel->arena) {}

  // Returns false if `size` or a part of it has no bound.
  bool add(SymDim size) {
    const std::optional<SymDim> bound = of(size);
    return bound && note(*bound);
  }

  std::vector<Condition> conditions() {
    std::vector<Condition> made;
    for (const SymDim bound : bounds_) {
      const auto covers = [&](SymDim other) {
        return !identical(other, bound) && arena_.known(bound <= other) == true;
      };
      if (std::none_of(bounds_.begin(), bounds_.end(), covers)) made.push_back(bound <= SymDim(kMostNarrow));
    }
    return made;
  }

 private:
  // Returns false if the bound is always too large.
  bool note(SymDim bound) {
    const symbolic::Range range = arena_.range(bound);
    if (range.lo > kMostNarrow) return false;
    const bool known = std::any_of(bounds_.begin(), bounds_.end(), [&](SymDim one) { return identical(one, bound); });
    if (range.hi > kMostNarrow && !known) bounds_.push_back(bound);
    return true;
  }

  std::optional<SymDim> of(SymDim size) {
    if (size.is_number()) return SymDim(std::abs(size.number()));
    const symbolic::Node node = arena_.node(size);  // a copy, because the arena may grow
    switch (node.kind) {
      case Kind::symbol: return of_symbol(size);
      case Kind::sum: return of_sum(node.terms);
      case Kind::floor_div:
      case Kind::modulo: return of_quotient(node);
      case Kind::min:
      case Kind::max:
      case Kind::broadcast: break;
    }
    const std::optional<SymDim> a = part(node.a), b = part(node.b);
    if (!a || !b) return std::nullopt;
    return max_size(*a, *b);
  }

  // A position on an axis is less than the extent, if the symbol is an axis.
  std::optional<SymDim> of_symbol(SymDim symbol) {
    for (const Axis& axis : kernel_.axes) {
      if (!identical(axis.symbol, symbol)) continue;
      if (axis.extent.is_number()) return SymDim(std::max<int64_t>(axis.extent.number() - 1, 0));
      const std::optional<SymDim> extent = of(axis.extent);
      if (!extent) return std::nullopt;
      return max_size(*extent - 1, 0);
    }
    if (arena_.range(symbol).lo < 0) return std::nullopt;
    return symbol;
  }

  // The sum of the terms' magnitudes bounds every partial sum.
  std::optional<SymDim> of_sum(const symbolic::Polynomial& terms) {
    SymDim sum = 0;
    for (const symbolic::Term& term : terms) {
      SymDim product = std::abs(term.coefficient);
      for (const symbolic::Factor& factor : term.monomial) {
        const std::optional<SymDim> one = part(arena_.atom(factor.atom));
        if (!one) return std::nullopt;
        for (uint32_t i = 0; i < factor.power; ++i) product *= *one;
      }
      sum += product;
    }
    return sum;
  }

  std::optional<SymDim> of_quotient(const symbolic::Node& node) {
    if (arena_.range(node.b).lo < 1) return std::nullopt;
    const std::optional<SymDim> a = part(node.a), b = part(node.b);
    if (!a || !b) return std::nullopt;
    return node.kind == Kind::modulo ? *b : *a;
  }

  // The bound of an intermediate result.
  std::optional<SymDim> part(SymDim size) {
    std::optional<SymDim> bound = of(size);
    if (bound && !note(*bound)) return std::nullopt;
    return bound;
  }

  Kernel& kernel_;
  symbolic::Arena& arena_;
  std::vector<SymDim> bounds_;  // bounds that may be too large
};

}  // namespace

std::optional<std::vector<Condition>> narrow_conditions(Kernel* kernel) {
  const symbolic::ArenaScope scope(kernel->arena);
  try {
    Bounds bounds(kernel);
    bool all = true;
    for (const Parameter& parameter : kernel->parameters) all = all && bounds.add(parameter.symbol);
    for (const Axis& axis : kernel->axes) all = all && bounds.add(axis.extent);
    for (const Expr& expr : kernel->exprs) {
      if (expr.kind == ExprKind::load || expr.kind == ExprKind::index) all = all && bounds.add(expr.index);
    }
    for (const Stage& stage : kernel->stages) {
      SymDim count = 1;
      for (const Id axis : stage.reduce_axes) count *= kernel->axes[axis].extent;
      all = all && bounds.add(count) && (stage.kind != StageKind::store || bounds.add(stage.index));
    }
    if (!all) return std::nullopt;
    return bounds.conditions();
  } catch (const Error&) {  // a size beyond the arena's numbers, or an expression that is too large
    return std::nullopt;
  }
}

}  // namespace tenon::codegen
