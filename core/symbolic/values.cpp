#include "core/symbolic/values.h"

#include <set>

#include "primitives/infer/axis.h"
#include "primitives/text/format.h"

namespace tenon::symbolic {
namespace {

void collect_symbols(const Arena& arena, SymDim size, std::set<uint32_t>* symbols) {
  if (size.is_number()) return;
  const Node& node = arena.node(size);
  if (node.kind == Kind::symbol) symbols->insert(node.symbol);
  collect_symbols(arena, node.a, symbols);
  collect_symbols(arena, node.b, symbols);
  for (const Term& term : node.terms) {
    for (const Factor& factor : term.monomial) collect_symbols(arena, arena.atom(factor.atom), symbols);
  }
}

}  // namespace

Status Values::bind(uint32_t symbol, int64_t value) {
  const Symbol& declared = arena_.symbols()[symbol];
  if (!declared.range.holds(value) || value % declared.divisor != 0) {
    std::string limits = fmt::format("at least {}", declared.range.lo);
    if (declared.range.hi != SymDim::kMost) limits = fmt::format("from {} to {}", declared.range.lo, declared.range.hi);
    if (declared.divisor != 1) limits += fmt::format(" and a multiple of {}", declared.divisor);
    return Status(Code::invalid_argument,
                  fmt::format("S{} ({}) is {}, but it must be {}.", symbol, declared.source, value, limits));
  }
  values_[arena_.symbol_at(symbol).index()] = Value{value, {}};
  return {};
}

Value Values::value(uint32_t index) {
  if (values_[index]) return *values_[index];
  const Node& node = arena_.node(arena_.atom(index));
  const Value value = node.kind == Kind::symbol ? Value{0, "has no value"}
                                                : value_of(node, [this](uint32_t part) { return this->value(part); });
  if (node.kind != Kind::symbol) values_[index] = value;
  return value;
}

std::string Values::where(SymDim a, SymDim b) const {
  std::set<uint32_t> symbols;
  collect_symbols(arena_, a, &symbols);
  collect_symbols(arena_, b, &symbols);
  std::string text;
  for (const uint32_t symbol : symbols) {
    const auto& value = values_[arena_.symbol_at(symbol).index()];
    text += fmt::format("{}S{} ({}) ", text.empty() ? "" : " and ", symbol, arena_.symbols()[symbol].source);
    text += value ? fmt::format("is {}", value->number) : "has no value";
  }
  return text;
}

Result<int64_t> Values::of(SymDim size) {
  if (size.is_number()) return size.number();
  (void)arena_.node(size);  // checks that it belongs to this arena
  const Value found = value(size.index());
  if (found.failure.empty()) return found.number;
  return Status(Code::invalid_argument,
                fmt::format("The size {} {}, where {}.", arena_.text(size), found.failure, where(size, 0)));
}

Result<Dims> Values::of(std::string_view op, const SymDims& dims) {
  Dims numbers;
  for (const SymDim dim : dims) {
    const Result<int64_t> number = of(dim);
    if (!number.ok()) return Status(Subject{op}, number.status().code(), number.status().message());
    if (number.value() < 0) {
      return Status(Subject{op}, Code::invalid_argument,
                    fmt::format("the size {} is {}, where {}.", arena_.text(dim), number.value(), where(dim, 0)));
    }
    numbers.push_back(number.value());
  }
  return infer::checked(op, numbers);
}

Result<bool> Values::holds(const Condition& condition) {
  TENON_ASSIGN_OR_RETURN(const int64_t a, of(condition.a));
  TENON_ASSIGN_OR_RETURN(const int64_t b, of(condition.b));
  return symbolic::holds(condition.relation, a, b);
}

const Constraint* Values::broken_guard() {
  for (const Constraint& constraint : arena_.constraints()) {
    if (constraint.origin != Origin::guard) continue;
    const Result<bool> answer = holds(constraint.condition);
    if (!answer.ok() || !answer.value()) return &constraint;
  }
  return nullptr;
}

Status Values::check() {
  for (const Constraint& constraint : arena_.constraints()) {
    if (constraint.origin != Origin::check) continue;
    const Condition& condition = constraint.condition;
    const Result<bool> answer = holds(condition);
    if (answer.ok() && answer.value()) continue;
    const std::string op = constraint.context.empty() ? arena_.name() : constraint.context;
    if (!answer.ok()) return Status(Subject{op}, Code::invalid_argument, answer.status().message());
    return Status(Subject{op}, Code::invalid_argument,
                  fmt::format("{} must hold, but {}.", arena_.text(condition), where(condition.a, condition.b)));
  }
  return {};
}

}  // namespace tenon::symbolic
