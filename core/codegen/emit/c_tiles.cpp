// Prints loads whose memory is contiguous along a loop around the vector loop: a block of memory is transposed at once.
#include <algorithm>

#include "core/codegen/emit/c_printer.h"

namespace tenon::codegen {
namespace {

constexpr int64_t kMostTile = int64_t{256} << 10;  // most bytes of a transposed block: half of a small L2 cache

}  // namespace

void CPrinter::turn(Context* inside, const Node& node) {
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

void CPrinter::turn(Context* inside, Id blocked, Id rows_axis, Id lanes_axis, Id id) {
  const Part &rows = inside->parts()[rows_axis], &lanes = inside->parts()[lanes_axis];
  const Expr& expr = kernel_.exprs[id];
  Turned turned;
  turned.rows = rows_axis;
  turned.rows_lo = rows.lo;
  turned.lanes_lo = lanes.lo;
  // Lines that are a power of two apart would compete for a few cache lines.
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
  line("ep_turn(b{} + {}, {}, {}, {}, {} - {}, {} - {});", expr.target, size(at, expr.index), turned.step, turned.tile,
       turned.width, lanes.hi, lanes.lo, rows.hi, rows.lo);
  // The next block follows along the axis of this loop, or is the first one of the neighbouring block.
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

bool CPrinter::has_single(const Node& node, Id axis) {
  return std::any_of(node.body.begin(), node.body.end(), [&](const Node& inner) {
    return inner.is_loop() && ((inner.axis == axis && inner.step == 1) || has_single(inner, axis));
  });
}

std::string CPrinter::load_turned(const Context& context, const Turned& turned, const std::string& type, int64_t copy) {
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

const Node* CPrinter::vector_in(const Node& node) {
  for (const Node& inner : node.body) {
    if (inner.is_loop() && inner.kind == LoopKind::vector) return &inner;
    const Node* found = inner.is_loop() ? vector_in(inner) : nullptr;
    if (found != nullptr) return found;
  }
  return nullptr;
}

void CPrinter::find_far_loads(const Context& context, Id rows, Id lanes, Id id, std::set<Id>* seen,
                              std::set<Id>* found) {
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
  // All other axes have a position already.
  const std::set<uint32_t> symbols = symbols_of(kernel_.arena, expr.index);
  for (size_t axis = 0; axis < kernel_.axes.size(); ++axis) {
    const bool is_open = axis != rows && axis != lanes && context.at[axis].empty();
    if (is_open && symbols.contains(kernel_.axes[axis].symbol.index())) return;
  }
  found->insert(id);
}

}  // namespace tenon::codegen
