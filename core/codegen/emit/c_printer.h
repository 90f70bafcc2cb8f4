// The printer of EP_DIALECT_C, which emit_c.cpp makes: one walk over the tree of loops. Every number is a vector of 16
// lanes; what does not depend on the axis of a vector loop is the same in all of them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/codegen/emit/emit.h"
#include "core/codegen/emit/prelude_c.h"
#include "core/codegen/emit/rows.h"
#include "core/codegen/loop/places.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::codegen {

constexpr int64_t kLanes = 16;

// What a loop left of an axis, as texts, and how many positions those are at most; 0: nobody knows.
struct Part {
  std::string lo, hi;
  int64_t most = 0;
};

// A load whose memory is contiguous along `rows` and not along the lanes: it was turned, so that in local memory it is
// contiguous along the lanes.
struct Turned {
  Id rows = kNone;
  std::string tile, rows_lo, lanes_lo;
  int64_t width = 0;       // elements between its lines
  int64_t lines = 0;       // of the cache, of a row of its memory
  std::string next, step;  // what the next tile is made of, and how far apart its lines are
};

// Where the printer is.
struct Context {
  std::vector<std::string> at;            // by axis: the position
  std::vector<std::vector<Part>> levels;  // by depth, then by axis
  Id vector_axis = kNone;
  int64_t copies = 1;           // vectors in a row
  std::string part;             // how many lanes count; empty: all
  bool prefetches = false;      // loads fetch those of the next item
  Id ahead = kNone;             // loads fetch those further along this axis
  const Node* block = nullptr;  // the loop around that left a block of lanes
  std::map<Id, Turned> turned;

  const std::vector<Part>& parts() const { return levels.back(); }
  std::string count() const { return part.empty() ? "EP_LANES" : part; }
};

// How a stage in a row lies in local memory.
struct Row {
  size_t level = 0;  // the loops that all its readers share with it
  std::vector<std::pair<Id, int64_t>> steps;
  int64_t lanes = 1;  // more than 1: a slot is this many numbers, since the vector loop is around
  int64_t slots = 1;
  int64_t offset = 0;  // in bytes
};

// Whether a condition holds in all lanes that count, and whether in none, as texts of C. `same`: it is one truth.
struct Truth {
  std::string all, none;
  bool same = false;
};

// What the loops around a statement have computed, by the expression and the copy.
struct Memo {
  std::map<std::pair<Id, int64_t>, std::string> values;
  std::map<std::pair<Id, int64_t>, std::optional<Truth>> truths;
};

