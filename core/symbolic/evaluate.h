// The value of one expression, given the values of its operands. Internal to core/symbolic and core/codegen.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "core/symbolic/arena.h"

namespace tenon::symbolic {

// A value, or the reason why there is none.
struct Value {
  int64_t number = 0;
  std::string_view failure;  // "is more than int64 can hold"; empty: there is a value
};

namespace detail {

using Wide = __int128;

inline Value narrow(Wide number) {
  if (number < std::numeric_limits<int64_t>::min() || number > std::numeric_limits<int64_t>::max()) {
    return {0, "is more than int64 can hold"};
  }
  return {static_cast<int64_t>(number), {}};
}

inline Value function_value(Kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case Kind::floor_div:
    case Kind::modulo: {
      if (b == 0) return {0, "divides by 0"};
      Wide quotient = Wide{a} / b;
      if (Wide{a} % b != 0 && (a < 0) != (b < 0)) --quotient;
      return narrow(kind == Kind::floor_div ? quotient : Wide{a} - quotient * b);
    }
    case Kind::min: return {a < b ? a : b, {}};
    case Kind::max: return {a < b ? b : a, {}};
    default: break;
  }
  if (a != b && a != 1 && b != 1) return {0, "does not broadcast"};
  return {a == 1 ? b : a, {}};
}

// Sums of products; each intermediate product and sum must fit into 127 bits.
template <class Lookup>
Value sum_value(const Polynomial& terms, const Lookup& lookup) {
  Wide sum = 0;
  for (const Term& term : terms) {
    Wide product = term.coefficient;
    for (const Factor& factor : term.monomial) {
      const Value value = lookup(factor.atom);
      if (!value.failure.empty()) return value;
      for (uint32_t i = 0; i < factor.power; ++i) {
        if (__builtin_mul_overflow(product, Wide{value.number}, &product)) return {0, "is more than int64 can hold"};
      }
    }
    if (__builtin_add_overflow(sum, product, &sum)) return {0, "is more than int64 can hold"};
  }
  return narrow(sum);
}

}  // namespace detail

// The value of `node`, which is not a symbol. `lookup(index)` returns the Value of an expression.
template <class Lookup>
Value value_of(const Node& node, const Lookup& lookup) {
  if (node.kind == Kind::sum) return detail::sum_value(node.terms, lookup);
  const Value a = node.a.is_number() ? Value{node.a.number(), {}} : lookup(node.a.index());
  if (!a.failure.empty()) return a;
  const Value b = node.b.is_number() ? Value{node.b.number(), {}} : lookup(node.b.index());
  if (!b.failure.empty()) return b;
  return detail::function_value(node.kind, a.number, b.number);
}

// True if `a` and `b` have this relation.
inline bool holds(Relation relation, int64_t a, int64_t b) {
  switch (relation) {
    case Relation::eq: return a == b;
    case Relation::ne: return a != b;
    case Relation::lt: return a < b;
    case Relation::le: return a <= b;
    case Relation::broadcastable: break;
  }
  return a == b || a == 1 || b == 1;
}

}  // namespace tenon::symbolic
