// Prints sizes and expressions as C.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/codegen/emit/c_printer.h"
#include "core/codegen/emit/size_text.h"
#include "primitives/dtype/convert.h"
#include "primitives/table/table.h"

namespace tenon::codegen {
namespace {

constexpr int64_t kLinesAhead = 8;
constexpr int64_t kNearElements = 4096;  // elements of the next item that fit into the first cache

}  // namespace

std::string CPrinter::size(const Context& context, SymDim size, const std::string& lane) const {
  return size_text(kernel_.arena, size, [&](uint32_t symbol) -> std::string {
    for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
      if (kernel_.parameters[i].symbol.index() == symbol) return fmt::format("p{}", i);
    }
    for (size_t i = 0; i < kernel_.axes.size(); ++i) {
      if (kernel_.axes[i].symbol.index() != symbol) continue;
      if (i == context.vector_axis && !lane.empty()) return fmt::format("({} + {})", context.at[i], lane);
      return context.at[i];
    }
    throw Error(Code::internal, "A size contains a symbol that is neither a parameter nor an axis.");
  });
}

std::optional<int64_t> CPrinter::most(SymDim size) const {
  const symbolic::Range range = kernel_.arena.range(size);
  return range.hi >= SymDim::kMost ? std::nullopt : std::optional<int64_t>(range.hi);
}

Stride CPrinter::stride(const Context& context, SymDim index) {
  if (context.vector_axis == kNone) return {true, 0};
  return stride_of(kernel_.arena, index, kernel_.axes[context.vector_axis].symbol);
}

std::string CPrinter::floating(DType dtype, double number) const {
  if (std::isnan(number)) return "__builtin_nan(\"\")";
  if (std::isinf(number)) return number < 0 ? "-__builtin_inf()" : "__builtin_inf()";
  if (dtype == DType::f32) number = static_cast<float>(number);
  if (dtype != DType::f32 && dtype != DType::f64) number = decode_float(dtype, encode_float(dtype, number));
  if (std::isinf(number)) return floating(DType::f64, number);
  return fmt::format("{:a}{}", number, dtype == DType::f64 ? "" : "f");
}

std::string CPrinter::constant(const Expr& expr) {
  const std::string type = name_of(expr.dtype);
  if (is_floating(expr.dtype)) return fmt::format("ep_lit_{}({})", type, floating(expr.dtype, expr.a));
  if (expr.dtype == DType::u64) return fmt::format("ep_lit_u64({}ull)", static_cast<uint64_t>(expr.integer));
  if (expr.integer == INT64_MIN) return fmt::format("ep_lit_{}((-9223372036854775807ll - 1))", type);
  return fmt::format("ep_lit_{}({}ll)", type, expr.integer);
}

std::string CPrinter::function(const std::string& name, std::string_view result, std::string_view parameters,
                               std::string_view expression, DType dtype) {
  if (!functions_.contains(name)) {
    functions_[name] = fmt::format("EP_INLINE {} {}({}) {{ return {}; }}\n", result, name, parameters,
                                   with_suffix(expression, name_of(dtype)));
  }
  return name;
}