class CPrinter {
 public:
  explicit CPrinter(const Kernel& kernel) : kernel_(kernel), places_(kernel_), rows_(kernel_.stages.size()) {}
  KernelText emit();

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    body_.append(2 * indent_, ' ');
    body_ += fmt::format(format, std::forward<Args>(args)...);
    body_ += '\n';
  }
  template <class... Args>
  [[noreturn]] static void unsupported(fmt::format_string<Args...> format, Args&&... args) {
    throw Error(Code::unsupported, fmt::format(format, std::forward<Args>(args)...));
  }
  std::string prelude(const std::string& code) const;
  std::string functions_text() const;
  std::string name_of(DType dtype);
  std::string memory_of(DType dtype);
  static std::string_view vector_of(DType dtype) { return c_type(dtype).vector; }

  // --- Sizes

  // `size` at the point of `context`; `lane`: what is added to the position on the axis of the vector loop.
  std::string size(const Context& context, SymDim size, const std::string& lane = "") const;
  static std::string lane_of(int64_t copy) { return copy == 0 ? "" : fmt::format("{}", kLanes * copy); }
  // The greatest value that `size` may have, if there is a number.
  std::optional<int64_t> most(SymDim size) const;
  Stride stride(const Context& context, SymDim index);
  static bool is_number(SymDim size, int64_t number) { return size.is_number() && size.number() == number; }

  // --- Rows in local memory

  void lay_out(Id id);
  // How many positions of `axis` the loops from `level` on run over, at most.
  int64_t positions(const Stage& stage, const Place& place, size_t level, Id axis) const;
  // The positions that a loop leaves to those inside of it, at most.
  static int64_t left_by(const Node& loop);
  [[noreturn]] void too_long(const Stage& stage) const;
  // The address of a stage's number at the point, without the lanes.
  std::string slot(const Context& context, Id id, int64_t copy) const;
  // How far apart the lanes of a vector lie in a row: 1 next to each other, 0 one number for all.
  int64_t row_step(const Context& context, Id id) const;
  std::string read_row(const Context& context, Id id, int64_t copy);
  void write_row(const Context& context, Id id, int64_t copy, const std::string& value);
  // Rows hold numbers as they are computed: no conversion.
  std::string row_memory(DType dtype) { return memory_of(dtype == DType::boolean ? DType::i32 : row_dtype(dtype)); }
  static DType row_dtype(DType dtype);

  // --- Expressions

  std::string floating(DType dtype, double number) const;
  std::string constant(const Expr& expr);
  // A function that computes a row, once per kernel. Its name.
  std::string function(const std::string& name, std::string_view result, std::string_view parameters,
                       std::string_view expression, DType dtype);
  std::string op(const Expr& expr, const std::vector<std::string>& args);
  std::string parameter(DType type, double number);
  std::string index(const Context& context, const Expr& expr, int64_t copy);
  std::string load(const Context& context, const Expr& expr, int64_t copy, Memo* memo);
  // Of comparisons of positions, and what logic makes of them: they are lines, so their ends tell of all lanes.
  std::optional<Truth> truth(const Context& context, Id id, int64_t copy, Memo* memo);
  std::string named(const std::string& condition);
  bool is_position(Id id) const;
  std::optional<Truth> comparison(const Context& context, const Expr& expr, int64_t copy);
  std::optional<Truth> conjunction(const Context& context, const Expr& expr, int64_t copy, Memo* memo);
  // By expression: whether it loads where a condition holds alone, so that a branch is worth not being computed.
  void find_guarded_loads();
  // A choice by one truth for all lanes, of which one side is computed; empty where both sides are.
  std::string branch(const Context& context, Id id, int64_t copy, Memo* memo);
  // What is read later: lines further on, the same place of the next columns, or of the next item. A processor that
  // works on this item has time to fetch it.
  void prefetch(const Context& context, const Expr& expr, const std::string& address);
  std::string read(const Context& context, Id id, int64_t copy, Memo* memo);
  std::string fresh() { return fmt::format("t{}", next_++); }
  // Whether an expression may raise a fault.
  bool faults() const;
  // The variable that holds a position. Its check is written out, since ep_raise works in the entry alone.
  std::string position(const Context& context, const Expr& expr, int64_t copy, Memo* memo);
  // Writes out, before all loops, what is the same at every point but must be loaded: no store between them may change
  // what a compiler would have to load and compute again.
  void settle(Id id, std::set<Id>* seen);
  // Whether an expression is the same at every point; `*loads`: whether it loads.
  bool is_settled(Id id, bool* loads) const;
  // The variable that holds an expression.
  std::string expr(const Context& context, Id id, int64_t copy, Memo* memo);
  std::string cast(const Expr& expr, const std::string& value);

  // --- Reductions

  std::string reduce_function(const Stage& stage, const char* what, std::string_view text, std::string_view parameters);
  std::string combine(const Stage& stage, const std::string& x, const std::string& y);
  std::string initial(const Stage& stage) { return with_suffix(reduce_text(stage.op).init, name_of(stage.dtype)); }
  std::string finished(const Context& context, const Stage& stage, const std::string& value);
  // The vector loop over which a stage reduces; null if it has none.
  const Node* reducing_vector(Id id) const;
  bool reduces(Id id, Id axis) const;
  void begin_reduction(const Context& context, Id id);
  void end_reduction(const Context& context, Id id);
  // The sums of `count` vectors, and then of the lanes, pairwise: all lanes of the first have it in the end.
  void add_up(const Stage& stage, Id id, int64_t count);
  void accumulate(const Context& context, Id id, int64_t copy, const std::string& value);

  // --- Loops

  void step(const Context& context, Id id, Memo* memo);
  void store(const Context& context, const Stage& stage, int64_t copy, const std::string& value);
  void statements(const Context& context, const std::vector<Node>& nodes, size_t depth);
  void loop(const Context& context, const Node& node, size_t depth);
  void vector_loop(const Context& context, const Node& node, size_t depth);
  void block_of(const Context& inside, const Node& node, size_t depth);
  void body(const std::string& entry);

  // --- Tiles: where memory is contiguous along a loop around the vector loop, a block of it is turned at once.

  // Turns what the loads inside of `node` read, a loop that leaves a block of lanes or of the axis along which their
  // memory is contiguous; `inside` is the context there.
  void turn(Context* inside, const Node& node);
  void turn(Context* inside, Id blocked, Id rows_axis, Id lanes_axis, Id id);
  // Whether a loop of step 1 over `axis` is inside of `node`.
  static bool has_single(const Node& node, Id axis);
  // Fetches a line of the next tile for each vector, as many as it has, in their order in memory.
  std::string load_turned(const Context& context, const Turned& turned, const std::string& type, int64_t copy);
  static const Node* vector_in(const Node& node);
  template <class Visit>
  void each_stage(const Node& node, const Visit& visit) const {
    for (const Node& inner : node.body) {
      if (inner.is_loop()) each_stage(inner, visit);
      if (!inner.is_loop() && inner.stage != kNone) visit(kernel_.stages[inner.stage]);
    }
  }
  void find_far_loads(const Context& context, Id rows, Id lanes, Id id, std::set<Id>* seen, std::set<Id>* found);

  Kernel kernel_;  // a copy, since strides are made in its arena
  Places places_;
  std::vector<std::optional<Row>> rows_;
  int64_t local_ = 0;
  PreludeUse uses_;
  std::map<std::string, std::string> functions_;
  std::map<Id, int64_t> held_copies_;
  std::vector<bool> guarded_;
  std::map<Id, std::string> settled_;  // by expression: the variable that holds it everywhere
  bool turns_ = false;
  std::string body_;
  size_t indent_ = 0;
  size_t next_ = 0;
};

}  // namespace tenon::codegen
