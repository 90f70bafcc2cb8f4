// Prints rows in local memory, and sums in rows or registers, as C.
#include <algorithm>

#include "core/codegen/emit/c_printer.h"
#include "primitives/table/table.h"

namespace tenon::codegen {
namespace {

constexpr int64_t kMostLocal = int64_t{1} << 20;

}  // namespace

void CPrinter::lay_out(Id id) {
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
  if (fastest != kNone && contains(stage.axes, fastest)) {
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

int64_t CPrinter::positions(const Stage& stage, const Place& place, size_t level, Id axis) const {
  std::optional<int64_t> extent = most(kernel_.axes[axis].extent);
  for (size_t i = 0; i < level; ++i) {
    if (place.loops[i]->axis == axis) extent = std::min(extent.value_or(SymDim::kMost), left_by(*place.loops[i]));
  }
  if (!extent) too_long(stage);
  return std::max<int64_t>(*extent, 1);
}

int64_t CPrinter::left_by(const Node& loop) {
  return loop.kind == LoopKind::items ? loop.step * loop.unroll : loop.step;
}

void CPrinter::too_long(const Stage& stage) const {
  unsupported("Stage {} of kernel {} keeps a row in local memory that may have more than {} bytes.", stage.name,
              kernel_.name, kMostLocal);
}

std::string CPrinter::slot(const Context& context, Id id, int64_t copy) const {
  const Row& row = *rows_[id];
  std::string index;
  for (const auto& [axis, step] : row.steps) {
    std::string position = fmt::format("({} - {})", context.at[axis], context.levels[row.level][axis].lo);
    if (axis == context.vector_axis && copy > 0) position = fmt::format("({} + {})", position, kLanes * copy);
    const std::string term = step == 1 ? position : fmt::format("{} * {}", position, step);
    index = index.empty() ? term : fmt::format("{} + {}", index, term);
  }
  if (index.empty()) index.push_back('0');
  if (row.lanes > 1) return fmt::format("row{} + ({}) * {} + {}", id, index, row.lanes, kLanes * copy);
  return fmt::format("row{} + {}", id, index);
}

int64_t CPrinter::row_step(const Context& context, Id id) const {
  const Row& row = *rows_[id];
  if (row.lanes > 1) return 1;
  for (const auto& [axis, step] : row.steps) {
    if (axis == context.vector_axis) return step;
  }
  return 0;
}

std::string CPrinter::read_row(const Context& context, Id id, int64_t copy) {
  const Stage& stage = kernel_.stages[id];
  const std::string type = row_memory(stage.dtype);
  const std::string address = slot(context, id, copy);
  const int64_t step = row_step(context, id);
  if (step == 1) return fmt::format("ep_load_{}({})", type, address);
  if (step == 0) return fmt::format("ep_load_one_{}({})", type, address);
  return fmt::format("ep_gather_{}({}, {}, {})", type, address, step, context.count());
}

void CPrinter::write_row(const Context& context, Id id, int64_t copy, const std::string& value) {
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

DType CPrinter::row_dtype(DType dtype) {
  switch (dtype) {
    case DType::i8:
    case DType::i16: return DType::i32;
    case DType::u8:
    case DType::u16: return DType::u32;
    default: return computed(dtype);
  }
}

std::string CPrinter::reduce_function(const Stage& stage, const char* what, std::string_view text,
                                      std::string_view parameters) {
  return function(fmt::format("{}_{}_{}", what, table::reduce_row(stage.op)->name, name_of(stage.dtype)),
                  vector_of(stage.dtype), parameters, text, stage.dtype);
}

std::string CPrinter::combine(const Stage& stage, const std::string& x, const std::string& y) {
  const std::string vector(vector_of(stage.dtype));
  return fmt::format(
      "{}({}, {})",
      reduce_function(stage, "combine", reduce_text(stage.op).combine, fmt::format("{0} x, {0} y", vector)), x, y);
}

std::string CPrinter::finished(const Context& context, const Stage& stage, const std::string& value) {
  const std::string_view text = reduce_text(stage.op).finish;
  if (text == "x") return value;
  SymDim count = 1;
  for (const Id axis : stage.reduce_axes) count *= kernel_.axes[axis].extent;
  const std::string vector(vector_of(stage.dtype));
  const std::string name = reduce_function(stage, "finish", text, fmt::format("{0} x, {0} n", vector));
  return fmt::format("{}({}, ep_lit_{}({}))", name, value, name_of(stage.dtype), size(context, count));
}

const Node* CPrinter::reducing_vector(Id id) const {
  const Place& place = *places_.of(id).front();
  for (size_t i = place.result; i < place.loops.size(); ++i) {
    if (place.loops[i]->kind == LoopKind::vector && reduces(id, place.loops[i]->axis)) return place.loops[i];
  }
  return nullptr;
}

bool CPrinter::reduces(Id id, Id axis) const { return contains(kernel_.stages[id].reduce_axes, axis); }

void CPrinter::begin_reduction(const Context& context, Id id) {
  const Stage& stage = kernel_.stages[id];
  const Node* vector = reducing_vector(id);
  if (!places_.adds_in_one_number(id)) {
    const Row& row = *rows_[id];
    const std::string type = row_memory(stage.dtype);
    const int64_t numbers = row.slots * row.lanes;
    if (numbers % kLanes == 0) {
      line("for (int64_t i = 0; i < {}; i += EP_LANES) ep_store_{}(row{} + i, {});", numbers, type, id, initial(stage));
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

void CPrinter::end_reduction(const Context& context, Id id) {
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

void CPrinter::add_up(const Stage& stage, Id id, int64_t count) {
  for (int64_t width = 1; width < count; width *= 2) {
    for (int64_t i = 0; i + width < count; i += 2 * width) {
      line("a{}_{} = {};", id, i, combine(stage, fmt::format("a{}_{}", id, i), fmt::format("a{}_{}", id, i + width)));
    }
  }
  for (const int by : {8, 4, 2, 1}) {
    line("a{}_0 = {};", id,
         combine(stage, fmt::format("a{}_0", id), fmt::format("ep_shift_{}_{}(a{}_0)", by, name_of(stage.dtype), id)));
  }
}

void CPrinter::accumulate(const Context& context, Id id, int64_t copy, const std::string& value) {
  const Stage& stage = kernel_.stages[id];
  std::string mapped = value;
  if (reduce_text(stage.op).map != "x") {
    mapped = fmt::format(
        "{}({})", reduce_function(stage, "map", reduce_text(stage.op).map, fmt::format("{} x", vector_of(stage.dtype))),
        value);
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

}  // namespace tenon::codegen
