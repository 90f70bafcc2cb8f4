// The printer of EP_DIALECT_C. Every number is a vector of 16 lanes; what does not depend on the axis of a vector loop
// is the same in all of them. A file of more than 400 lines, since it is one walk over one tree.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/compiler/emit/emit.h"
#include "core/compiler/emit/prelude_c.h"
#include "core/compiler/emit/rows.h"
#include "core/compiler/emit/size_text.h"
#include "core/compiler/loop/places.h"
#include "primitives/dtype/convert.h"
#include "primitives/status/error.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::compiler {
namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kMostLocal = int64_t{1} << 20;
constexpr int64_t kLinesAhead = 8;
constexpr int64_t kNearElements = 4096;            // of the next item, which the first cache has room for
constexpr int64_t kMostTile = int64_t{256} << 10;  // bytes of a block that is turned: half of a small L2
// Outputs of more bytes do not stay in a cache anyway; stores past it save the reading of each line.
constexpr int64_t kFarBytes = int64_t{16} << 20;

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

DType computed(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype; }

class Emitter {
 public:
  explicit Emitter(const Kernel& kernel) : kernel_(kernel), places_(kernel_), rows_(kernel_.stages.size()) {}

  KernelText emit() {
    const symbolic::ArenaScope scope(kernel_.arena);
    for (size_t id = 0; id < kernel_.stages.size(); ++id) {
      if (kernel_.stages[id].storage == Storage::row) lay_out(static_cast<Id>(id));
    }
    find_guarded_loads();
    KernelText result;
    result.dialect = EP_DIALECT_C;
    result.entry = "k_" + kernel_.name;
    body(result.entry);
    const std::string code = functions_text() + body_;
    result.text = prelude(code) + code;
    result.buffer_count = static_cast<uint32_t>(kernel_.buffers.size());
    result.parameter_bytes = static_cast<uint32_t>(8 * kernel_.parameters.size());
    result.shared_bytes = static_cast<uint32_t>(local_);
    result.flags = faults() ? EP_ENTRY_FLAG_FAULTS : 0;
    return result;
  }

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

  std::string prelude(const std::string& code) const {
    return fmt::format("{}{}{}", prelude_c_types(), turns_ ? prelude_c_turn() : "", prelude_c(uses_, code));
  }
  std::string functions_text() const {
    std::string text;
    for (const auto& function : functions_) text += function.second;
    return text;
  }

  std::string name_of(DType dtype) {
    uses_.numbers.insert(computed(dtype));
    return std::string(dtype_name(computed(dtype)));
  }
  std::string memory_of(DType dtype) {
    uses_.numbers.insert(computed(dtype));
    uses_.memory.insert(dtype);
    return std::string(dtype_name(dtype));
  }
  static std::string_view vector_of(DType dtype) { return c_type(dtype).vector; }

  // --- Sizes

