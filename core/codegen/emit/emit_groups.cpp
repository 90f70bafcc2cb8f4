// The printer of the dialects of work-items. A number is a scalar. A stage is computed by the work-items that the loops
// assign its positions to. This file has more than 400 lines because it is one walk over one tree.
#include <algorithm>
#include <optional>

#include "core/codegen/emit/dialect.h"
#include "core/codegen/emit/emit.h"
#include "core/codegen/emit/packs.h"
#include "core/codegen/emit/rows.h"
#include "core/codegen/emit/size_text.h"
#include "core/codegen/loop/places.h"
#include "primitives/dtype/convert.h"
#include "primitives/status/error.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

constexpr int64_t kMostShared = int64_t{1} << 20;

// The range of an axis that a loop left, as texts.
struct Part {
  std::string lo, hi;
};

// The printer's position in the loops.
struct Context {
  std::vector<std::string> at;      // by axis: the position
  std::vector<std::string> slot;    // by axis: the position, but distinct for work-items without one
  std::vector<Part> parts;          // by axis: the range that the loops left
  std::vector<std::string> guards;  // conditions of a store
};

// The placement of a stage in shared memory.
struct Row {
  std::vector<std::pair<Id, int64_t>> steps;
  int64_t slots = 1;
};

class GroupEmitter {
 public:
  GroupEmitter(const Kernel& kernel, const DialectWords& words, uint64_t features, IndexBits bits)
      : kernel_(kernel),
        words_(words),
        features_(features),
        narrow_index_(bits == IndexBits::narrow),
        index_(narrow_index_ ? "int" : "int64_t"),
        places_(kernel_),
        rows_(kernel_.stages.size()),
        group_(group_of(kernel_)) {}

  KernelText emit() {
    const symbolic::ArenaScope scope(kernel_.arena);
    KernelText result;
    result.dialect = words_.dialect;
    result.entry = "k_" + kernel_.name;
    body();
    for (const DType dtype : casts_from_) name_of(dtype);
    result.text = prelude() + parameters_text() + functions_text() + entry(result.entry);
    result.buffer_count = static_cast<uint32_t>(kernel_.buffers.size());
    result.parameter_bytes = static_cast<uint32_t>(8 * kernel_.parameters.size());
    result.shared_bytes = static_cast<uint32_t>(shared_);
    result.flags = faults_ ? EP_ENTRY_FLAG_FAULTS : 0;
    result.group = {static_cast<uint32_t>(group_[0]), static_cast<uint32_t>(group_[1]), 1};
    return result;
  }

