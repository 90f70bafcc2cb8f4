// Computes the known bounds and divisor of a size from the bounds and divisors of its parts.
#include <numeric>

#include "core/symbolic/arena.h"
#include "core/symbolic/evaluate.h"

namespace tenon::symbolic {
namespace {

// The most functions that are replaced by their bounds when bounding a sum, and the largest sum for which this is
// tried.
constexpr int kMostReplaced = 4;
constexpr size_t kMostCornerTerms = 24;
constexpr uint32_t kMostCornerDegree = 6;

Range product_range(const std::vector<Node>& nodes, const Term& term) {
  Range range = Range::of(term.coefficient);
  for (const Factor& factor : term.monomial) {
    for (uint32_t i = 0; i < factor.power; ++i) range = symbolic::multiply(range, nodes[factor.atom].range);
  }
  return range;
}

int64_t number_divisor(int64_t number) { return number < 0 ? -number : number; }

}  // namespace

int64_t common_multiple(int64_t a, int64_t b) {
  int64_t least = 0;
  const bool fits = !__builtin_mul_overflow(a / std::gcd(a, b), b, &least) && least <= SymDim::kMost;
  return fits ? least : a;
}

Range Arena::range(SymDim size) const { return size.is_number() ? Range::of(size.number()) : node(size).range; }

int64_t Arena::divisor(SymDim size) const {
  return size.is_number() ? number_divisor(size.number()) : node(size).divisor;
}

std::optional<int64_t> Arena::hint(SymDim size) const {
  return size.is_number() ? std::optional(size.number()) : node(size).hint;
}

int64_t Arena::divisor_of(const Term& term) const {
  int64_t product = number_divisor(term.coefficient);
  for (const Factor& factor : term.monomial) {
    for (uint32_t i = 0; i < factor.power; ++i) {
      int64_t more = 0;
      if (__builtin_mul_overflow(product, nodes_[factor.atom].divisor, &more) || more > SymDim::kMost) return product;
      product = more;
    }
  }
  return product;
}

void Arena::analyse(Node* node, const Fact* fact) const {
  const Range a = range(node->a);
  const Range b = range(node->b);
  const int64_t shared = std::gcd(divisor(node->a), divisor(node->b));
  node->divisor = 1;
  switch (node->kind) {
    case Kind::symbol:
      node->range = symbols_[node->symbol].range;
      node->divisor = symbols_[node->symbol].divisor;
      break;
    case Kind::sum:
      node->range = range_of(node->terms);
      node->divisor = 0;
      for (const Term& term : node->terms) node->divisor = std::gcd(node->divisor, divisor_of(term));
      break;
    case Kind::floor_div:
      node->range = symbolic::floor_div(a, b);
      if (node->b.is_number() && node->b.number() > 0 && divisor(node->a) % node->b.number() == 0) {
        node->divisor = std::max<int64_t>(divisor(node->a) / node->b.number(), 1);
      }
      break;
    case Kind::modulo:
      node->range = symbolic::modulo(a, b);
      node->divisor = shared;
      break;
    case Kind::min:
    case Kind::max:
      node->range = node->kind == Kind::min ? symbolic::min(a, b) : symbolic::max(a, b);
      node->divisor = shared;
      break;
    case Kind::broadcast:
      node->range = {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
      node->divisor = shared;
      break;
  }
  node->divisor = std::max<int64_t>(node->divisor, 1);
  if (fact != nullptr) {
    node->range = intersect(node->range, fact->range);
    node->divisor = common_multiple(node->divisor, fact->divisor);
  }
  const auto hint_at = [&](uint32_t index) -> Value {
    const std::optional<int64_t>& hint = nodes_[index].hint;
    return hint ? Value{*hint, {}} : Value{0, "has no hint"};
  };
  if (node->kind == Kind::symbol) {
    node->hint = symbols_[node->symbol].hint;
  } else if (const Value value = value_of(*node, hint_at); value.failure.empty()) {
    node->hint = value.number;
  }
}

// Recomputes the facts of the expressions that contain `changed`, or of all.
void Arena::refresh(std::optional<uint32_t> changed) {
  std::vector<bool> stale(nodes_.size(), !changed);
  if (changed) stale[*changed] = true;
  const auto is_stale = [&](SymDim size) { return !size.is_number() && stale[size.index()]; };
  for (uint32_t index = changed.value_or(0); index < nodes_.size(); ++index) {
    Node& node = nodes_[index];
    bool touched = stale[index] || is_stale(node.a) || is_stale(node.b) || (node.base && stale[*node.base]);
    for (const Term& term : node.terms) {
      for (const Factor& factor : term.monomial) touched = touched || stale[factor.atom];
    }
    if (!touched) continue;
    const Range range = node.range;
    const int64_t divisor = node.divisor;
    const auto fact = facts_.find(index);
    analyse(&node, fact == facts_.end() ? nullptr : &fact->second);
    stale[index] = stale[index] || node.range != range || node.divisor != divisor;
  }
}

// The bounds of the sum's base, moved and scaled, together with its own bounds.
Range Arena::range_of(const Polynomial& sum) const {
  Range range = Range::of(0);
  for (const Term& term : sum) range = symbolic::add(range, product_range(nodes_, term));
  const Polynomial varying = without_constant(sum);
  const bool product = varying.size() == 1 && (varying[0].monomial.size() > 1 || varying[0].monomial[0].power > 1);
  if (varying.size() < 2 && !product) return range;
  const int64_t scale = varying.front().coefficient < 0 ? -content(varying) : content(varying);
  Node base;
  base.kind = Kind::sum;
  base.terms = divided(varying, scale);
  if (const auto found = find(base); found && base.terms != sum) {
    const Range scaled = symbolic::multiply(nodes_[*found].range, Range::of(scale));
    return intersect(range, symbolic::add(scaled, Range::of(constant_of(sum))));
  } else if (found) {
    if (const auto fact = facts_.find(*found); fact != facts_.end()) range = intersect(range, fact->second.range);
  }
  if (const auto lo = lower_bound(sum, 0)) range.lo = std::max(range.lo, *lo);
  const auto negative = polynomials().add({}, sum, -1);
  if (const auto lo = negative ? lower_bound(*negative, 0) : std::nullopt) {
    range.hi = std::min(range.hi, negate(Range::of(*lo)).hi);
  }
  return range;
}

// A bound of a sum from the bounds of the quotients, minima and maxima in it: S0 - S0 // 2 is at least S0 - S0 / 2.
std::optional<int64_t> Arena::lower_bound(const Polynomial& sum, int depth) const {
  std::optional<int64_t> best = lower_corner(sum);
  if (depth == kMostReplaced || sum.size() > kMostCornerTerms) return best;
  const auto better = [&](const Term& term, SymDim with, int64_t scale, int64_t shift) {
    // scale * (sum - term) + coefficient * (with + shift), which is a bound of scale * sum.
    auto others = polynomials().add(sum, {term}, -1);
    if (others) others = polynomials().add({}, *others, scale);
    if (others) others = polynomials().add(*others, terms(with), term.coefficient);
    if (others) others = polynomials().add(*others, constant(shift), term.coefficient);
    const auto bound = others ? lower_bound(*others, depth + 1) : std::nullopt;
    if (bound && (!best || ceil_quotient(*bound, scale) > *best)) best = ceil_quotient(*bound, scale);
  };
  for (const Term& term : sum) {
    if (term.monomial.size() != 1 || term.monomial[0].power != 1) continue;
    const Node& function = nodes_[term.monomial[0].atom];
    const bool positive = term.coefficient > 0;
    if (function.kind == Kind::floor_div && function.b.is_number() && function.b.number() > 0) {
      better(term, function.a, function.b.number(), positive ? 1 - function.b.number() : 0);
    } else if (function.kind == (positive ? Kind::max : Kind::min)) {
      better(term, function.a, 1, 0);
      better(term, function.b, 1, 0);
    } else {
      continue;
    }
    break;  // the recursion handles the next ones
  }
  return best;
}

// The bound of a sum over the box of its atoms' ranges. Each atom is its bound plus a distance of at least 0, so only
// terms with a negative coefficient lower the constant.
std::optional<int64_t> Arena::lower_corner(const Polynomial& sum) const {
  const Polynomials arithmetic = polynomials();
  Polynomial shifted;
  for (const Term& term : sum) {
    if (degree(term.monomial) > kMostCornerDegree) return std::nullopt;
    Polynomial product = constant(term.coefficient);
    for (const Factor& factor : term.monomial) {
      const Range range = nodes_[factor.atom].range;
      const bool from_below = range.lo != Range::kNone;
      if (!from_below && range.hi == Range::kEndless) return std::nullopt;
      Polynomial moved = {{from_below ? 1 : -1, {{factor.atom, 1}}}};
      if (const int64_t start = from_below ? range.lo : range.hi; start != 0) moved.push_back({start, {}});
      for (uint32_t i = 0; i < factor.power; ++i) {
        auto more = arithmetic.multiply(product, moved);
        if (!more) return std::nullopt;
        product = std::move(*more);
      }
    }
    auto more = arithmetic.add(shifted, product, 1);
    if (!more || more->size() > kMostCornerTerms) return std::nullopt;
    shifted = std::move(*more);
  }
  Range bound = Range::of(constant_of(shifted));
  for (const Term& term : without_constant(shifted)) {
    if (term.coefficient > 0) continue;
    Range most = Range::of(term.coefficient);
    for (const Factor& factor : term.monomial) {
      const Range range = nodes_[factor.atom].range;
      const Range distance = range.bounded() ? symbolic::add({0, range.hi}, {-range.lo, -range.lo}) : Range{};
      for (uint32_t i = 0; i < factor.power; ++i) most = symbolic::multiply(most, {0, distance.hi});
    }
    bound = symbolic::add(bound, {most.lo, 0});
  }
  return bound.lo == Range::kNone ? std::nullopt : std::optional(bound.lo);
}

}  // namespace tenon::symbolic
