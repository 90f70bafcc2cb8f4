#include "core/codegen/loop/ir.h"

#include <memory>
#include <utility>

#include "primitives/status/error.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::codegen {

using symbolic::Arena;
using symbolic::ArenaScope;

Kernel& Kernel::operator=(Kernel other) {
  name = std::move(other.name);
  std::destroy_at(&arena);
  std::construct_at(&arena, std::move(other.arena));
  parameters = std::move(other.parameters);
  axes = std::move(other.axes);
  buffers = std::move(other.buffers);
  exprs = std::move(other.exprs);
  stages = std::move(other.stages);
  body = std::move(other.body);
  return *this;
}

namespace {

template <class T>
Id append(std::vector<T>* list, T item) {
  list->push_back(std::move(item));
  return static_cast<Id>(list->size() - 1);
}

const table::ScalarRow& row_named(int32_t arity, std::string_view op) {
  const table::ScalarRow* row = table::scalar_row(arity, op);
  if (row == nullptr) {
    throw Error(Code::invalid_argument, fmt::format("'{}' is not a scalar function of {} arguments.", op, arity));
  }
  return *row;
}

}  // namespace

SymDim Kernel::add_parameter(std::string parameter_name, int64_t least, int64_t most, int64_t divisor) {
  symbolic::Symbol declared;
  declared.source = parameter_name;
  declared.range = {least, most};
  declared.divisor = divisor;
  const SymDim symbol = arena.symbol(std::move(declared));
  parameters.push_back({std::move(parameter_name), symbol});
  return symbol;
}

void Kernel::add_parameter(std::string parameter_name, SymDim symbol) {
  parameters.push_back({std::move(parameter_name), symbol});
}

Id Kernel::add_axis(std::string axis_name, SymDim extent) {
  const ArenaScope scope(arena);
  const symbolic::Range range = arena.range(extent);
  symbolic::Symbol declared;
  declared.source = "axis " + axis_name;
  declared.range = {0, range.hi == symbolic::Range::kEndless ? SymDim::kMost : std::max<int64_t>(range.hi - 1, 0)};
  const SymDim symbol = arena.symbol(std::move(declared));
  // A launch with an extent of 0 runs nothing, so the position is less than the extent.
  if (!extent.is_number()) arena.assume(symbol < extent);
  return append(&axes, Axis{std::move(axis_name), symbol, extent});
}

Id Kernel::add_buffer(std::string buffer_name, DType dtype, SymDim elements, bool output) {
  return append(&buffers, Buffer{std::move(buffer_name), dtype, elements, output});
}

Id Kernel::constant(DType dtype, double number) {
  Expr expr{.kind = ExprKind::constant, .dtype = dtype};
  if (is_floating(dtype)) {
    expr.a = number;
  } else {
    expr.integer = static_cast<int64_t>(number);
  }
  return append(&exprs, expr);
}

Id Kernel::constant_integer(DType dtype, int64_t number) {
  if (is_floating(dtype)) return constant(dtype, static_cast<double>(number));
  return append(&exprs, Expr{.kind = ExprKind::constant, .dtype = dtype, .integer = number});
}

Id Kernel::index(SymDim number) {
  return append(&exprs, Expr{.kind = ExprKind::index, .dtype = DType::i64, .index = number});
}

Id Kernel::load(Id buffer, SymDim element, Id where) {
  Expr expr{.kind = ExprKind::load, .dtype = buffers.at(buffer).dtype, .target = buffer, .index = element};
  expr.args[0] = where;
  return append(&exprs, expr);
}

Id Kernel::read(Id stage) {
  return append(&exprs, Expr{.kind = ExprKind::stage, .dtype = stages.at(stage).dtype, .target = stage});
}

