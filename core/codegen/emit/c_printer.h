// The printer of EP_DIALECT_C, which emit_c.cpp uses: it walks once over the tree of loops. Every number is a vector of
// 16 lanes; a value that does not depend on the vector loop's axis is the same in all lanes.
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

// The range of an axis that a loop left, as texts, and the maximum number of its positions (0: unknown).
struct Part {
  std::string lo, hi;
  int64_t most = 0;
};

// A load whose memory is contiguous along `rows` and not along the lanes. It was transposed into local memory, where it
// is contiguous along the lanes.
struct Turned {
  Id rows = kNone;
  std::string tile, rows_lo, lanes_lo;
  int64_t width = 0;       // distance between lines, in elements
  int64_t lines = 0;       // cache lines of one row of its memory
  std::string next, step;  // address and line distance of the next tile's source
};

// The printer's position in the loops.
struct Context {
  std::vector<std::string> at;            // by axis: the position
  std::vector<std::vector<Part>> levels;  // by depth, then by axis
  Id vector_axis = kNone;
  int64_t copies = 1;           // vectors in a row
  std::string part;             // how many lanes are valid; empty: all
  bool prefetches = false;      // loads prefetch the next item
  Id ahead = kNone;             // loads prefetch further positions along this axis
  const Node* block = nullptr;  // the enclosing loop that left a block of lanes
  std::map<Id, Turned> turned;

  const std::vector<Part>& parts() const { return levels.back(); }
  std::string count() const { return part.empty() ? "EP_LANES" : part; }
};

// The placement of a stage's row in local memory.
struct Row {
  size_t level = 0;  // number of loops that all its readers share with it
  std::vector<std::pair<Id, int64_t>> steps;
  int64_t lanes = 1;  // more than 1: a slot has this many numbers, because the vector loop encloses the row
  int64_t slots = 1;
  int64_t offset = 0;  // in bytes
};

// C texts that are true if a condition holds in all valid lanes, or in none of them. `same`: it is equal in all lanes.
struct Truth {
  std::string all, none;
  bool same = false;
};

// Values that the enclosing loops have computed, by expression and copy.
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

  // `size` at the position of `context`. `lane` is added to the position on the vector loop's axis.
  std::string size(const Context& context, SymDim size, const std::string& lane = "") const;
  static std::string lane_of(int64_t copy) { return copy == 0 ? "" : fmt::format("{}", kLanes * copy); }
  // The greatest value that `size` may have, if it is known.
  std::optional<int64_t> most(SymDim size) const;
  Stride stride(const Context& context, SymDim index);
  static bool is_number(SymDim size, int64_t number) { return size.is_number() && size.number() == number; }

  // --- Rows in local memory

  void lay_out(Id id);
  // The maximum number of positions of `axis` that the loops from `level` on visit.
  int64_t positions(const Stage& stage, const Place& place, size_t level, Id axis) const;
  // The maximum number of positions that a loop leaves to the loops inside it.
  static int64_t left_by(const Node& loop);
  [[noreturn]] void too_long(const Stage& stage) const;
  // The address of a stage's number at the current position, without the lanes.
  std::string slot(const Context& context, Id id, int64_t copy) const;
  // The distance between the lanes of a vector in a row: 1 if adjacent, 0 if all lanes share one number.
  int64_t row_step(const Context& context, Id id) const;
  std::string read_row(const Context& context, Id id, int64_t copy);
  void write_row(const Context& context, Id id, int64_t copy, const std::string& value);
  // Rows hold numbers as they are computed: no conversion.
  std::string row_memory(DType dtype) { return memory_of(dtype == DType::boolean ? DType::i32 : row_dtype(dtype)); }
  static DType row_dtype(DType dtype);

  // --- Expressions

  std::string floating(DType dtype, double number) const;
  std::string constant(const Expr& expr);
  // Adds a function that computes a row, once per kernel, and returns its name.
  std::string function(const std::string& name, std::string_view result, std::string_view parameters,
                       std::string_view expression, DType dtype);
  std::string op(const Expr& expr, const std::vector<std::string>& args);
  std::string parameter(DType type, double number);
  std::string index(const Context& context, const Expr& expr, int64_t copy);
  std::string load(const Context& context, const Expr& expr, int64_t copy, Memo* memo);
  // The truth of comparisons of positions and of logic on them. These are linear, so their first and last lane decide
  // for all lanes.
  std::optional<Truth> truth(const Context& context, Id id, int64_t copy, Memo* memo);
  std::string named(const std::string& condition);
  bool is_position(Id id) const;
  std::optional<Truth> comparison(const Context& context, const Expr& expr, int64_t copy);
  std::optional<Truth> conjunction(const Context& context, const Expr& expr, int64_t copy, Memo* memo);
  // Finds, by expression, the loads that are executed only under a condition, so that a branch that skips them pays;
  // and faults.
  void find_guarded_loads();
  // A select whose condition is equal in all lanes, as a branch that computes one side; empty if both sides must be
  // computed.
  std::string branch(const Context& context, Id id, int64_t copy, Memo* memo);
  // Prefetches memory that is read later: lines further on, the same position of the next columns, or the next item.
  // The processor fetches it while it works on the current item.
  void prefetch(const Context& context, const Expr& expr, const std::string& address);
  std::string read(const Context& context, Id id, int64_t copy, Memo* memo);
  std::string fresh() { return fmt::format("t{}", next_++); }
  // The variable that holds a position. Its check is written inline, because ep_raise works only in the entry.
  std::string position(const Context& context, const Expr& expr, int64_t copy, Memo* memo);
  // Writes loads that are the same at every point before all loops. A C compiler could not move them, because stores in
  // the loops might change them.
  void settle(Id id, std::set<Id>* seen);
  // True if an expression is the same at every point. `*loads` tells if it loads.
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
  // Adds up `count` vectors and then their lanes, pairwise. At the end all lanes of the first vector have the sum.
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

  // --- Tiles: where memory is contiguous along a loop around the vector loop, a block of it is transposed at once.

  // Transposes the data that loads inside `node` read. `node` leaves a block of lanes, or a block of the axis along
  // which their memory is contiguous. `inside` is the context in its body.
  void turn(Context* inside, const Node& node);
  void turn(Context* inside, Id blocked, Id rows_axis, Id lanes_axis, Id id);
  // True if `node` contains a loop of step 1 over `axis`.
  static bool has_single(const Node& node, Id axis);
  // Prefetches one line of the next tile for each vector that is read, in memory order.
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

  Kernel kernel_;  // a copy, because strides are added to its arena
  Places places_;
  std::vector<std::optional<Row>> rows_;
  int64_t local_ = 0;
  PreludeUse uses_;
  std::map<std::string, std::string> functions_;
  std::map<Id, int64_t> held_copies_;
  std::vector<bool> guarded_;
  bool faults_ = false;                // an expression may raise a fault
  std::map<Id, std::string> settled_;  // by expression: the variable that holds it in the whole kernel
  bool turns_ = false;
  std::string body_;
  size_t indent_ = 0;
  size_t next_ = 0;
};

}  // namespace tenon::codegen
