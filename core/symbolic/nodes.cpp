// The expressions of an Arena: each is stored once, in normal form.
#include <atomic>

#include "core/symbolic/arena.h"
#include "core/symbolic/evaluate.h"
#include "primitives/text/format.h"

namespace tenon::symbolic {
namespace {

// A walk through an expression visits each node as often as it occurs in the text, so the text has a limit.
constexpr uint32_t kMostWeight = 4096;

uint32_t next_serial() {
  static std::atomic<uint32_t> count{0};
  return ++count & 0x7fffffff;
}

uint64_t mix(uint64_t hash, uint64_t word) {
  hash ^= word + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccd;
}

uint64_t hash_of(const Node& node) {
  uint64_t hash = mix(static_cast<uint64_t>(node.kind), node.symbol);
  hash = mix(mix(hash, node.a.word()), node.b.word());
  for (const Term& term : node.terms) {
    hash = mix(hash, static_cast<uint64_t>(term.coefficient));
    for (const Factor& factor : term.monomial) hash = mix(hash, uint64_t{factor.atom} << 32 | factor.power);
  }
  return hash;
}

bool same(const Node& a, const Node& b) {
  return a.kind == b.kind && a.symbol == b.symbol && identical(a.a, b.a) && identical(a.b, b.b) && a.terms == b.terms;
}

int sign(bool less, bool greater) { return less ? -1 : greater ? 1 : 0; }

}  // namespace

Arena::Arena(std::string name) : name_(std::move(name)), serial_(next_serial()) {}

Arena::Arena(const Arena& other)
    : name_(other.name_),
      serial_(other.serial_),
      context_(other.context_),
      nodes_(other.nodes_),
      index_(other.index_),
      symbols_(other.symbols_),
      symbol_nodes_(other.symbol_nodes_),
      facts_(other.facts_),
      replacements_(other.replacements_),
      resolved_(other.resolved_),
      constraints_(other.constraints_),
      noted_(other.noted_) {}

const Node& Arena::node(SymDim size) const {
  if (size.serial() == serial_ && size.index() < nodes_.size()) return nodes_[size.index()];
  throw Error(Code::invalid_argument,
              fmt::format("Expression {} of arena {} cannot be used under {} (arena {}), which has {} expressions.",
                          size.index(), size.serial(), name_, serial_, nodes_.size()));
}

std::optional<uint32_t> Arena::find(const Node& node) const {
  const auto [first, last] = index_.equal_range(hash_of(node));
  for (auto it = first; it != last; ++it) {
    if (same(nodes_[it->second], node)) return it->second;
  }
  return std::nullopt;
}

uint32_t Arena::weight_of(const Node& node) const {
  uint32_t weight = 1;
  for (const SymDim part : {node.a, node.b}) weight += part.is_number() ? 0 : nodes_[part.index()].weight;
  for (const Term& term : node.terms) {
    for (const Factor& factor : term.monomial) weight += nodes_[factor.atom].weight;
  }
  return weight;
}

SymDim Arena::intern(Node node) {
  if (const auto found = find(node)) return atom(*found);
  if (frozen_) {
    throw Error(Code::internal, fmt::format("{} is frozen, so it makes no new expression. Make it in a copy.", name_));
  }
  node.weight = weight_of(node);
  if (node.weight > kMostWeight) {
    throw Error(Subject{name_}, Code::unsupported,
                fmt::format("a size is too large an expression: written out it has {} parts, more "
                            "than {}.",
                            node.weight, kMostWeight));
  }
  analyse(&node, nullptr);
  const auto index = static_cast<uint32_t>(nodes_.size());
  index_.emplace(hash_of(node), index);
  nodes_.push_back(std::move(node));
  return atom(index);
}

SymDim Arena::symbol(Symbol declared) {
  const auto number = static_cast<uint32_t>(symbols_.size());
  if (declared.hint && (!declared.range.holds(*declared.hint) || *declared.hint % declared.divisor != 0)) {
    throw Error(
        Code::invalid_argument,
        fmt::format("S{} ({}) has the hint {}, which its declaration excludes: it is from {} to {} and a "
                    "multiple of {}.",
                    number, declared.source, *declared.hint, declared.range.lo, declared.range.hi, declared.divisor));
  }
  Node node;
  node.kind = Kind::symbol;
  node.symbol = number;
  symbols_.push_back(std::move(declared));
  const SymDim size = intern(std::move(node));
  symbol_nodes_.push_back(size.index());
  return size;
}

SymDim Arena::input_size(std::string source, int64_t hint) {
  const SymDim size = symbol({.source = std::move(source), .hint = hint});
  if (hint > 1) {
    (void)decide(SymDim(1) < size);
  } else {
    (void)decide(size == hint);
  }
  return resolve(size);
}

Polynomials Arena::polynomials() const {
  return Polynomials([this](uint32_t a, uint32_t b) { return order(a, b); });
}

// Orders by structure and not by age, so that equal sizes print alike in any arena with the same symbols.
int Arena::order(uint32_t a, uint32_t b) const {
  if (a == b) return 0;
  const Node& x = nodes_[a];
  const Node& y = nodes_[b];
  if (x.kind != y.kind) return x.kind < y.kind ? -1 : 1;
  if (x.kind == Kind::symbol) return sign(x.symbol<y.symbol, x.symbol> y.symbol);
  if (x.kind != Kind::sum) {
    const int first = order(x.a, y.a);
    return first != 0 ? first : order(x.b, y.b);
  }
  for (size_t i = 0; i < x.terms.size() && i < y.terms.size(); ++i) {
    const Term& s = x.terms[i];
    const Term& t = y.terms[i];
    for (size_t j = 0; j < s.monomial.size() && j < t.monomial.size(); ++j) {
      if (const int atoms = order(s.monomial[j].atom, t.monomial[j].atom); atoms != 0) return atoms;
      if (s.monomial[j].power != t.monomial[j].power) return s.monomial[j].power > t.monomial[j].power ? -1 : 1;
    }
    if (s.monomial.size() != t.monomial.size()) return s.monomial.size() > t.monomial.size() ? -1 : 1;
    if (s.coefficient != t.coefficient) return s.coefficient < t.coefficient ? -1 : 1;
  }
  return sign(x.terms.size() < y.terms.size(), x.terms.size() > y.terms.size());
}

int Arena::order(SymDim a, SymDim b) const {
  if (a.is_number() && b.is_number()) return sign(a.number() < b.number(), a.number() > b.number());
  if (a.is_number() != b.is_number()) return b.is_number() ? -1 : 1;
  return order(a.index(), b.index());
}

Polynomial Arena::terms(SymDim size) const {
  if (size.is_number()) return constant(size.number());
  const Node& found = node(size);
  return found.kind == Kind::sum ? found.terms : Polynomial{{1, {{size.index(), 1}}}};
}

SymDim Arena::make(Polynomial terms) {
  terms = without_whole_quotients(std::move(terms));
  if (terms.empty()) return 0;
  const Term& first = terms.front();
  if (terms.size() == 1) {
    if (first.monomial.empty()) return first.coefficient;
    if (first.coefficient == 1 && first.monomial.size() == 1 && first.monomial[0].power == 1) {
      return atom(first.monomial[0].atom);
    }
  }
  Node node;
  node.kind = Kind::sum;
  const Polynomial varying = without_constant(terms);
  const int64_t common = varying.front().coefficient < 0 ? -content(varying) : content(varying);
  if (common != 1 || varying.size() != terms.size()) node.base = make(divided(varying, common)).index();
  node.terms = std::move(terms);
  return intern(std::move(node));
}

SymDim Arena::make_function(Kind kind, SymDim a, SymDim b) {
  Node node;
  node.kind = kind;
  node.a = a;
  node.b = b;
  const SymDim size = intern(std::move(node));
  const auto replaced = replacements_.find(size.index());
  return replaced == replacements_.end() ? size : replaced->second;
}

Arena::Form Arena::form_of(SymDim size) {
  if (size.is_number()) return {0, 0, size.number()};
  Polynomial p = terms(size);
  Form form;
  form.offset = constant_of(p);
  p = without_constant(std::move(p));
  form.scale = p.front().coefficient < 0 ? -content(p) : content(p);
  form.base = make(divided(std::move(p), form.scale));
  return form;
}

}  // namespace tenon::symbolic