 private:
  using Memo = std::map<Id, std::string>;

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    body_.append(2 * indent_, ' ');
    body_ += fmt::format(format, std::forward<Args>(args)...);
    body_ += '\n';
  }

  // --- The head of the text

  void want(uint64_t feature, const char* name, std::string_view what) const {
    if ((features_ & feature) != 0) return;
    throw Error(Code::unsupported,
                fmt::format("{} needs {}, which the device does not have in this dialect.", what, name));
  }

  std::string name_of(DType dtype) {
    dtype = computed(dtype);
    if (dtype == DType::f64) {
      want(EP_DIALECT_FEATURE_F64, "EP_DIALECT_FEATURE_F64", "A number of f64");
      if (words_.dialect == EP_DIALECT_GLSL) throw Error(Code::unsupported, "The prelude in GLSL has no f64.");
    }
    if (dtype_size(dtype) == 8 && !is_floating(dtype)) {
      want(EP_DIALECT_FEATURE_I64, "EP_DIALECT_FEATURE_I64", "A number of 64 bits");
    }
    numbers_.insert(dtype);
    return std::string(dtype_name(dtype));
  }
  std::string_view type(DType dtype) { return type_of(words_, dtype); }

  void remember_memory(DType dtype) {
    if (dtype == DType::f16 || dtype == DType::bf16) narrow_ = true;
    memory_.insert(dtype);
  }
  std::string memory_of(DType dtype, bool stored) {
    const char* what = stored ? "A store" : "A load";
    const bool checked = stored || words_.dialect == EP_DIALECT_GLSL;
    if (checked && dtype_size(dtype) == 1) {
      want(EP_DIALECT_FEATURE_STORE_8, "EP_DIALECT_FEATURE_STORE_8", fmt::format("{} of {}", what, dtype_name(dtype)));
    }
    if (checked && dtype_size(dtype) == 2) {
      want(EP_DIALECT_FEATURE_STORE_16, "EP_DIALECT_FEATURE_STORE_16",
           fmt::format("{} of {}", what, dtype_name(dtype)));
    }
    remember_memory(dtype);
    return std::string(dtype_name(dtype));
  }

  std::string prelude() const {
    std::string text = head_text(words_, index_);
    for (const DType dtype : numbers_) text += numbers_text(words_, dtype);
    if (narrow_) text += narrow_text(words_);
    for (const DType dtype : memory_) text += memory_text(words_, dtype, index_);
    for (const auto& [dtype, count] : packs_) text += pack_text(words_, dtype, count, index_);
    for (const auto& cast : casts_) text += cast_text(words_, cast.first, cast.second);
    return text;
  }

  std::string parameters_text() const {
    std::string members;
    for (size_t i = 0; i < kernel_.parameters.size(); ++i) members += fmt::format(" int64_t p{};", i);
    std::string text;
    const bool is_c = words_.dialect == EP_DIALECT_OPENCL_C;
    if (!members.empty() && is_c) text = fmt::format("typedef struct {{{} }} Parameters;\n", members);
    if (!members.empty() && !is_c) text = fmt::format("struct Parameters {{{} }};\n", members);
    return text + (words_.dialect == EP_DIALECT_GLSL ? "EP_PARAMETERS\n" : "");
  }

  std::string functions_text() const {
    std::string text;
    for (const auto& function : functions_) text += function.second;
    return text;
  }

  std::string entry(const std::string& name) const {
    std::string head;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const Buffer& buffer = kernel_.buffers[i];
      head += fmt::format("{}{}{}{}* b{}", i == 0 ? "" : ", ", words_.dialect == EP_DIALECT_OPENCL_C ? "__global " : "",
                          buffer.output ? "" : "const ", storage_of(words_, buffer.dtype), i);
    }
    if (!kernel_.parameters.empty()) head += fmt::format("{}Parameters p", head.empty() ? "" : ", ");
    if (faults_) head += fmt::format("{}EP_FAULT_PARAMETER", head.empty() ? "" : ", ");
    switch (words_.dialect) {
      case EP_DIALECT_OPENCL_C: return fmt::format("__kernel void {}({}) {{\n{}{}}}\n", name, head, arrays_, body_);
      case EP_DIALECT_CUDA_C:
        return fmt::format("extern \"C\" __global__ void {}({}) {{\n{}{}}}\n", name, head, arrays_, body_);
      default: break;
    }
    std::string buffers;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      buffers += fmt::format("  const uint64_t b{0} = ep_buffers[{0}];\n", i);
    }
    return fmt::format("{}void {}() {{\n{}{}}}\n", arrays_, name, buffers, body_);
  }

  // Declares an array that the group shares and returns its name.
  std::string array(const std::string& name, DType dtype, int64_t count) {
    const int64_t bytes = count * (dtype_size(computed(dtype)) == 8 ? 8 : 4);
    want(EP_DIALECT_FEATURE_BARRIERS, "EP_DIALECT_FEATURE_BARRIERS", "Shared memory");
    shared_ += bytes;
    if (shared_ > kMostShared) throw Error(Code::unsupported, "The kernel needs more than 1 MiB of shared memory.");
    arrays_ += fmt::format("{}{}{} {}[{}];\n", words_.dialect == EP_DIALECT_GLSL ? "" : "  ", words_.shared,
                           type(dtype), name, count);
    return name;
  }

  // --- Sizes

  std::string size(const Context& context, SymDim size) const {
    std::string text = size_text(kernel_.arena, size, [&](uint32_t symbol) -> std::string {
      for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
        if (kernel_.parameters[i].symbol.index() == symbol) return fmt::format("p{}", i);
      }
      for (size_t i = 0; i < kernel_.axes.size(); ++i) {
        if (kernel_.axes[i].symbol.index() == symbol) return context.at[i];
      }
      throw Error(Code::internal, "A size contains a symbol that is neither a parameter nor an axis.");
    });
    constexpr std::string_view macro = "INT64_C(";
    for (size_t at = text.find(macro); at != std::string::npos; at = text.find(macro)) {
      const size_t end = text.find(')', at);
      text.replace(end, 1, words_.long_suffix);
      text.erase(at, macro.size());
    }
    return text;
  }
  std::string as(std::string_view to, std::string_view expression) const {
    return words_.dialect == EP_DIALECT_GLSL ? fmt::format("{}({})", to, expression)
                                             : fmt::format("(({})({}))", to, expression);
  }
  // A word of the dialect for one dim, such as the number of a work-item.
  static std::string along(std::string_view word, int dim) {
    return fmt::format(fmt::runtime(word), dim, dim == 0 ? "x" : "y");
  }

  // --- Shared memory

  const Row& row(Id id) {
    if (rows_[id]) return *rows_[id];
    const Stage& stage = kernel_.stages[id];
    Row row;
    for (size_t i = stage.axes.size(); i-- > 0;) {
      const Id axis = stage.axes[i];
      // Work-items without a position have slots of their own too.
      const bool is_items = axis == kernel_.body[0].axis;
      const int64_t positions = is_items ? kernel_.body[0].step : kernel_.arena.range(kernel_.axes[axis].extent).hi;
      row.steps.emplace_back(axis, row.slots);
      if (positions > kMostShared || __builtin_mul_overflow(row.slots, std::max<int64_t>(positions, 1), &row.slots) ||
          row.slots > kMostShared) {
        throw Error(Code::unsupported,
                    fmt::format("Stage {} of kernel {} may need more than {} numbers of shared memory.", stage.name,
                                kernel_.name, kMostShared));
      }
    }
    array(fmt::format("row{}", id), stage.dtype, row.slots);
    rows_[id] = std::move(row);
    return *rows_[id];
  }

  std::string slot(const Context& context, Id id) {
    std::string index;
    for (const auto& [axis, step] : row(id).steps) {
      const std::string position =
          axis == kernel_.body[0].axis ? fmt::format("({} - first)", context.slot[axis]) : context.slot[axis];
      index += fmt::format("{}{}{}", index.empty() ? "" : " + ", position, step == 1 ? "" : fmt::format(" * {}", step));
    }
    return fmt::format("row{}[{}]", id, as("int", index.empty() ? "0" : index));
  }

  // The conditions of a store or a write to shared memory, for a stage whose result is inside of `count` loops.
  std::string guard(const Context& context, Id id, size_t count, bool stores) const {
    std::vector<std::string> guards;
    if (stores) guards = context.guards;
    const Place& place = *places_.of(id).front();
    for (int64_t dim = 0; dim < 2; ++dim) {
      const bool dealt =
          std::any_of(place.loops.begin(), place.loops.begin() + static_cast<ptrdiff_t>(count),
                      [&](const Node* loop) { return loop->kind == LoopKind::work_items && loop->dim == dim; });
      if (!dealt && group_[static_cast<size_t>(dim)] > 1) guards.push_back(fmt::format("w{} == 0", dim));
    }
    std::string text;
    for (const std::string& each : guards) text += (text.empty() ? "" : " && ") + each;
    return text.empty() ? "" : fmt::format("if ({}) ", text);
  }

  void share(const Context& context, Id id, const std::string& value) {
    const std::string where = slot(context, id);
    line("{}{} = {};", guard(context, id, places_.of(id).front()->result, false), where, value);
  }

  // --- Expressions

  std::string constant(const Expr& expr) {
    const DType dtype = computed(expr.dtype);
    name_of(dtype);
    if (!is_floating(dtype)) return integer_text(words_, dtype, expr.integer);
    return number_text(words_, dtype, rounded(expr));
  }
  // A constant of f16 or bf16, rounded to its dtype.
  static double rounded(const Expr& expr) {
    if (expr.dtype == DType::f64 || expr.dtype == DType::f32) return expr.a;
    return decode_float(expr.dtype, encode_float(expr.dtype, expr.a));
  }

  std::string function(const std::string& name, std::string_view result, const std::string& parameters,
                       std::string_view expression, DType dtype) {
    name_of(dtype);
    if (!functions_.contains(name)) {
      functions_[name] = fmt::format("{}{} {}({}) {{ {} }}\n", words_.function, result, name, parameters,
                                     body_text(words_, expression, dtype));
    }
    return name;
  }

  std::string op(const Expr& expr, const std::vector<std::string>& args) {
    const DType dtype = computed(kernel_.exprs[expr.args[args.size() - 1]].dtype);
    const std::string name = fmt::format("op{}_{}_{}", args.size(), op_name(expr), name_of(dtype));
    const std::string_view number = type(dtype);
    const std::string_view truth = type(DType::boolean);
    if (expr.kind == ExprKind::ternary && table::ternary_row(expr.op)->domain == table::Domain::COND) {
      std::string text(ternary_text(expr.op));
      const std::string call = "ep_truth(x)";
      text.replace(text.find(call), call.size(), fmt::format("x != {}", integer_text(words_, DType::boolean, 0)));
      function(name, number, fmt::format("{} x, {} y, {} z", truth, number, number), text, dtype);
      return fmt::format("{}({}, {}, {})", name, args[0], args[1], args[2]);
    }
    std::string text(args.size() == 1   ? unary_text(expr.op)
                     : args.size() == 2 ? binary_text(expr.op)
                                        : ternary_text(expr.op));
    const bool to_bool = expr.dtype == DType::boolean && dtype != DType::boolean;
    if (expr.dtype == DType::boolean) text = as(truth, text);
    std::string parameters, arguments;
    const auto add = [&](char letter, const std::string& argument) {
      parameters += fmt::format("{}{} {}", parameters.empty() ? "" : ", ", number, letter);
      arguments += fmt::format("{}{}", arguments.empty() ? "" : ", ", argument);
    };
    for (size_t i = 0; i < args.size(); ++i) add("xyz"[i], args[i]);
    const int32_t extra = args.size() == 1 ? table::unary_row(expr.op)->parameters : 0;
    for (int32_t i = 0; i < extra; ++i) {
      const double value = i == 0 ? expr.a : expr.b;
      add("ab"[i], is_floating(dtype) ? number_text(words_, dtype, value)
                                      : integer_text(words_, dtype, static_cast<int64_t>(value)));
    }
    function(name, to_bool ? truth : number, parameters, text, dtype);
    return fmt::format("{}({})", name, arguments);
  }

  std::string load(const Context& context, const Expr& expr, Memo* memo) {
    const DType dtype = kernel_.buffers[expr.target].dtype;
    const std::string get =
        fmt::format("ep_get_{}(b{}, ({}))", memory_of(dtype, false), expr.target, size(context, expr.index));
    if (dtype_size(dtype) == 8) name_of(dtype);
    if (expr.args[0] == kNone) return get;
    const std::string where = this->expr(context, expr.args[0], memo);
    const std::string name = fresh();
    line("{} {} = {};", type(dtype), name, as(type(dtype), "0"));
    line("if ({} != {}) {} = {};", where, integer_text(words_, DType::boolean, 0), name, get);
    return name;
  }

  std::string read(const Context& context, Id id, Memo* memo) {
    const Stage& stage = kernel_.stages[id];
    if (stage.storage == Storage::inlined) return expr(context, stage.value, memo);
    if (stage.storage == Storage::registers) return fmt::format("s{}", id);
    const std::string value = slot(context, id);
    return stage.kind == StageKind::reduce ? finished(context, stage, value) : value;
  }

  // An index as an i64.
  std::string index_number(const std::string& text) {
    const bool is_int = narrow_index_ && words_.dialect == EP_DIALECT_GLSL;
    return is_int ? fmt::format("ep_wide({})", text) : as(type(DType::i64), text);
  }

  std::string fresh() { return fmt::format("t{}", next_++); }

  std::string expr(const Context& context, Id id, Memo* memo) {
    const auto found = memo->find(id);
    if (found != memo->end()) return found->second;
    const Expr& expr = kernel_.exprs[id];
    std::string text;
    switch (expr.kind) {
      case ExprKind::constant: text = constant(expr); break;
      case ExprKind::index: text = index_number(size(context, expr.index)); break;
      case ExprKind::load: text = taken_.contains(id) ? lane(taken_[id]) : load(context, expr, memo); break;
      case ExprKind::stage: text = read(context, expr.target, memo); break;
      case ExprKind::position: return memo->emplace(id, position(context, expr, memo)).first->second;
      case ExprKind::cast: text = cast(expr, this->expr(context, expr.args[0], memo)); break;
      default: {
        std::vector<std::string> args;
        for (size_t i = 0; i < arg_count(expr); ++i) args.push_back(this->expr(context, expr.args[i], memo));
        text = op(expr, args);
      }
    }
    const std::string name = fresh();
    line("const {} {} = {};", type(expr.dtype), name, text);
    memo->emplace(id, name);
    return name;
  }

  // The variable that holds a position. Its check is written inline, because ep_raise works only in the entry.
  std::string position(const Context& context, const Expr& expr, Memo* memo) {
    const std::string x = this->expr(context, expr.args[0], memo), n = this->expr(context, expr.args[1], memo);
    const std::string name = fresh();
    faults_ = true;
    line("int64_t {0} = {1} < 0 ? {1} + {2} : {1};", name, x, n);
    line("if ({0} < 0 || {0} >= {1}) {{", name, n);
    line("  ep_raise({}, {}, {}, {});", EP_FAULT_INDEX_OUT_OF_RANGE, expr.target, x, n);
    line("  {} = 0;", name);
    line("}}");
    return name;
  }

  std::string cast(const Expr& expr, const std::string& value) {
    // f16 and bf16 are held as f32: a cast to them rounds, a cast from them is a cast from f32.
    const DType source = computed(kernel_.exprs[expr.args[0]].dtype);
    if (source == expr.dtype) return value;
    name_of(expr.dtype);
    casts_from_.insert(source);
    if (expr.dtype != computed(expr.dtype)) narrow_ = true;
    casts_.emplace(source, expr.dtype);
    return fmt::format("ep_cast_{}_{}({})", dtype_name(source), dtype_name(expr.dtype), value);
  }

  // --- Reductions

  std::string reduce_function(const Stage& stage, const char* what, std::string_view text, const char* letters) {
    std::string parameters;
    for (const char* letter = letters; *letter != 0; ++letter) {
      parameters += fmt::format("{}{} {}", parameters.empty() ? "" : ", ", type(stage.dtype), *letter);
    }
    return function(fmt::format("{}_{}_{}", what, table::reduce_row(stage.op)->name, name_of(stage.dtype)),
                    type(stage.dtype), parameters, text, stage.dtype);
  }
  std::string combine(const Stage& stage, const std::string& x, const std::string& y) {
    return fmt::format("{}({}, {})", reduce_function(stage, "combine", reduce_text(stage.op).combine, "xy"), x, y);
  }
  std::string finished(const Context& context, const Stage& stage, const std::string& value) {
    const std::string_view text = reduce_text(stage.op).finish;
    if (text == "x") return value;
    SymDim count = 1;
    for (const Id axis : stage.reduce_axes) count *= kernel_.axes[axis].extent;
    return fmt::format("{}({}, {})", reduce_function(stage, "finish", text, "xn"), value,
                       as(type(stage.dtype), size(context, count)));
  }

  void begin_reduction(Id id) {
    const Stage& stage = kernel_.stages[id];
    line("{} a{} = {}();", type(stage.dtype), id, reduce_function(stage, "initial", reduce_text(stage.op).init, ""));
  }

  void accumulate(Id id, const std::string& value) {
    const Stage& stage = kernel_.stages[id];
    const std::string_view map = reduce_text(stage.op).map;
    const std::string mapped =
        map == "x" ? value : fmt::format("{}({})", reduce_function(stage, "map", map, "x"), value);
    line("a{} = {};", id, combine(stage, fmt::format("a{}", id), mapped));
  }

  void end_reduction(const Context& context, Id id) {
    const Stage& stage = kernel_.stages[id];
    const Place& place = *places_.of(id).front();
    for (size_t i = place.result; i < place.loops.size(); ++i) {
      if (place.loops[i]->kind == LoopKind::work_items) add_across(stage, id, place.loops[i]->dim);
    }
    const std::string sum = fmt::format("a{}", id);
    if (stage.storage == Storage::shared) return share(context, id, sum);
    line("const {} s{} = {};", type(stage.dtype), id, finished(context, stage, sum));
  }

  // Adds up the numbers of the work-items along `dim`, pairwise. At the end each of them has the sum.
  void add_across(const Stage& stage, Id id, int64_t dim) {
    const int64_t width = group_[static_cast<size_t>(dim)];
    if (width == 1) return;
    const std::string tree = fmt::format("tree_{}", name_of(stage.dtype));
    if (trees_.insert(computed(stage.dtype)).second) array(tree, stage.dtype, group_[0] * group_[1]);
    const int64_t apart = dim == 0 ? 1 : group_[0];
    const std::string own = group_[1] > 1 ? fmt::format("w0 + w1 * {}", group_[0]) : "w0";
    line("{}", words_.barrier);
    line("{}[{}] = a{};", tree, own, id);
    line("{}", words_.barrier);
    for (int64_t half = width / 2; half > 0; half /= 2) {
      line("if (w{} < {}) {}[{}] = {};", dim, half, tree, own,
           combine(stage, fmt::format("{}[{}]", tree, own), fmt::format("{}[{} + {}]", tree, own, half * apart)));
      line("{}", words_.barrier);
    }
    line("a{} = {}[{} - w{} * {}];", id, tree, own, dim, apart);
  }

  // --- Loops

  void step(const Context& context, Id id, Memo* memo) {
    const Stage& stage = kernel_.stages[id];
    const std::string value = expr(context, stage.value, memo);
    switch (stage.kind) {
      case StageKind::reduce: return accumulate(id, value);
      case StageKind::store: {
        if (laid_.contains(id)) return line("{} = {};", lane(laid_[id]), value);
        const std::string memory = memory_of(stage.dtype, true);
        line("{}{{ ep_put_{}(b{}, ({}), {}); }}", guard(context, id, places_.of(id).front()->loops.size(), true),
             memory, stage.buffer, size(context, stage.index), value);
        return;
      }
      case StageKind::value:
        if (stage.storage == Storage::shared) return share(context, id, value);
        line("const {} s{} = {};", type(stage.dtype), id, value);
    }
  }

  void statements(const Context& context, const std::vector<Node>& nodes, size_t depth) {
    Memo memo;
    for (const Node& node : nodes) {
      if (node.is_barrier) {
        line("{}", words_.barrier);
      } else if (!node.is_loop()) {
        step(context, node.stage, &memo);
      } else {
        const std::vector<Id> reductions = places_.starting(node, depth);
        for (const Id id : reductions) begin_reduction(id);
        loop(context, node, depth);
        for (const Id id : reductions) end_reduction(context, id);
      }
    }
  }

  std::string plus_work_item(const std::string& lo, const Node& node) const {
    if (node.width == 1) return lo;
    return node.step == 1 ? fmt::format("{} + w{}", lo, node.dim)
                          : fmt::format("{} + w{} * {}", lo, node.dim, node.step);
  }

  void loop(const Context& context, const Node& node, size_t depth) {
    const Part part = context.parts[node.axis];
    const std::string at = fmt::format("i{}", next_++);
    Context inside = context;
    inside.at[node.axis] = inside.slot[node.axis] = at;
    inside.parts[node.axis] = {at, fmt::format("{} + 1", at)};
    around_.push_back(&node);
    if (node.kind == LoopKind::work_items && places_.runs_together(node, depth)) {
      // A work-item without a position computes the first one again, because the whole group must reach the barriers.
      const std::string own = fmt::format("own{}", next_++);
      line("{{");
      ++indent_;
      line("const {} {} = {};", index_, own, plus_work_item(part.lo, node));
      line("const bool has_{} = {} < {};", own, own, part.hi);
      line("const {} {} = has_{} ? {} : {};", index_, at, own, own, part.lo);
      inside.slot[node.axis] = own;
      inside.guards.push_back("has_" + own);
      statements(inside, node.body, depth + 1);
    } else {
      const bool dealt = node.kind == LoopKind::work_items;
      line("for ({4} {0} = {1}; {0} < {2}; {0} += {3}) {{", at, dealt ? plus_work_item(part.lo, node) : part.lo,
           part.hi, node.step * node.width, index_);
      ++indent_;
      if (dealt && takes_packs(node)) {
        pack(inside, node.body.front(), node.step, depth + 1);
      } else {
        if (node.step != 1) {
          inside.parts[node.axis].hi = fmt::format("h{}", next_++);
          line("const {} {} = ep_least({} + {}, {});", index_, inside.parts[node.axis].hi, at, node.step, part.hi);
        }
        statements(inside, node.body, depth + 1);
      }
    }
    around_.pop_back();
    --indent_;
    line("}}");
  }

  // --- Packs

  // True if `loop`, of work-items, takes steps of whole packs, and some memory is contiguous along them.
  bool takes_packs(const Node& loop) {
    if (loop.step == 1 || loop.body.size() != 1 || loop.body.front().axis != loop.axis) return false;
    const auto whole = [&](int64_t number) { return number % loop.step == 0; };
    const bool all = std::all_of(around_.begin(), around_.end(),
                                 [&](const Node* outer) { return outer->axis != loop.axis || whole(outer->step); });
    if (!all || !whole(kernel_.arena.divisor(kernel_.axes[loop.axis].extent))) return false;
    const Node& lanes = loop.body.front();
    return std::any_of(lanes.body.begin(), lanes.body.end(), [&](const Node& node) {
      const Stage& stage = kernel_.stages[node.stage];
      return is_pack(stage, loop.axis, loop.step) || !loads_of(stage.value, loop.axis, loop.step).empty();
    });
  }
  bool is_pack(const Stage& stage, Id axis, int64_t count) {
    return stage.kind == StageKind::store && is_pack(stage.index, axis, count);
  }
  // True if the elements from `index` on along `axis` are adjacent and start at a multiple of `count`.
  bool is_pack(SymDim index, Id axis, int64_t count) {
    const Stride stride = stride_of(kernel_.arena, index, kernel_.at(axis));
    if (!stride.linear || !identical(stride.step, 1)) return false;
    const SymDim first = substitute(kernel_.arena, index, {{kernel_.at(axis).index(), 0}});
    return kernel_.arena.divisor(first) % count == 0;
  }
  // The loads in an expression that are packs, including those in inlined stages.
  std::vector<Id> loads_of(Id value, Id axis, int64_t count) {
    std::vector<Id> found;
    std::set<Id> seen;
    add_loads(value, axis, count, &seen, &found);
    return found;
  }
  void add_loads(Id id, Id axis, int64_t count, std::set<Id>* seen, std::vector<Id>* found) {
    if (!seen->insert(id).second) return;
    const Expr expr = kernel_.exprs[id];
    for (size_t i = 0; i < arg_count(expr); ++i) add_loads(expr.args[i], axis, count, seen, found);
    if (expr.kind == ExprKind::stage && kernel_.stages[expr.target].storage == Storage::inlined) {
      add_loads(kernel_.stages[expr.target].value, axis, count, seen, found);
    }
    if (expr.kind == ExprKind::load && expr.args[0] == kNone && is_pack(expr.index, axis, count)) found->push_back(id);
  }

  std::string lane(const std::string& array) const { return fmt::format("{}[{}]", array, lane_); }
  std::string memory_of_packs(DType dtype, bool stored, int64_t count) {
    const std::string name = memory_of(dtype, stored);
    if (dtype_size(dtype) == 8) name_of(dtype);
    packs_.emplace(dtype, count);
    return fmt::format("{}_{}", count, name);
  }

  // Computes `count` positions of `lanes`: all loads first, then each position, then all stores.
  void pack(const Context& context, const Node& lanes, int64_t count, size_t depth) {
    std::map<std::pair<Id, uint64_t>, std::string> arrays;
    for (const Node& node : lanes.body) {
      for (const Id id : loads_of(kernel_.stages[node.stage].value, lanes.axis, count)) {
        const Expr& load = kernel_.exprs[id];
        std::string& array = arrays[{load.target, load.index.word()}];
        if (array.empty()) {
          array = fresh();
          const DType dtype = kernel_.buffers[load.target].dtype;
          line("{} {}[{}];", type(dtype), array, count);
          line("ep_get{}({}, b{}, ({}));", memory_of_packs(dtype, false, count), array, load.target,
               size(context, load.index));
        }
        taken_[id] = array;
      }
      const Stage& stage = kernel_.stages[node.stage];
      if (!is_pack(stage, lanes.axis, count)) continue;
      laid_[node.stage] = fresh();
      line("{} {}[{}];", type(stage.dtype), laid_[node.stage], count);
    }
    lane_ = fmt::format("l{}", next_++);
    line("{}", words_.unroll);
    line("for (int {0} = 0; {0} < {1}; ++{0}) {{", lane_, count);
    ++indent_;
    Context inside = context;
    const std::string at = fmt::format("i{}", next_++);
    line("const {} {} = {} + {};", index_, at, context.at[lanes.axis], lane_);
    inside.at[lanes.axis] = inside.slot[lanes.axis] = at;
    inside.parts[lanes.axis] = {at, fmt::format("{} + 1", at)};
    statements(inside, lanes.body, depth + 1);
    --indent_;
    line("}}");
    for (const auto& [id, array] : laid_) {
      const Stage& stage = kernel_.stages[id];
      line("{}{{ ep_put{}(b{}, ({}), {}); }}", guard(context, id, places_.of(id).front()->loops.size(), true),
           memory_of_packs(stage.dtype, true, count), stage.buffer, size(context, stage.index), array);
    }
    taken_.clear();
    laid_.clear();
  }

  void body() {
    ++indent_;
    if (words_.dialect == EP_DIALECT_GLSL) {
      want(EP_DIALECT_FEATURE_I64, "EP_DIALECT_FEATURE_I64", "An index of 64 bits");
    }
    for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
      const std::string given = fmt::format("{}p{}", words_.parameters, i);
      line("const {} p{} = {};", index_, i, narrow_index_ ? as(index_, given) : given);
    }
    for (int dim = 0; dim < 2; ++dim) {
      if (group_[static_cast<size_t>(dim)] > 1)
        line("const int w{} = {};", dim, as("int", along(words_.work_item, dim)));
    }
    const Node& items = kernel_.body.front();
    Context context;
    context.at.resize(kernel_.axes.size());
    context.slot.resize(kernel_.axes.size());
    for (const Axis& axis : kernel_.axes) context.parts.push_back({"0", size(context, axis.extent)});
    const std::string extent = context.parts[items.axis].hi;
    const std::string number =
        fmt::format("({} + {} * {}) * {}", as("int64_t", along(words_.group, 0)), as("int64_t", along(words_.group, 1)),
                    as("int64_t", along(words_.groups, 0)), items.step);
    if (places_.runs_together(items, 0)) {
      // A group beyond the items computes the first item again and stores nothing, because OpenCL C compilers reject a
      // barrier after a return.
      line("const bool is_item = {} < {};", number, narrow_index_ ? as("int64_t", extent) : extent);
      line("const {} first = is_item ? {} : {};", index_, narrow_index_ ? as(index_, number) : number, as(index_, "0"));
      context.guards.emplace_back("is_item");
    } else if (narrow_index_) {
      line("const int64_t number = {};", number);
      line("if (number >= {}) return;", as("int64_t", extent));
      line("const int first = {};", as("int", "number"));
    } else {
      line("const int64_t first = {};", number);
      line("if (first >= {}) return;", extent);
    }
    around_ = {&items};
    context.at[items.axis] = context.slot[items.axis] = "first";
    context.parts[items.axis] = {"first", "first + 1"};
    if (items.step != 1) {
      line("const {} last = ep_least(first + {}, {});", index_, items.step, extent);
      context.parts[items.axis].hi = "last";
    }
    statements(context, items.body, 1);
    for (const Buffer& buffer : kernel_.buffers) remember_memory(buffer.dtype);
    --indent_;
  }

  Kernel kernel_;  // a copy, because sizes are added to its arena
  const DialectWords& words_;
  uint64_t features_;
  const bool narrow_index_;
  const std::string_view index_;  // the type of sizes and indices
  Places places_;
  std::vector<std::optional<Row>> rows_;
  std::array<int64_t, 2> group_;
  int64_t shared_ = 0;
  std::set<DType> numbers_, memory_, trees_, casts_from_;
  std::set<std::pair<DType, int64_t>> packs_;
  bool narrow_ = false;  // true if there are narrow floats
  bool faults_ = false;
  std::set<std::pair<DType, DType>> casts_;
  std::map<std::string, std::string> functions_;
  std::vector<const Node*> around_;  // the loops around the current position
  // In a loop over the positions of a pack: the arrays of loads and stores, and the name of the position.
  std::map<Id, std::string> taken_, laid_;
  std::string lane_;
  std::string arrays_;
  std::string body_;
  size_t indent_ = 0;
  size_t next_ = 0;
};

}  // namespace

Result<KernelText> emit_groups(const Kernel& kernel, int32_t dialect, uint64_t features, IndexBits bits) {
  TENON_RETURN_IF_ERROR(verify(kernel));
  if (!kernel.scheduled()) {
    return Status(Code::invalid_argument, fmt::format("Kernel {} has no loops; schedule it first.", kernel.name));
  }
  const DialectWords* words = words_of(dialect);
  if (words == nullptr) {
    return Status(Code::unsupported, fmt::format("Kernels of groups cannot be printed in dialect {}.", dialect));
  }
  for (const Stage& stage : kernel.stages) {
    if (stage.storage != Storage::row) continue;
    return Status(Code::unsupported,
                  fmt::format("Stage {} of kernel {} is in a row, which only kernels for a CPU can have.", stage.name,
                              kernel.name));
  }
  try {
    return GroupEmitter(kernel, *words, features, bits).emit();
  } catch (const Error& error) {
    return error.status();
  }
}

}  // namespace tenon::codegen