  // `size` at the point of `context`; `lane`: what is added to the position on the axis of the vector loop.
  std::string size(const Context& context, SymDim size, const std::string& lane = "") const {
    return size_text(kernel_.arena, size, [&](uint32_t symbol) -> std::string {
      for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
        if (kernel_.parameters[i].symbol.index() == symbol) return fmt::format("p{}", i);
      }
      for (size_t i = 0; i < kernel_.axes.size(); ++i) {
        if (kernel_.axes[i].symbol.index() != symbol) continue;
        if (i == context.vector_axis && !lane.empty()) return fmt::format("({} + {})", context.at[i], lane);
        return context.at[i];
      }
      throw Error(Code::internal, "A size names what is no parameter and no axis.");
    });
  }
  static std::string lane_of(int64_t copy) { return copy == 0 ? "" : fmt::format("{}", kLanes * copy); }

  // The greatest value that `size` may have, if there is a number.
  std::optional<int64_t> most(SymDim size) const {
    const symbolic::Range range = kernel_.arena.range(size);
    return range.hi >= SymDim::kMost ? std::nullopt : std::optional<int64_t>(range.hi);
  }

  Stride stride(const Context& context, SymDim index) {
    if (context.vector_axis == kNone) return {true, 0};
    return stride_of(kernel_.arena, index, kernel_.axes[context.vector_axis].symbol);
  }
  static bool is_number(SymDim size, int64_t number) { return size.is_number() && size.number() == number; }

  // --- Rows in local memory

  void lay_out(Id id) {
    const Stage& stage = kernel_.stages[id];
    const Place& place = *places_.of(id).front();
    Row row;
    row.level = place.level;
    Id fastest = kNone;
    for (size_t i = 0; i < place.loops.size(); ++i) {
      if (place.loops[i]->kind != LoopKind::vector) continue;
      if (i < row.level) row.lanes = kLanes * place.loops[i]->unroll;
      if (i >= row.level) fastest = place.loops[i]->axis;
    }
    std::vector<Id> axes;
    for (const Id axis : stage.axes) {
      const auto inside = [&](const Node* loop) { return loop->axis == axis; };
      const auto first = place.loops.begin() + static_cast<ptrdiff_t>(row.level);
      if (axis != fastest && std::any_of(first, place.loops.end(), inside)) axes.push_back(axis);
    }
    if (fastest != kNone && std::find(stage.axes.begin(), stage.axes.end(), fastest) != stage.axes.end()) {
      axes.push_back(fastest);
    }
    for (size_t i = axes.size(); i-- > 0;) {
      row.steps.emplace_back(axes[i], row.slots);
      int64_t extent = positions(stage, place, row.level, axes[i]);
      if (axes[i] == fastest) extent = (extent + kLanes - 1) / kLanes * kLanes;
      if (__builtin_mul_overflow(row.slots, extent, &row.slots) || row.slots > kMostLocal) too_long(stage);
    }
    row.offset = local_;
    const int64_t bytes = row.slots * row.lanes * (dtype_size(stage.dtype) == 8 ? 8 : 4);
    local_ += (std::max<int64_t>(bytes, 64) + 63) / 64 * 64;
    if (local_ > kMostLocal) too_long(stage);
    rows_[id] = row;
  }

  // How many positions of `axis` the loops from `level` on run over, at most.
  int64_t positions(const Stage& stage, const Place& place, size_t level, Id axis) const {
    std::optional<int64_t> extent = most(kernel_.axes[axis].extent);
    for (size_t i = 0; i < level; ++i) {
      if (place.loops[i]->axis == axis) extent = std::min(extent.value_or(SymDim::kMost), left_by(*place.loops[i]));
    }
    if (!extent) too_long(stage);
    return std::max<int64_t>(*extent, 1);
  }
  // The positions that a loop leaves to those inside of it, at most.
  static int64_t left_by(const Node& loop) {
    return loop.kind == LoopKind::items ? loop.step * loop.unroll : loop.step;
  }
  [[noreturn]] void too_long(const Stage& stage) const {
    unsupported("Stage {} of kernel {} keeps a row in local memory that may have more than {} bytes.", stage.name,
                kernel_.name, kMostLocal);
  }

  // The address of a stage's number at the point, without the lanes.
  std::string slot(const Context& context, Id id, int64_t copy) const {
    const Row& row = *rows_[id];
    std::string index;
    for (const auto& [axis, step] : row.steps) {
      std::string position = fmt::format("({} - {})", context.at[axis], context.levels[row.level][axis].lo);
      if (axis == context.vector_axis && copy > 0) position = fmt::format("({} + {})", position, kLanes * copy);
      index += index.empty() ? "" : " + ";
      index += step == 1 ? position : fmt::format("{} * {}", position, step);
    }
    if (index.empty()) index = "0";
    if (row.lanes > 1) return fmt::format("row{} + ({}) * {} + {}", id, index, row.lanes, kLanes * copy);
    return fmt::format("row{} + {}", id, index);
  }
  // How far apart the lanes of a vector lie in a row: 1 next to each other, 0 one number for all.
  int64_t row_step(const Context& context, Id id) const {
    const Row& row = *rows_[id];
    if (row.lanes > 1) return 1;
    for (const auto& [axis, step] : row.steps) {
      if (axis == context.vector_axis) return step;
    }
    return 0;
  }
  std::string read_row(const Context& context, Id id, int64_t copy) {
    const Stage& stage = kernel_.stages[id];
    const std::string type = row_memory(stage.dtype);
    const std::string address = slot(context, id, copy);
    const int64_t step = row_step(context, id);
    if (step == 1) return fmt::format("ep_load_{}({})", type, address);
    if (step == 0) return fmt::format("ep_load_one_{}({})", type, address);
    return fmt::format("ep_gather_{}({}, {}, {})", type, address, step, context.count());
  }
  void write_row(const Context& context, Id id, int64_t copy, const std::string& value) {
    const std::string type = row_memory(kernel_.stages[id].dtype);
    const std::string address = slot(context, id, copy);
    const int64_t step = row_step(context, id);
    if (step == 1) {
      line("ep_store_{}({}, {});", type, address, value);
    } else {
      line("ep_scatter_{}({}, {}, {}, {});", type, address, std::max<int64_t>(step, 1), value,
           step == 0 ? "1" : context.count());
    }
  }
  // Rows hold numbers as they are computed: no conversion.
  std::string row_memory(DType dtype) { return memory_of(dtype == DType::boolean ? DType::i32 : row_dtype(dtype)); }
  static DType row_dtype(DType dtype) {
    switch (dtype) {
      case DType::i8:
      case DType::i16: return DType::i32;
      case DType::u8:
      case DType::u16: return DType::u32;
      default: return computed(dtype);
    }
  }

  // --- Expressions

  std::string floating(DType dtype, double number) const {
    if (std::isnan(number)) return "__builtin_nan(\"\")";
    if (std::isinf(number)) return number < 0 ? "-__builtin_inf()" : "__builtin_inf()";
    if (dtype == DType::f32) number = static_cast<float>(number);
    if (dtype != DType::f32 && dtype != DType::f64) number = decode_float(dtype, encode_float(dtype, number));
    if (std::isinf(number)) return floating(DType::f64, number);
    return fmt::format("{:a}{}", number, dtype == DType::f64 ? "" : "f");
  }

  std::string constant(const Expr& expr) {
    const std::string type = name_of(expr.dtype);
    if (is_floating(expr.dtype)) return fmt::format("ep_lit_{}({})", type, floating(expr.dtype, expr.a));
    if (expr.dtype == DType::u64) return fmt::format("ep_lit_u64({}ull)", static_cast<uint64_t>(expr.integer));
    if (expr.integer == INT64_MIN) return fmt::format("ep_lit_{}((-9223372036854775807ll - 1))", type);
    return fmt::format("ep_lit_{}({}ll)", type, expr.integer);
  }

  // A function that computes a row, once per kernel. Its name.
  std::string function(const std::string& name, std::string_view result, std::string_view parameters,
                       std::string_view expression, DType dtype) {
    if (!functions_.contains(name)) {
      functions_[name] = fmt::format("EP_INLINE {} {}({}) {{ return {}; }}\n", result, name, parameters,
                                     with_suffix(expression, name_of(dtype)));
    }
    return name;
  }

  std::string op(const Expr& expr, const std::vector<std::string>& args) {
    const DType type = computed(kernel_.exprs[expr.args[arg_count(expr) - 1]].dtype);
    const std::string_view vector = vector_of(type);
    const bool wide = vector_of(type).ends_with("64");
    if (expr.kind == ExprKind::ternary && table::ternary_row(expr.op)->domain == table::Domain::COND) {
      std::string text(ternary_text(expr.op));
      const std::string truth = "ep_truth(x)";
      text.replace(text.find(truth), truth.size(), wide ? "__builtin_convertvector(x, ep_v_i64)" : "x");
      const std::string name = function(fmt::format("op3_{}_{}", op_name(expr), name_of(type)), vector,
                                        fmt::format("ep_v_i32 x, {} y, {} z", vector, vector), text, type);
      return fmt::format("{}({}, {}, {})", name, args[0], args[1], args[2]);
    }
    const size_t count = args.size();
    std::string text(count == 1 ? unary_text(expr.op) : count == 2 ? binary_text(expr.op) : ternary_text(expr.op));
    const bool to_bool = expr.dtype == DType::boolean && type != DType::boolean;
    if (to_bool && wide) text = fmt::format("__builtin_convertvector({}, ep_v_i32)", text);
    const int32_t extra = count == 1 ? table::unary_row(expr.op)->parameters : 0;
    std::string parameters;
    std::string arguments;
    for (size_t i = 0; i < count; ++i) {
      parameters += fmt::format("{}{} {}", i == 0 ? "" : ", ", vector, "xyz"[i]);
      arguments += fmt::format("{}{}", i == 0 ? "" : ", ", args[i]);
    }
    for (int32_t i = 0; i < extra; ++i) {
      parameters += fmt::format(", {} {}", vector, "ab"[i]);
      arguments += fmt::format(", {}", parameter(type, i == 0 ? expr.a : expr.b));
    }
    const std::string name = function(fmt::format("op{}_{}_{}", count, op_name(expr), name_of(type)),
                                      to_bool ? "ep_v_i32" : vector, parameters, text, type);
    return fmt::format("{}({})", name, arguments);
  }

  std::string parameter(DType type, double number) {
    if (is_floating(type)) return fmt::format("ep_lit_{}({})", name_of(type), floating(type, number));
    return fmt::format("ep_lit_{}({}ll)", name_of(type), static_cast<int64_t>(number));
  }

  std::string index(const Context& context, const Expr& expr, int64_t copy) {
    name_of(DType::i64);
    const Stride step = stride(context, expr.index);
    const std::string base = size(context, expr.index, lane_of(copy));
    if (step.linear && is_number(step.step, 0)) return fmt::format("ep_lit_i64({})", base);
    if (step.linear) {
      return fmt::format("ep_lit_i64({}) + __builtin_convertvector(ep_numbers, ep_v_i64) * ep_lit_i64({})", base,
                         size(context, step.step));
    }
    const std::string name = fresh();
    line("ep_v_i64 {};", name);
    line("for (int64_t i = 0; i < EP_LANES; ++i) {}[i] = {};", name,
         size(context, expr.index, fmt::format("{} + i", kLanes * copy)));
    return name;
  }

  std::string load(const Context& context, const Expr& expr, int64_t copy, Memo* memo) {
    const DType dtype = kernel_.buffers[expr.target].dtype;
    const std::string type = memory_of(dtype);
    const std::string address = fmt::format("b{} + {}", expr.target, size(context, expr.index, lane_of(copy)));
    const auto turned = context.turned.find(static_cast<Id>(&expr - kernel_.exprs.data()));
    if (turned != context.turned.end()) return load_turned(context, turned->second, type, copy);
    const Stride step = stride(context, expr.index);
    std::string whole;
    if (step.linear && is_number(step.step, 0)) {
      whole = fmt::format("ep_load_one_{}({})", type, address);
    } else if (step.linear && is_number(step.step, 1)) {
      whole = context.part.empty() ? fmt::format("ep_load_{}({})", type, address)
                                   : fmt::format("ep_load_part_{}({}, {})", type, address, context.part);
    } else if (step.linear) {
      whole = fmt::format("ep_gather_{}({}, {}, {})", type, address, size(context, step.step), context.count());
    }
    if (expr.args[0] == kNone && !whole.empty()) {
      if (is_number(step.step, 1) && context.part.empty()) prefetch(context, expr, address);
      return whole;
    }
    const std::string name = fresh();
    const std::optional<Truth> truth =
        expr.args[0] == kNone ? std::nullopt : this->truth(context, expr.args[0], copy, memo);
    if (truth && truth->same && !whole.empty()) {
      line("{} {} = {{}};", vector_of(dtype), name);
      line("if ({}) {} = {};", truth->all, name, whole);
      return name;
    }
    // Lane by lane: where the index is no line, and where a condition leaves lanes out.
    const std::string where = expr.args[0] == kNone ? "" : this->expr(context, expr.args[0], copy, memo);
    line("{} {} = {{}};", vector_of(dtype), name);
    if (truth && !whole.empty()) {
      line("if ({}) {} = {}; else if (!({})) {{", truth->all, name, whole, truth->none);
    } else if (!whole.empty() && context.part.empty()) {
      line("if (ep_all({})) {} = {}; else {{", where, name, whole);
    } else {
      line("{{");
    }
    ++indent_;
    line("{} k = {{}};", c_memory_vector(dtype));
    line("for (int64_t i = 0; i < {}; ++i) {{", context.count());
    line("  {}k[i] = b{}[{}];", where.empty() ? "" : fmt::format("if ({}[i]) ", where), expr.target,
         size(context, expr.index, fmt::format("{} + i", kLanes * copy)));
    line("}}");
    line("{} = ep_take_{}(k);", name, type);
    --indent_;
    line("}}");
    return name;
  }

  // Of comparisons of positions, and what logic makes of them: they are lines, so their ends tell of all lanes.
  std::optional<Truth> truth(const Context& context, Id id, int64_t copy, Memo* memo) {
    const auto found = memo->truths.find({id, copy});
    if (found != memo->truths.end()) return found->second;
    const Expr& expr = kernel_.exprs[id];
    std::optional<Truth> result;
    if (expr.kind == ExprKind::unary && op_name(expr) == "logical_not") {
      result = truth(context, expr.args[0], copy, memo);
      if (result) std::swap(result->all, result->none);
    } else if (expr.kind == ExprKind::binary && expr.dtype == DType::boolean) {
      result = is_position(expr.args[0]) && is_position(expr.args[1]) ? comparison(context, expr, copy)
                                                                      : conjunction(context, expr, copy, memo);
    }
    if (result && !result->all.starts_with('c')) {
      result->all = named(result->all);
      result->none = result->same ? "!" + result->all : named(result->none);
    }
    return memo->truths.emplace(std::pair(id, copy), result).first->second;
  }
  std::string named(const std::string& condition) {
    const std::string name = fmt::format("c{}", next_++);
    line("const int {} = {};", name, condition);
    return name;
  }
  bool is_position(Id id) const {
    const Expr& expr = kernel_.exprs[id];
    return expr.kind == ExprKind::index || (expr.kind == ExprKind::constant && expr.dtype == DType::i64);
  }

  std::optional<Truth> comparison(const Context& context, const Expr& expr, int64_t copy) {
    const std::map<std::string_view, const char*> signs{{"lt", "<"},  {"le", "<="}, {"gt", ">"},
                                                        {"ge", ">="}, {"eq", "=="}, {"ne", "!="}};
    const auto sign = signs.find(op_name(expr));
    if (sign == signs.end()) return std::nullopt;
    bool same = true;
    for (const Id arg : {expr.args[0], expr.args[1]}) {
      if (kernel_.exprs[arg].kind == ExprKind::constant) continue;
      const Stride step = stride(context, kernel_.exprs[arg].index);
      if (!step.linear) return std::nullopt;
      same = same && is_number(step.step, 0);
    }
    if (!same && sign->second[1] == '=' && (sign->second[0] == '=' || sign->second[0] == '!')) return std::nullopt;
    const auto at = [&](const std::string& lane) {
      std::array<std::string, 2> texts;
      for (size_t i = 0; i < 2; ++i) {
        const Expr& arg = kernel_.exprs[expr.args[i]];
        texts[i] = arg.kind == ExprKind::constant ? fmt::format("{}ll", arg.integer) : size(context, arg.index, lane);
      }
      return fmt::format("({} {} {})", texts[0], sign->second, texts[1]);
    };
    const std::string first = at(lane_of(copy));
    if (same) return Truth{first, "!" + first, true};
    const std::string last =
        at(context.part.empty() ? fmt::format("{}", kLanes * copy + kLanes - 1) : fmt::format("{} - 1", context.part));
    return Truth{fmt::format("{} && {}", first, last), fmt::format("!({} || {})", first, last), false};
  }

  std::optional<Truth> conjunction(const Context& context, const Expr& expr, int64_t copy, Memo* memo) {
    const bool both = op_name(expr) == "logical_and";
    if (!both && op_name(expr) != "logical_or") return std::nullopt;
    const std::optional<Truth> x = truth(context, expr.args[0], copy, memo),
                               y = truth(context, expr.args[1], copy, memo);
    if (!x || !y) return std::nullopt;
    const std::string all = fmt::format("({} {} {})", x->all, both ? "&&" : "||", y->all);
    return Truth{all, fmt::format("({} {} {})", x->none, both ? "||" : "&&", y->none), x->same && y->same};
  }

  // By expression: whether it loads where a condition holds alone, so that a branch is worth not being computed.
  void find_guarded_loads() {
    guarded_.resize(kernel_.exprs.size());
    for (size_t id = 0; id < guarded_.size(); ++id) {
      const Expr& expr = kernel_.exprs[id];
      guarded_[id] = expr.kind == ExprKind::load && expr.args[0] != kNone;
      for (size_t i = 0; i < arg_count(expr); ++i) guarded_[id] = guarded_[id] || guarded_[expr.args[i]];
      if (expr.kind != ExprKind::stage) continue;
      const Stage& stage = kernel_.stages[expr.target];
      guarded_[id] = stage.storage == Storage::inlined && stage.value < id && guarded_[stage.value];
    }
  }

  // A choice by one truth for all lanes, of which one side is computed; empty where both sides are.
  std::string branch(const Context& context, Id id, int64_t copy, Memo* memo) {
    const Expr& expr = kernel_.exprs[id];
    if (expr.kind != ExprKind::ternary || op_name(expr) != "where" || faults() || !guarded_[id]) return "";
    const std::optional<Truth> truth = this->truth(context, expr.args[0], copy, memo);
    if (!truth || !truth->same) return "";
    const std::string name = fresh();
    line("{} {};", vector_of(expr.dtype), name);
    for (const int side : {1, 2}) {
      if (side == 1) line("if ({}) {{", truth->all);
      if (side == 2) line("}} else {{");
      ++indent_;
      Memo inside = *memo;
      const std::string value = this->expr(context, expr.args[side], copy, &inside);
      line("{} = {};", name, value);
      --indent_;
    }
    line("}}");
    return name;
  }

  // What is read later: lines further on, the same place of the next columns, or of the next item. A processor that
  // works on this item has time to fetch it.
  void prefetch(const Context& context, const Expr& expr, const std::string& address) {
    const Node& items = kernel_.body.front();
    if (context.ahead == context.vector_axis && context.ahead != kNone) {
      return line("__builtin_prefetch({} + {}, 0, 2);", address, kLanes * context.copies);
    }
    if (context.ahead != kNone) {
      const Stride lines = stride_of(kernel_.arena, expr.index, kernel_.axes[context.ahead].symbol);
      if (!lines.linear || is_number(lines.step, 0)) return;
      return line("__builtin_prefetch({} + {} * {}, 0, 2);", address, kLinesAhead, size(context, lines.step));
    }
    if (!context.prefetches || items.step != 1 || items.axis == context.vector_axis) return;
    const Stride next = stride_of(kernel_.arena, expr.index, kernel_.axes[items.axis].symbol);
    if (!next.linear || is_number(next.step, 0)) return;
    const std::string item = size(context, next.step);
    if (context.block == nullptr) {
      const bool is_row = next.step.is_number() && next.step.number() <= kNearElements;
      return line("__builtin_prefetch({} + {}{});", address, item, is_row ? "" : ", 0, 2");
    }
    // The block beside this one, or the first of the next item.
    const Part &part = context.levels[context.levels.size() - 2][context.vector_axis],
               &all = context.levels[1][context.vector_axis];
    line("__builtin_prefetch({} + ({} < {} ? {} : {} - {}), 0, 2);", address, part.hi, all.hi, context.block->step,
         item, part.lo);
  }

  std::string read(const Context& context, Id id, int64_t copy, Memo* memo) {
    const Stage& stage = kernel_.stages[id];
    if (stage.storage == Storage::inlined) return expr(context, stage.value, copy, memo);
    if (stage.storage == Storage::row) {
      const std::string value = read_row(context, id, copy);
      return stage.kind == StageKind::reduce ? finished(context, stage, value) : value;
    }
    return fmt::format("s{}_{}", id, copy < held_copies_[id] ? copy : 0);
  }

  std::string fresh() { return fmt::format("t{}", next_++); }

  // Whether an expression may raise a fault.
  bool faults() const {
    return std::any_of(kernel_.exprs.begin(), kernel_.exprs.end(),
                       [](const Expr& expr) { return expr.kind == ExprKind::position; });
  }

  // The variable that holds a position. Its check is written out, since ep_raise works in the entry alone.
  std::string position(const Context& context, const Expr& expr, int64_t copy, Memo* memo) {
    const std::string x = this->expr(context, expr.args[0], copy, memo),
                      n = this->expr(context, expr.args[1], copy, memo);
    const std::string name = fresh(), lane = fmt::format("l{}", next_++);
    line("{} {} = {} + ({} & ({} < 0));", vector_of(DType::i64), name, x, n, x);
    line("for (int {} = 0; {} < {}; ++{}) {{", lane, lane, context.count(), lane);
    line("  if ({0}[{1}] >= 0 && {0}[{1}] < {2}[{1}]) continue;", name, lane, n);
    line("  ep_raise({}, {}, {}[{}], {}[{}]);", EP_FAULT_INDEX_OUT_OF_RANGE, expr.target, x, lane, n, lane);
    line("  {}[{}] = 0;", name, lane);
    line("}}");
    return name;
  }

  // The variable that holds an expression.
  std::string expr(const Context& context, Id id, int64_t copy, Memo* memo) {
    const auto found = memo->values.find({id, copy});
    if (found != memo->values.end()) return found->second;
    const Expr& expr = kernel_.exprs[id];
    std::string text = branch(context, id, copy, memo);
    if (!text.empty()) return memo->values.emplace(std::pair(id, copy), text).first->second;
    switch (expr.kind) {
      case ExprKind::position:
        return memo->values.emplace(std::pair(id, copy), position(context, expr, copy, memo)).first->second;
      case ExprKind::constant: text = constant(expr); break;
      case ExprKind::index: text = index(context, expr, copy); break;
      case ExprKind::load: text = load(context, expr, copy, memo); break;
      case ExprKind::stage: text = read(context, expr.target, copy, memo); break;
      case ExprKind::cast: text = cast(expr, this->expr(context, expr.args[0], copy, memo)); break;
      default: {
        std::vector<std::string> args;
        for (size_t i = 0; i < arg_count(expr); ++i) args.push_back(this->expr(context, expr.args[i], copy, memo));
        text = op(expr, args);
      }
    }
    const std::string name = fresh();
    line("const {} {} = {};", vector_of(expr.dtype), name, text);
    memo->values.emplace(std::pair(id, copy), name);
    return name;
  }

  std::string cast(const Expr& expr, const std::string& value) {
    const DType from = kernel_.exprs[expr.args[0]].dtype;
    // f16 and bf16 are held as f32: to them it rounds, from them it is f32's own.
    const DType source = computed(from);
    const DType target = expr.dtype;
    if (source == target) return value;
    name_of(source);
    name_of(target);
    if (target != computed(target)) memory_of(target);
    uses_.casts.emplace(source, target);
    return fmt::format("ep_cast_{}_{}({})", dtype_name(source), dtype_name(target), value);
  }

  // --- Reductions

  std::string reduce_function(const Stage& stage, const char* what, std::string_view text,
                              std::string_view parameters) {
    return function(fmt::format("{}_{}_{}", what, table::reduce_row(stage.op)->name, name_of(stage.dtype)),
                    vector_of(stage.dtype), parameters, text, stage.dtype);
  }
  std::string combine(const Stage& stage, const std::string& x, const std::string& y) {
    const std::string vector(vector_of(stage.dtype));
    return fmt::format(
        "{}({}, {})",
        reduce_function(stage, "combine", reduce_text(stage.op).combine, fmt::format("{0} x, {0} y", vector)), x, y);
  }
  std::string initial(const Stage& stage) { return with_suffix(reduce_text(stage.op).init, name_of(stage.dtype)); }
  std::string finished(const Context& context, const Stage& stage, const std::string& value) {
    const std::string_view text = reduce_text(stage.op).finish;
    if (text == "x") return value;
    SymDim count = 1;
    for (const Id axis : stage.reduce_axes) count *= kernel_.axes[axis].extent;
    const std::string vector(vector_of(stage.dtype));
    const std::string name = reduce_function(stage, "finish", text, fmt::format("{0} x, {0} n", vector));
    return fmt::format("{}({}, ep_lit_{}({}))", name, value, name_of(stage.dtype), size(context, count));
  }

  // The vector loop over which a stage reduces; null if it has none.
  const Node* reducing_vector(Id id) const {
    const Place& place = *places_.of(id).front();
    for (size_t i = place.result; i < place.loops.size(); ++i) {
      if (place.loops[i]->kind == LoopKind::vector && reduces(id, place.loops[i]->axis)) return place.loops[i];
    }
    return nullptr;
  }
  bool reduces(Id id, Id axis) const {
    const std::vector<Id>& axes = kernel_.stages[id].reduce_axes;
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  }

  void begin_reduction(const Context& context, Id id) {
    const Stage& stage = kernel_.stages[id];
    const Node* vector = reducing_vector(id);
    if (!places_.adds_in_one_number(id)) {
      const Row& row = *rows_[id];
      const std::string type = row_memory(stage.dtype);
      const int64_t numbers = row.slots * row.lanes;
      if (numbers % kLanes == 0) {
        line("for (int64_t i = 0; i < {}; i += EP_LANES) ep_store_{}(row{} + i, {});", numbers, type, id,
             initial(stage));
      } else {
        line("for (int64_t i = 0; i < {}; ++i) ep_store_part_{}(row{} + i, {}, 1);", numbers, type, id, initial(stage));
      }
      return;
    }
    const int64_t copies = vector != nullptr ? vector->unroll : context.copies;
    for (int64_t i = 0; i < copies; ++i) {
      line("{} a{}_{} = {};", vector_of(stage.dtype), id, i, initial(stage));
    }
  }

  void end_reduction(const Context& context, Id id) {
    const Stage& stage = kernel_.stages[id];
    if (!places_.adds_in_one_number(id)) return;
    const Node* vector = reducing_vector(id);
    const int64_t copies = vector != nullptr ? 1 : context.copies;
    if (vector != nullptr) add_up(stage, id, vector->unroll);
    held_copies_[id] = copies;
    for (int64_t i = 0; i < copies; ++i) {
      const std::string sum = fmt::format("a{}_{}", id, i);
      if (stage.storage == Storage::row) {
        write_row(context, id, i, sum);
      } else {
        line("const {} s{}_{} = {};", vector_of(stage.dtype), id, i, finished(context, stage, sum));
      }
    }
  }

  // The sums of `count` vectors, and then of the lanes, pairwise: all lanes of the first have it in the end.
  void add_up(const Stage& stage, Id id, int64_t count) {
    for (int64_t width = 1; width < count; width *= 2) {
      for (int64_t i = 0; i + width < count; i += 2 * width) {
        line("a{}_{} = {};", id, i, combine(stage, fmt::format("a{}_{}", id, i), fmt::format("a{}_{}", id, i + width)));
      }
    }
    for (const int by : {8, 4, 2, 1}) {
      line(
          "a{}_0 = {};", id,
          combine(stage, fmt::format("a{}_0", id), fmt::format("ep_shift_{}_{}(a{}_0)", by, name_of(stage.dtype), id)));
    }
  }

  void accumulate(const Context& context, Id id, int64_t copy, const std::string& value) {
    const Stage& stage = kernel_.stages[id];
    std::string mapped = value;
    if (reduce_text(stage.op).map != "x") {
      mapped = fmt::format(
          "{}({})",
          reduce_function(stage, "map", reduce_text(stage.op).map, std::string(vector_of(stage.dtype)) + " x"), value);
    }
    if (!places_.adds_in_one_number(id)) {
      return write_row(context, id, copy, combine(stage, read_row(context, id, copy), mapped));
    }
    const std::string sum = fmt::format("a{}_{}", id, copy);
    std::string next = combine(stage, sum, mapped);
    if (!context.part.empty() && context.vector_axis != kNone && reduces(id, context.vector_axis)) {
      const bool wide = vector_of(stage.dtype).ends_with("64");
      const std::string first = fmt::format("ep_first({})", context.part);
      next = fmt::format("ep_select_{}({}, {}, {})", name_of(stage.dtype),
                         wide ? fmt::format("__builtin_convertvector({}, ep_v_i64)", first) : first, next, sum);
    }
    line("{} = {};", sum, next);
  }

  // --- Loops

  void step(const Context& context, Id id, Memo* memo) {
    const Stage& stage = kernel_.stages[id];
    if (stage.kind != StageKind::reduce) held_copies_[id] = context.copies;
    for (int64_t copy = 0; copy < context.copies; ++copy) {
      const std::string value = expr(context, stage.value, copy, memo);
      switch (stage.kind) {
        case StageKind::reduce: accumulate(context, id, copy, value); break;
        case StageKind::store: store(context, stage, copy, value); break;
        case StageKind::value:
          if (stage.storage == Storage::row) {
            write_row(context, id, copy, value);
          } else {
            line("const {} s{}_{} = {};", vector_of(stage.dtype), id, copy, value);
          }
      }
    }
  }

  void store(const Context& context, const Stage& stage, int64_t copy, const std::string& value) {
    const std::string type = memory_of(stage.dtype);
    const std::string address = fmt::format("b{} + {}", stage.buffer, size(context, stage.index, lane_of(copy)));
    const Stride step = stride(context, stage.index);
    if (!step.linear) {
      line("{{");
      line("  const {} k = ep_give_{}({});", c_memory_vector(stage.dtype), type, value);
      line("  for (int64_t i = 0; i < {}; ++i) b{}[{}] = k[i];", context.count(), stage.buffer,
           size(context, stage.index, fmt::format("{} + i", kLanes * copy)));
      line("}}");
    } else if (is_number(step.step, 0)) {
      line("ep_scatter_{}({}, 1, {}, 1);", type, address, value);
    } else if (!is_number(step.step, 1)) {
      line("ep_scatter_{}({}, {}, {}, {});", type, address, size(context, step.step), value, context.count());
    } else if (context.part.empty()) {
      line("ep_store_far_{}({}, {}, far{});", type, address, value, stage.buffer);
    } else {
      line("ep_store_part_{}({}, {}, {});", type, address, value, context.part);
    }
  }

  void statements(const Context& context, const std::vector<Node>& nodes, size_t depth) {
    Memo memo;
    for (const Node& node : nodes) {
      if (!node.is_loop()) {
        step(context, node.stage, &memo);
        continue;
      }
      const std::vector<Id> reductions = places_.starting(node, depth);
      for (const Id id : reductions) begin_reduction(context, id);
      loop(context, node, depth);
      for (const Id id : reductions) end_reduction(context, id);
    }
  }

  void loop(const Context& context, const Node& node, size_t depth) {
    if (node.kind == LoopKind::vector) return vector_loop(context, node, depth);
    const Part part = context.parts()[node.axis];
    const std::string at = fmt::format("i{}", next_++);
    if (node.kind == LoopKind::items) {
      line("for (int64_t item = begin; item < end; item += {}) {{", node.unroll);
      ++indent_;
      line("const int64_t {} = item{};", at, node.step == 1 ? "" : fmt::format(" * {}", node.step));
    } else {
      line("for (int64_t {} = {}; {} < {}; {} += {}) {{", at, part.lo, at, part.hi, at, node.step);
      ++indent_;
    }
    Context inside = context;
    inside.at[node.axis] = at;
    inside.levels.push_back(context.parts());
    Part& left = inside.levels.back()[node.axis];
    left = {at, fmt::format("{} + 1", at)};
    if (node.step != 1) {
      left.hi = fmt::format("h{}", next_++);
      const std::string length = node.unroll == 1
                                     ? fmt::format("{}", node.step)
                                     : fmt::format("ep_least({}, end - item) * {}", node.unroll, node.step);
      line("const int64_t {} = ep_least({} + {}, {});", left.hi, at, length, part.hi);
      left.most = left_by(node);
      const std::optional<int64_t> extent = most(kernel_.axes[node.axis].extent);
      if (extent) left.most = std::clamp<int64_t>(*extent, 1, left.most);
      turn(&inside, node);
    }
    if (node.kind == LoopKind::serial && node.step != 1) inside.block = &node;
    // Of columns that several loops read, one that does more than to add up fetches those beside them; where threads
    // share columns, no prefetcher of the processor knows where a line goes on.
    if (inside.vector_axis != kNone && node.step == 1) {
      const bool works = std::any_of(node.body.begin(), node.body.end(), [&](const Node& step) {
        return !step.is_loop() && kernel_.stages[step.stage].kind != StageKind::reduce;
      });
      inside.ahead = works ? inside.vector_axis : kNone;
    } else if (kernel_.body.front().unroll > 1 && node.kind == LoopKind::serial) {
      inside.ahead = node.axis;
    }
    statements(inside, node.body, depth + 1);
    --indent_;
    line("}}");
  }

  // --- Tiles: where memory is contiguous along a loop around the vector loop, a block of it is turned at once.

  // Turns what the loads inside of `node` read, a loop that leaves a block of lanes or of the axis along which their
  // memory is contiguous; `inside` is the context there.
  void turn(Context* inside, const Node& node) {
    const Node* vector = inside->vector_axis != kNone ? nullptr : vector_in(node);
    if (vector == nullptr) return;
    for (size_t rows = 0; rows < kernel_.axes.size(); ++rows) {
      const auto axis = static_cast<Id>(rows);
      if (axis == vector->axis || (node.axis != axis && node.axis != vector->axis) || !has_single(node, axis)) continue;
      std::set<Id> seen, found;
      each_stage(node,
                 [&](const Stage& stage) { find_far_loads(*inside, axis, vector->axis, stage.value, &seen, &found); });
      for (const Id id : found) turn(inside, node.axis, axis, vector->axis, id);
    }
  }

  void turn(Context* inside, Id blocked, Id rows_axis, Id lanes_axis, Id id) {
    const Part &rows = inside->parts()[rows_axis], &lanes = inside->parts()[lanes_axis];
    const Expr& expr = kernel_.exprs[id];
    Turned turned;
    turned.rows = rows_axis;
    turned.rows_lo = rows.lo;
    turned.lanes_lo = lanes.lo;
    // Lines that lie a power of two apart would share few lines of the cache.
    turned.width = (lanes.most + kLanes - 1) / kLanes * kLanes + kLanes;
    if (rows.most == 0 || lanes.most == 0 || rows.most > kMostTile / (4 * turned.width) ||
        !inside->turned.emplace(id, turned).second) {
      return;
    }
    turned.lines = (rows.most + kLanes - 1) / kLanes;
    turns_ = true;
    memory_of(kernel_.buffers[expr.target].dtype);
    const std::string_view memory = c_storage(kernel_.buffers[expr.target].dtype);
    turned.tile = fmt::format("tile{}", next_++);
    turned.next = fmt::format("next{}", next_++);
    Context at = *inside;
    at.at[rows_axis] = rows.lo;
    at.at[lanes_axis] = lanes.lo;
    turned.step = size(at, stride_of(kernel_.arena, expr.index, kernel_.axes[lanes_axis].symbol).step);
    line("{0}* const {1} = ({0}*)((char*)local + {2});", memory, turned.tile, local_);
    local_ += rows.most * turned.width * 4;
    line("ep_turn(b{} + {}, {}, {}, {}, {} - {}, {} - {});", expr.target, size(at, expr.index), turned.step,
         turned.tile, turned.width, lanes.hi, lanes.lo, rows.hi, rows.lo);
    // The next block is the next one along the axis of this loop, or the first along it beside this one.
    const Id other = blocked == rows_axis ? lanes_axis : rows_axis;
    const Part &part = inside->parts()[blocked], &all = inside->levels[inside->levels.size() - 2][blocked];
    at.at[blocked] = part.hi;
    const std::string next = size(at, expr.index);
    at.at[blocked] = all.lo;
    at.at[other] = inside->parts()[other].hi;
    line("const {}* const {} = b{} + ({} < {} ? {} : {});", memory, turned.next, expr.target, part.hi, all.hi, next,
         size(at, expr.index));
    inside->turned[id] = turned;
  }

  // Whether a loop of step 1 over `axis` is inside of `node`.
  static bool has_single(const Node& node, Id axis) {
    return std::any_of(node.body.begin(), node.body.end(), [&](const Node& inner) {
      return inner.is_loop() && ((inner.axis == axis && inner.step == 1) || has_single(inner, axis));
    });
  }

  // Fetches a line of the next tile for each vector, as many as it has, in their order in memory.
  std::string load_turned(const Context& context, const Turned& turned, const std::string& type, int64_t copy) {
    const std::string row = fmt::format("({} - {})", context.at[turned.rows], turned.rows_lo);
    const std::string lane = fmt::format("({} - {})", context.at[context.vector_axis], turned.lanes_lo);
    if (context.part.empty()) {
      const std::string number = fresh();
      line("const int64_t {} = {} * {} + {} / EP_LANES + {};", number, row, turned.width / kLanes - 1, lane, copy);
      line("__builtin_prefetch({0} + {1} / {2} * {3} + {1} % {2} * EP_LANES, 0, 2);", turned.next, number, turned.lines,
           turned.step);
    }
    return fmt::format("ep_load_{}({} + {} * {} + {} + {})", type, turned.tile, row, turned.width, lane, kLanes * copy);
  }

  static const Node* vector_in(const Node& node) {
    for (const Node& inner : node.body) {
      if (inner.is_loop() && inner.kind == LoopKind::vector) return &inner;
      const Node* found = inner.is_loop() ? vector_in(inner) : nullptr;
      if (found != nullptr) return found;
    }
    return nullptr;
  }
  template <class Visit>
  void each_stage(const Node& node, const Visit& visit) const {
    for (const Node& inner : node.body) {
      if (inner.is_loop()) each_stage(inner, visit);
      if (!inner.is_loop() && inner.stage != kNone) visit(kernel_.stages[inner.stage]);
    }
  }

  void find_far_loads(const Context& context, Id rows, Id lanes, Id id, std::set<Id>* seen, std::set<Id>* found) {
    if (!seen->insert(id).second) return;
    const Expr& expr = kernel_.exprs[id];
    for (size_t i = 0; i < arg_count(expr); ++i) find_far_loads(context, rows, lanes, expr.args[i], seen, found);
    if (expr.kind == ExprKind::stage && kernel_.stages[expr.target].storage == Storage::inlined) {
      find_far_loads(context, rows, lanes, kernel_.stages[expr.target].value, seen, found);
    }
    if (expr.kind != ExprKind::load || expr.args[0] != kNone) return;
    if (dtype_size(kernel_.buffers[expr.target].dtype) != 4) return;
    const Stride across = stride_of(kernel_.arena, expr.index, kernel_.axes[lanes].symbol);
    const Stride along = stride_of(kernel_.arena, expr.index, kernel_.axes[rows].symbol);
    const bool is_near = is_number(across.step, 0) || is_number(across.step, 1);
    if (!across.linear || is_near || !along.linear || !is_number(along.step, 1)) return;
    // Every other axis has its position already.
    const std::set<uint32_t> symbols = symbols_of(kernel_.arena, expr.index);
    for (size_t axis = 0; axis < kernel_.axes.size(); ++axis) {
      const bool is_open = axis != rows && axis != lanes && context.at[axis].empty();
      if (is_open && symbols.contains(kernel_.axes[axis].symbol.index())) return;
    }
    found->insert(id);
  }

  void vector_loop(const Context& context, const Node& node, size_t depth) {
    const Part part = context.parts()[node.axis];
    const std::string at = fmt::format("i{}", next_++);
    Context inside = context;
    inside.at[node.axis] = at;
    inside.vector_axis = node.axis;
    if (inside.block != nullptr && inside.block->axis != node.axis) inside.block = nullptr;
    // Loops that only add up wait for memory themselves.
    inside.prefetches = std::any_of(node.body.begin(), node.body.end(), [&](const Node& step) {
      return !step.is_loop() && kernel_.stages[step.stage].kind != StageKind::reduce;
    });
    inside.levels.push_back(context.parts());
    inside.levels.back()[node.axis] = {at, ""};
    // What is known of the length: where the loop runs over the whole axis, that of the axis.
    const bool whole = part.lo == "0";
    const SymDim extent = kernel_.axes[node.axis].extent;
    const int64_t length = whole && extent.is_number() ? extent.number() : -1;
    const int64_t divisor = whole ? (length == 0 ? kLanes : kernel_.arena.divisor(extent)) : 1;
    const int64_t block = kLanes * node.unroll;
    line("int64_t {} = {};", at, part.lo);
    if (node.unroll > 1 && (length < 0 || length >= block)) {
      line("for (; {} + {} <= {}; {} += {}) {{", at, block, part.hi, at, block);
      inside.copies = node.unroll;
      block_of(inside, node, depth);
    }
    inside.copies = 1;
    const bool rest = length >= 0 ? length % block >= kLanes || node.unroll == 1 : divisor % block != 0;
    if ((rest || node.unroll == 1) && (length < 0 || length >= kLanes)) {
      line("for (; {} + EP_LANES <= {}; {} += EP_LANES) {{", at, part.hi, at);
      block_of(inside, node, depth);
    }
    if (divisor % kLanes == 0 && divisor != 0) return;
    line("if ({} < {}) {{", at, part.hi);
    inside.part = fmt::format("n{}", next_++);
    line("  const int64_t {} = {} - {};", inside.part, part.hi, at);
    block_of(inside, node, depth);
  }

  void block_of(const Context& inside, const Node& node, size_t depth) {
    ++indent_;
    statements(inside, node.body, depth + 1);
    --indent_;
    line("}}");
  }

  void body(const std::string& entry) {
    const std::string head =
        fmt::format("void {}(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local{})",
                    entry, faults() ? ", EP_FAULT_PARAMETER" : "");
    line("{};", head);
    line("{} {{", head);
    ++indent_;
    for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
      line("const int64_t p{} = ((const int64_t*)parameters)[{}];", i, i);
    }
    if (kernel_.parameters.empty()) line("(void)parameters;");
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const char* access = kernel_.buffers[i].output ? "" : "const ";
      line("{}{}* const b{} = ({}{}*)buffers[{}];", access, c_storage(kernel_.buffers[i].dtype), i, access,
           c_storage(kernel_.buffers[i].dtype), i);
    }
    line("(void)local;");
    std::string far = "0";
    const Context none;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      if (!kernel_.buffers[i].output) continue;
      line("const int far{} = ({}) * {} > {};", i, size(none, kernel_.buffers[i].elements),
           dtype_size(kernel_.buffers[i].dtype), kFarBytes);
      far += fmt::format(" | far{}", i);
    }
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!rows_[i]) continue;
      const DType dtype = kernel_.stages[i].dtype == DType::boolean ? DType::i32 : row_dtype(kernel_.stages[i].dtype);
      line("{}* const row{} = ({}*)((char*)local + {});", c_storage(dtype), i, c_storage(dtype), rows_[i]->offset);
    }
    Context context;
    context.at.resize(kernel_.axes.size());
    context.levels.emplace_back();
    for (const Axis& axis : kernel_.axes) {
      context.levels.back().push_back({"0", size(context, axis.extent), most(axis.extent).value_or(0)});
    }
    statements(context, kernel_.body, 0);
    line("if ({}) {{ EP_FENCE }}", far);
    --indent_;
    line("}}");
  }

  Kernel kernel_;  // a copy, since strides are made in its arena
  Places places_;
  std::vector<std::optional<Row>> rows_;
  int64_t local_ = 0;
  PreludeUse uses_;
  std::map<std::string, std::string> functions_;
  std::map<Id, int64_t> held_copies_;
  std::vector<bool> guarded_;
  bool turns_ = false;
  std::string body_;
  size_t indent_ = 0;
  size_t next_ = 0;
};

}  // namespace

Result<KernelText> emit_c(const Kernel& kernel) {
  TENON_RETURN_IF_ERROR(verify(kernel));
  if (!kernel.scheduled()) {
    return Status(Code::invalid_argument, fmt::format("Kernel {} has no loops; schedule it first.", kernel.name));
  }
  try {
    return Emitter(kernel).emit();
  } catch (const Error& error) {
    return error.status();
  }
}

}  // namespace tenon::compiler