std::string CPrinter::op(const Expr& expr, const std::vector<std::string>& args) {
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

std::string CPrinter::parameter(DType type, double number) {
  if (is_floating(type)) return fmt::format("ep_lit_{}({})", name_of(type), floating(type, number));
  return fmt::format("ep_lit_{}({}ll)", name_of(type), static_cast<int64_t>(number));
}

std::string CPrinter::index(const Context& context, const Expr& expr, int64_t copy) {
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

std::string CPrinter::load(const Context& context, const Expr& expr, int64_t copy, Memo* memo) {
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
  // Loads lane by lane if the index is not linear, or if the condition excludes some lanes.
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

std::optional<Truth> CPrinter::truth(const Context& context, Id id, int64_t copy, Memo* memo) {
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

std::string CPrinter::named(const std::string& condition) {
  const std::string name = fmt::format("c{}", next_++);
  line("const int {} = {};", name, condition);
  return name;
}

bool CPrinter::is_position(Id id) const {
  const Expr& expr = kernel_.exprs[id];
  return expr.kind == ExprKind::index || (expr.kind == ExprKind::constant && expr.dtype == DType::i64);
}

std::optional<Truth> CPrinter::comparison(const Context& context, const Expr& expr, int64_t copy) {
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

std::optional<Truth> CPrinter::conjunction(const Context& context, const Expr& expr, int64_t copy, Memo* memo) {
  const bool both = op_name(expr) == "logical_and";
  if (!both && op_name(expr) != "logical_or") return std::nullopt;
  const std::optional<Truth> x = truth(context, expr.args[0], copy, memo), y = truth(context, expr.args[1], copy, memo);
  if (!x || !y) return std::nullopt;
  const std::string all = fmt::format("({} {} {})", x->all, both ? "&&" : "||", y->all);
  return Truth{all, fmt::format("({} {} {})", x->none, both ? "||" : "&&", y->none), x->same && y->same};
}

void CPrinter::find_guarded_loads() {
  guarded_.resize(kernel_.exprs.size());
  for (size_t id = 0; id < guarded_.size(); ++id) {
    const Expr& expr = kernel_.exprs[id];
    faults_ = faults_ || expr.kind == ExprKind::position;
    guarded_[id] = expr.kind == ExprKind::load && expr.args[0] != kNone;
    for (size_t i = 0; i < arg_count(expr); ++i) guarded_[id] = guarded_[id] || guarded_[expr.args[i]];
    if (expr.kind != ExprKind::stage) continue;
    const Stage& stage = kernel_.stages[expr.target];
    guarded_[id] = stage.storage == Storage::inlined && stage.value < id && guarded_[stage.value];
  }
}

std::string CPrinter::branch(const Context& context, Id id, int64_t copy, Memo* memo) {
  const Expr& expr = kernel_.exprs[id];
  if (expr.kind != ExprKind::ternary || op_name(expr) != "where" || faults_ || !guarded_[id]) return "";
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

void CPrinter::prefetch(const Context& context, const Expr& expr, const std::string& address) {
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
  // The next block, or the first one of the next item.
  const Part &part = context.levels[context.levels.size() - 2][context.vector_axis],
             &all = context.levels[1][context.vector_axis];
  line("__builtin_prefetch({} + ({} < {} ? {} : {} - {}), 0, 2);", address, part.hi, all.hi, context.block->step, item,
       part.lo);
}

std::string CPrinter::read(const Context& context, Id id, int64_t copy, Memo* memo) {
  const Stage& stage = kernel_.stages[id];
  if (stage.storage == Storage::inlined) return expr(context, stage.value, copy, memo);
  if (stage.storage == Storage::row) {
    const std::string value = read_row(context, id, copy);
    return stage.kind == StageKind::reduce ? finished(context, stage, value) : value;
  }
  return fmt::format("s{}_{}", id, copy < held_copies_[id] ? copy : 0);
}

std::string CPrinter::position(const Context& context, const Expr& expr, int64_t copy, Memo* memo) {
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

bool CPrinter::is_settled(Id id, bool* loads) const {
  const Expr& expr = kernel_.exprs[id];
  if (expr.kind == ExprKind::index || expr.kind == ExprKind::position) return false;
  if (expr.kind == ExprKind::load) {
    *loads = true;
    const Buffer& buffer = kernel_.buffers[expr.target];  // the element must exist even if no loop runs
    return expr.args[0] == kNone && !buffer.output && buffer.elements.is_number() && expr.index.is_number();
  }
  if (expr.kind == ExprKind::stage) {
    const Stage& stage = kernel_.stages[expr.target];
    return stage.storage == Storage::inlined && is_settled(stage.value, loads);
  }
  for (size_t i = 0; i < arg_count(expr); ++i) {
    if (!is_settled(expr.args[i], loads)) return false;
  }
  return true;
}

void CPrinter::settle(Id id, std::set<Id>* seen) {
  if (!seen->insert(id).second) return;
  bool loads = false;
  if (is_settled(id, &loads)) {
    if (!loads) return;
    Context none;
    none.at.resize(kernel_.axes.size());
    Memo memo;
    settled_.emplace(id, expr(none, id, 0, &memo));
    return;
  }
  const Expr& expr = kernel_.exprs[id];
  for (size_t i = 0; i < arg_count(expr); ++i) settle(expr.args[i], seen);
  if (expr.kind == ExprKind::stage && kernel_.stages[expr.target].storage == Storage::inlined) {
    settle(kernel_.stages[expr.target].value, seen);
  }
}

std::string CPrinter::expr(const Context& context, Id id, int64_t copy, Memo* memo) {
  if (const auto settled = settled_.find(id); settled != settled_.end()) return settled->second;
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

std::string CPrinter::cast(const Expr& expr, const std::string& value) {
  const DType from = kernel_.exprs[expr.args[0]].dtype;
  // f16 and bf16 are held as f32: a cast to them rounds, a cast from them is a cast from f32.
  const DType source = computed(from);
  const DType target = expr.dtype;
  if (source == target) return value;
  name_of(source);
  name_of(target);
  if (target != computed(target)) memory_of(target);
  uses_.casts.emplace(source, target);
  return fmt::format("ep_cast_{}_{}({})", dtype_name(source), dtype_name(target), value);
}

}  // namespace tenon::codegen