Id Kernel::unary(std::string_view op, Id x, double a, double b) {
  const table::ScalarRow& row = row_named(1, op);
  Expr expr{.kind = ExprKind::unary, .dtype = table::result_dtype(row, exprs.at(x).dtype), .op = row.id};
  expr.args[0] = x;
  expr.a = a;
  expr.b = b;
  return append(&exprs, expr);
}

Id Kernel::binary(std::string_view op, Id x, Id y) {
  const table::ScalarRow& row = row_named(2, op);
  Expr expr{.kind = ExprKind::binary, .dtype = table::result_dtype(row, exprs.at(y).dtype), .op = row.id};
  expr.args = {x, y, kNone};
  return append(&exprs, expr);
}

Id Kernel::ternary(std::string_view op, Id x, Id y, Id z) {
  const table::ScalarRow& row = row_named(3, op);
  Expr expr{.kind = ExprKind::ternary, .dtype = table::result_dtype(row, exprs.at(z).dtype), .op = row.id};
  expr.args = {x, y, z};
  return append(&exprs, expr);
}

Id Kernel::cast(DType dtype, Id x) {
  Expr expr{.kind = ExprKind::cast, .dtype = dtype};
  expr.args[0] = x;
  return append(&exprs, expr);
}

Id Kernel::position(Id x, Id count, Id buffer) {
  return append(&exprs,
                Expr{.kind = ExprKind::position, .dtype = DType::i64, .target = buffer, .args = {x, count, kNone}});
}

Id Kernel::add_value(std::string stage_name, std::vector<Id> spatial, Id expr) {
  Stage stage;
  stage.name = std::move(stage_name);
  stage.dtype = exprs.at(expr).dtype;
  stage.axes = std::move(spatial);
  stage.value = expr;
  return append(&stages, std::move(stage));
}

Id Kernel::add_reduce(std::string stage_name, std::string_view op, std::vector<Id> spatial, std::vector<Id> over,
                      Id expr) {
  const table::ReduceRow* row = table::reduce_row(op);
  if (row == nullptr) throw Error(Code::invalid_argument, fmt::format("'{}' is not a reduction.", op));
  Stage stage;
  stage.name = std::move(stage_name);
  stage.kind = StageKind::reduce;
  stage.dtype = exprs.at(expr).dtype;
  stage.axes = std::move(spatial);
  stage.reduce_axes = std::move(over);
  stage.op = row->id;
  stage.value = expr;
  return append(&stages, std::move(stage));
}

Id Kernel::add_store(std::string stage_name, Id buffer, SymDim element, std::vector<Id> spatial, Id expr) {
  Stage stage;
  stage.name = std::move(stage_name);
  stage.kind = StageKind::store;
  stage.dtype = buffers.at(buffer).dtype;
  stage.axes = std::move(spatial);
  stage.value = expr;
  stage.buffer = buffer;
  stage.index = element;
  return append(&stages, std::move(stage));
}

namespace {

void widen(const std::vector<Node>& nodes, std::array<int64_t, 2>* group) {
  for (const Node& node : nodes) {
    if (node.kind == LoopKind::work_items && (node.dim == 0 || node.dim == 1)) {
      (*group)[static_cast<size_t>(node.dim)] = node.width;
    }
    widen(node.body, group);
  }
}

}  // namespace

std::array<int64_t, 2> group_of(const Kernel& kernel) {
  std::array<int64_t, 2> group{1, 1};
  widen(kernel.body, &group);
  return group;
}

size_t arg_count(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::unary:
    case ExprKind::cast: return 1;
    case ExprKind::binary:
    case ExprKind::position: return 2;
    case ExprKind::ternary: return 3;
    case ExprKind::load: return expr.args[0] == kNone ? 0 : 1;
    default: return 0;
  }
}

std::string_view op_name(const Expr& expr) {
  const table::ScalarRow* row = expr.kind == ExprKind::unary    ? table::unary_row(expr.op)
                                : expr.kind == ExprKind::binary ? table::binary_row(expr.op)
                                                                : table::ternary_row(expr.op);
  return row == nullptr ? std::string_view() : row->name;
}

