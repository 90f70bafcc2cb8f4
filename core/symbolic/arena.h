// Arena: the symbols and expressions of one recorded program, and the known facts about them.
//
// Equal expressions are stored once: their SymDims are identical. Facts come from declared ranges and divisors of
// symbols, and from the constraints that decide, require and assume note. An equality replaces a symbol at once in
// everything that is made from then on (resolve).
//
// Threads: one thread writes. After freeze() only const functions may be called, by any number of threads. A copy has
// the same expressions under the same SymDims and may grow again; a background compilation uses a copy.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/symbolic/polynomial.h"
#include "core/symbolic/range.h"
#include "core/symbolic/sym_dim.h"
#include "primitives/status/error.h"

namespace tenon::symbolic {

// The declaration of a symbol. A run that binds an excluded value is refused.
struct Symbol {
  std::string source = {};  // for errors: "axis 0 of input 'x'"
  Range range{0, SymDim::kMost};
  int64_t divisor = 1;               // divides every value; at least 1
  std::optional<int64_t> hint = {};  // the value when the program was recorded; none for a size that depends on data
};

enum class Kind : uint8_t { symbol, sum, floor_div, modulo, min, max, broadcast };

struct Node {
  Kind kind = Kind::symbol;
  uint32_t symbol = 0;  // for a symbol: its number
  SymDim a = 0;         // for functions: their operands
  SymDim b = 0;
  Polynomial terms;              // for a sum: at least two terms, or one with a coefficient or several factors
  uint32_t weight = 1;           // nodes in its text; a node that occurs twice counts twice
  std::optional<uint32_t> base;  // for a sum with a constant or a common divisor: the sum without them
  // The known bounds of the value.
  Range range;
  int64_t divisor = 1;
  std::optional<int64_t> hint;
};

// Why a condition that was not known at recording is taken as true:
//   guard    answered from hints; if it does not hold, the program must be recorded again
//   check    required of sizes without a hint; if it does not hold, the run fails
//   assumed  the caller guarantees it
enum class Origin : uint8_t { guard, check, assumed };

struct Constraint {
  Origin origin = Origin::guard;
  Condition condition;
  std::string context;  // the op that asked
};

// Thrown if the program must branch on a size without a hint. The recording ends there.
class Undecided : public Error {
 public:
  explicit Undecided(std::string message) : Error(Code::unsupported, std::move(message)) {}
};

class Arena {
 public:
  // `name` is the name in errors, "recording 3 (bert.onnx)".
  explicit Arena(std::string name);
  Arena(const Arena& other);
  Arena(Arena&&) = default;
  Arena& operator=(const Arena&) = delete;

  const std::string& name() const { return name_; }
  uint32_t serial() const { return serial_; }
  void freeze() { frozen_ = true; }
  bool frozen() const { return frozen_; }

  // A new symbol. Errors: invalid_argument for a hint that the range or the divisor excludes.
  SymDim symbol(Symbol declared);
  // The size of an axis of an input. Hints 0 and 1 are guarded at once and return the number; any other hint is guarded
  // to be above 1.
  SymDim input_size(std::string source, int64_t hint);
  std::span<const Symbol> symbols() const { return symbols_; }
  // The symbol with this number: "S3" has 3.
  SymDim symbol_at(uint32_t number) const { return SymDim::expression(serial_, symbol_nodes_[number]); }

  SymDim add(SymDim a, SymDim b, int64_t scale = 1);  // a + scale * b
  SymDim multiply(SymDim a, SymDim b);
  SymDim floor_div(SymDim a, SymDim b);
  SymDim modulo(SymDim a, SymDim b);
  SymDim min(SymDim a, SymDim b);
  SymDim max(SymDim a, SymDim b);
  // `a` if `b` is 1, else `b`. It has no value if they do not broadcast.
  SymDim broadcast(SymDim a, SymDim b);
  // `size` with all known replacements made.
  SymDim resolve(SymDim size);

  Range range(SymDim size) const;
  int64_t divisor(SymDim size) const;  // divides every value of the size; 0 for the number 0
  std::optional<int64_t> hint(SymDim size) const;

  // The answer, if facts decide it without a hint.
  std::optional<bool> known(const Condition& condition);
  // The answer by which the program continues. If facts do not decide it, the hint does, and a guard is noted. Errors:
  // Undecided, if a hint is missing.
  bool decide(const Condition& condition);
  // True if a requirement holds. If facts do not decide it, the hint does; if it holds, it becomes a guard. Without a
  // hint it becomes a check of the run.
  bool require(const Condition& condition);
  // Adds `condition` to the facts.
  void assume(const Condition& condition, Origin origin = Origin::assumed);
  // Sets the op that asks from now on.
  void context(std::string_view op) { context_ = op; }
  // In the order in which they were learned.
  const std::vector<Constraint>& constraints() const { return constraints_; }

  std::string text(SymDim size) const;
  std::string text(const Condition& condition) const;
  // Parses the text of text(); makes expressions, but no symbols. Errors: invalid_argument, with the position.
  Result<SymDim> parse(std::string_view text);
  Result<Condition> parse_condition(std::string_view text);
  // Symbols and constraints, a line each; parse_arena reads it back.
  std::string text() const;

  size_t size() const { return nodes_.size(); }
  // The node of an expression of this arena. Errors: invalid_argument for an expression of another arena.
  const Node& node(SymDim size) const;
  // The expression of an atom of a polynomial.
  SymDim atom(uint32_t index) const { return SymDim::expression(serial_, index); }

 private:
  // Facts about an expression without a constant term and without a common divisor of its coefficients.
  struct Fact {
    Range range;
    int64_t divisor = 1;
    std::vector<int64_t> excluded;
  };
  // scale * base + offset, where `base` is such an expression; a number has scale 0.
  struct Form {
    SymDim base = 0;
    int64_t scale = 0;
    int64_t offset = 0;
  };

  // In nodes.cpp. These functions return nodes in normal form.
  std::optional<uint32_t> find(const Node& node) const;
  SymDim intern(Node node);
  uint32_t weight_of(const Node& node) const;
  SymDim make(Polynomial terms);
  SymDim make_function(Kind kind, SymDim a, SymDim b);
  Polynomial terms(SymDim size) const;
  Form form_of(SymDim size);
  Polynomials polynomials() const;
  int order(uint32_t a, uint32_t b) const;
  int order(SymDim a, SymDim b) const;
  // In arithmetic.cpp.
  Polynomial sum_of(SymDim a, SymDim b, int64_t scale) const;
  Polynomial product_of(const Polynomial& a, const Polynomial& b) const;
  Polynomial without_whole_quotients(Polynomial terms);
  SymDim divide(Polynomial terms, int64_t divisor);
  SymDim divide(SymDim a, SymDim b);
  SymDim remainder(Polynomial terms, int64_t divisor);
  bool at_least_one(const Monomial& factors) const;
  SymDim substituted(const Node& node);
  // In analysis.cpp.
  void analyse(Node* node, const Fact* fact) const;
  Range range_of(const Polynomial& terms) const;
  int64_t divisor_of(const Term& term) const;
  std::optional<int64_t> lower_bound(const Polynomial& terms, int depth) const;
  std::optional<int64_t> lower_corner(const Polynomial& terms) const;
  void refresh(std::optional<uint32_t> changed);
  // In constraints.cpp.
  std::optional<bool> hinted(const Condition& condition) const;
  Condition tidy(const Condition& condition);
  void note(Origin origin, const Condition& condition);
  void learn(const Condition& condition);
  void learn_zero(Polynomial terms);
  void learn_fact(SymDim size, const Fact& fact);
  bool mentions(SymDim size, uint32_t atom) const;
  std::optional<Condition> without_extreme(const Condition& condition);
  void replace(uint32_t atom, SymDim with);
  std::optional<uint32_t> solvable(const Polynomial& terms) const;

  std::string name_;
  uint32_t serial_;
  bool frozen_ = false;
  std::string context_;
  std::vector<Node> nodes_;
  std::unordered_multimap<uint64_t, uint32_t> index_;  // indexed by hash
  std::vector<Symbol> symbols_;
  std::vector<uint32_t> symbol_nodes_;
  std::map<uint32_t, Fact> facts_;  // by the node of the base
  std::map<uint32_t, SymDim>
      replacements_;  // the replacement of a node: any expression for a symbol, a number for a function
  std::vector<std::optional<SymDim>> resolved_;
  std::vector<Constraint> constraints_;
  std::set<std::tuple<Relation, uint64_t, uint64_t>> noted_;
};

// Parses the text of Arena::text(). Errors: invalid_argument, with the line.
Result<Arena> parse_arena(std::string_view text, std::string name);

// Opens an arena on the calling thread for its life. Scopes nest.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena);
  ~ArenaScope();
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena* previous_;
};

// The calling thread's arena, or null.
Arena* current_arena();

// While this object lives, sizes of `arena`, which is being recorded, may be used on any thread that has not opened
// another copy of the arena. User code may hold such sizes.
class RecordingArena {
 public:
  explicit RecordingArena(Arena& arena);
  ~RecordingArena();
  RecordingArena(const RecordingArena&) = delete;
  RecordingArena& operator=(const RecordingArena&) = delete;

 private:
  uint32_t serial_;
};

// The arena that `size` belongs to: the open one, or one that is being recorded. Errors: invalid_argument, if there is
// none.
Arena& arena_of(SymDim size);

}  // namespace tenon::symbolic