namespace {

SymDim replaced(const Arena& arena, uint32_t node, const std::map<uint32_t, SymDim>& replacements);

SymDim replaced(const Arena& arena, SymDim size, const std::map<uint32_t, SymDim>& replacements) {
  return size.is_number() ? size : replaced(arena, size.index(), replacements);
}

SymDim replaced(const Arena& arena, uint32_t index, const std::map<uint32_t, SymDim>& replacements) {
  if (const auto found = replacements.find(index); found != replacements.end()) return found->second;
  const SymDim whole = arena.atom(index);
  const symbolic::Node node = arena.node(whole);  // a copy, because the arena may grow
  switch (node.kind) {
    case symbolic::Kind::symbol: return whole;
    case symbolic::Kind::floor_div:
      return floor_div(replaced(arena, node.a, replacements), replaced(arena, node.b, replacements));
    case symbolic::Kind::modulo:
      return modulo(replaced(arena, node.a, replacements), replaced(arena, node.b, replacements));
    case symbolic::Kind::min:
      return min_size(replaced(arena, node.a, replacements), replaced(arena, node.b, replacements));
    case symbolic::Kind::max:
      return max_size(replaced(arena, node.a, replacements), replaced(arena, node.b, replacements));
    case symbolic::Kind::broadcast:
      return symbolic::current_arena()->broadcast(replaced(arena, node.a, replacements),
                                                  replaced(arena, node.b, replacements));
    case symbolic::Kind::sum: break;
  }
  SymDim sum = 0;
  for (const symbolic::Term& term : node.terms) {
    SymDim product = term.coefficient;
    for (const symbolic::Factor& factor : term.monomial) {
      const SymDim part = replaced(arena, factor.atom, replacements);
      for (uint32_t i = 0; i < factor.power; ++i) product *= part;
    }
    sum += product;
  }
  return sum;
}

void collect(const Arena& arena, SymDim size, std::set<uint32_t>* symbols) {
  if (size.is_number()) return;
  const symbolic::Node& node = arena.node(size);
  if (node.kind == symbolic::Kind::symbol) {
    symbols->insert(size.index());
  } else if (node.kind == symbolic::Kind::sum) {
    for (const symbolic::Term& term : node.terms) {
      for (const symbolic::Factor& factor : term.monomial) collect(arena, arena.atom(factor.atom), symbols);
    }
  } else {
    collect(arena, node.a, symbols);
    collect(arena, node.b, symbols);
  }
}

}  // namespace

SymDim substitute(const Arena& arena, SymDim size, const std::map<uint32_t, SymDim>& replacements) {
  return replaced(arena, size, replacements);
}

std::set<uint32_t> symbols_of(const Arena& arena, SymDim size) {
  std::set<uint32_t> symbols;
  collect(arena, size, &symbols);
  return symbols;
}

Stride stride_of(const Arena& arena, SymDim index, SymDim symbol) {
  if (!symbols_of(arena, index).contains(symbol.index())) return {true, 0};
  if (identical(index, symbol)) return {true, 1};
  if (arena.node(index).kind != symbolic::Kind::sum) return {};
  const symbolic::Polynomial terms = arena.node(index).terms;  // a copy, because the arena may grow
  SymDim step = 0;
  for (const symbolic::Term& term : terms) {
    SymDim product = term.coefficient;
    bool found = false;
    for (const symbolic::Factor& factor : term.monomial) {
      if (factor.atom == symbol.index()) {
        if (factor.power != 1) return {};
        found = true;
        continue;
      }
      const SymDim atom = arena.atom(factor.atom);
      if (symbols_of(arena, atom).contains(symbol.index())) return {};
      for (uint32_t i = 0; i < factor.power; ++i) product *= atom;
    }
    if (found) step += product;
  }
  return {true, step};
}

}  // namespace tenon::codegen
