// The rules of a well-formed kernel, each with its error sentence.
#include <algorithm>
#include <functional>

#include "core/codegen/loop/ir.h"
#include "core/codegen/loop/names.h"
#include "core/codegen/loop/places.h"
#include "primitives/status/error.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

template <class... Args>
[[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Code::invalid_argument, fmt::format(format, std::forward<Args>(args)...));
}

bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

bool is_supported(DType dtype) {
  return table::in_domain(table::Domain::ANY, dtype) && dtype_size(dtype) > 0 &&
         !(is_floating(dtype) && dtype_size(dtype) < 2);
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel), size_(kernel) {}

  void verify() {
    name(kernel_.name, "kernel");
    for (const Parameter& parameter : kernel_.parameters) declare(parameter.name, parameter.symbol, "size");
    for (const Axis& axis : kernel_.axes) {
      names_only(axis.extent, {}, fmt::format("The extent of axis {}", axis.name));
      declare(axis.name, axis.symbol, "axis");
    }
    for (const Buffer& buffer : kernel_.buffers) this->buffer(buffer);
    for (size_t i = 0; i < kernel_.exprs.size(); ++i) expr(i);
    for (size_t i = 0; i < kernel_.stages.size(); ++i) stage(static_cast<Id>(i));
    for (const Buffer& buffer : kernel_.buffers) {
      const auto id = static_cast<Id>(&buffer - kernel_.buffers.data());
      const auto stores = [&](const Stage& stage) { return stage.kind == StageKind::store && stage.buffer == id; };
      if (buffer.output && std::none_of(kernel_.stages.begin(), kernel_.stages.end(), stores)) {
        wrong("No stage stores into buffer {}, which is an output.", buffer.name);
      }
    }
    if (kernel_.scheduled()) loops();
  }

 private:
  void name(const std::string& given, const char* what) {
    if (given.empty() || leading_name(given).size() != given.size() || given.size() > 64) {
      wrong("A {} is named '{}', but a name has 1 to 64 letters, digits and underscores, and no digit first.", what,
            given);
    }
    for (const char* word : {"if", "min", "max", "broadcast", "ceil_div", "at", "over", "inf", "nan", "barrier"}) {
      if (given == word) wrong("A {} is named '{}', a word of the loop IR.", what, given);
    }
    if (!names_.insert(given).second) wrong("Two things are named '{}'.", given);
  }

  void declare(const std::string& given, SymDim symbol, const char* what) {
    name(given, what);
    if (symbol.is_number() || symbol.index() >= kernel_.arena.size() ||
        kernel_.arena.node(symbol).kind != symbolic::Kind::symbol) {
      wrong("The {} {} is not a symbol of the kernel's arena.", what, given);
    }
    if (std::string_view(what) == "size") sizes_.insert(symbol.index());
  }

  // Checks that `size` names only parameters and these axes.
  void names_only(SymDim size, const std::vector<Id>& axes, const std::string& what) {
    for (const uint32_t symbol : symbols_of(kernel_.arena, size)) {
      const bool is_axis =
          std::any_of(axes.begin(), axes.end(), [&](Id axis) { return kernel_.axes[axis].symbol.index() == symbol; });
      if (!is_axis && !sizes_.contains(symbol)) {
        wrong("{} is {}, which names {}, neither a size nor an axis of the stage.", what, size_(size),
              size_(kernel_.arena.atom(symbol)));
      }
    }
  }

  void buffer(const Buffer& buffer) {
    name(buffer.name, "buffer");
    names_only(buffer.elements, {}, fmt::format("The length of buffer {}", buffer.name));
    if (!is_supported(buffer.dtype)) {
      wrong("Buffer {} is of {}; a kernel has buffers of bool, integers from 8 bits on, f16, bf16, f32 and f64.",
            buffer.name, dtype_name(buffer.dtype));
    }
  }

  const table::ScalarRow& row(const Expr& expr, size_t id) {
    const table::ScalarRow* row = expr.kind == ExprKind::unary    ? table::unary_row(expr.op)
                                  : expr.kind == ExprKind::binary ? table::binary_row(expr.op)
                                                                  : table::ternary_row(expr.op);
    if (row == nullptr) wrong("Expression {} has the unknown op {}.", id, expr.op);
    return *row;
  }

  void op(const Expr& expr, size_t id) {
    const table::ScalarRow& row = this->row(expr, id);
    const size_t count = arg_count(expr);
    const DType type = kernel_.exprs[expr.args[count - 1]].dtype;
    const bool has_condition = row.domain == table::Domain::COND;
    for (size_t i = 0; i < count; ++i) {
      const DType given = kernel_.exprs[expr.args[i]].dtype;
      const DType expected = has_condition && i == 0 ? DType::boolean : type;
      if (given != expected) {
        wrong("{} needs {} as argument {}, but got {}.", row.name, dtype_name(expected), i + 1, dtype_name(given));
      }
    }
    if (is_narrow(type) && !has_condition) {
      wrong("{} has an argument of {}, which only loads, stores and casts accept; cast to f32 first.", row.name,
            dtype_name(type));
    }
    if (!table::in_domain(has_condition ? table::Domain::ANY : row.domain, type)) {
      wrong("{} is defined on {}, not on {}.", row.name, table::domain_text(row.domain), dtype_name(type));
    }
    if (table::result_dtype(row, type) != expr.dtype) {
      wrong("{} of {} gives {}, not {}.", row.name, dtype_name(type), dtype_name(table::result_dtype(row, type)),
            dtype_name(expr.dtype));
    }
  }

  void expr(size_t id) {
    const Expr& expr = kernel_.exprs[id];
    for (size_t i = 0; i < arg_count(expr); ++i) {
      if (expr.args[i] >= id) wrong("Expression {} has an argument that does not come before it.", id);
    }
    if (!is_supported(expr.dtype))
      wrong("Expression {} has dtype {}, which kernels do not compute with.", id, dtype_name(expr.dtype));
    switch (expr.kind) {
      case ExprKind::load:
        if (expr.target >= kernel_.buffers.size())
          wrong("Expression {} loads from buffer {}, which does not exist.", id, expr.target);
        if (kernel_.buffers[expr.target].output) {
          wrong("Expression {} loads from buffer {}, which is an output.", id, kernel_.buffers[expr.target].name);
        }
        if (expr.dtype != kernel_.buffers[expr.target].dtype)
          wrong("Expression {} does not have the dtype of the buffer from which it loads.", id);
        if (expr.args[0] != kNone && kernel_.exprs[expr.args[0]].dtype != DType::boolean) {
          wrong("The condition of a load from {} is {}, not bool.", kernel_.buffers[expr.target].name,
                dtype_name(kernel_.exprs[expr.args[0]].dtype));
        }
        break;
      case ExprKind::stage:
        if (expr.target >= kernel_.stages.size())
          wrong("Expression {} reads stage {}, which does not exist.", id, expr.target);
        if (expr.dtype != kernel_.stages[expr.target].dtype)
          wrong("Expression {} does not have the dtype of the stage that it reads.", id);
        break;
      case ExprKind::unary:
      case ExprKind::binary:
      case ExprKind::ternary: op(expr, id); break;
      case ExprKind::position:
        if (expr.target >= kernel_.buffers.size())
          wrong("Expression {} is a position from buffer {}, which does not exist.", id, expr.target);
        if (expr.dtype != DType::i64 || kernel_.exprs[expr.args[0]].dtype != DType::i64 ||
            kernel_.exprs[expr.args[1]].dtype != DType::i64) {
          wrong("Expression {} is a position and must be i64.", id);
        }
        break;
      case ExprKind::index:
        if (expr.dtype != DType::i64)
          wrong("Expression {} is an index and must be i64, not {}.", id, dtype_name(expr.dtype));
        break;
      default: break;
    }
  }

  // Visits all expressions below `id`, each once.
  void walk(Id id, std::set<Id>* seen, const std::function<void(const Expr&)>& visit) {
    if (!seen->insert(id).second) return;
    const Expr& expr = kernel_.exprs[id];
    visit(expr);
    for (size_t i = 0; i < arg_count(expr); ++i) walk(expr.args[i], seen, visit);
  }

  // Refuses an index that certainly leaves its buffer: a bound of it is a number outside of the buffer.
  void bounds(const Stage& stage, SymDim index, const Buffer& buffer) {
    const symbolic::Range range = kernel_.arena.range(index);
    if (!buffer.elements.is_number() || !range.bounded()) return;
    if (!index.is_number() && kernel_.arena.node(index).kind != symbolic::Kind::sum &&
        kernel_.arena.node(index).kind != symbolic::Kind::symbol) {
      return;
    }
    for (const uint32_t symbol : symbols_of(kernel_.arena, index)) {
      const auto axis = std::find_if(kernel_.axes.begin(), kernel_.axes.end(),
                                     [&](const Axis& each) { return each.symbol.index() == symbol; });
      if (axis == kernel_.axes.end() || !axis->extent.is_number() || axis->extent.number() == 0) return;
      if (!is_linear(index, symbol)) return;
    }
    if (range.lo < 0 || range.hi >= buffer.elements.number()) {
      wrong("Stage {} reaches element {} of buffer {}, from {} to {}, but the buffer has {} elements.", stage.name,
            size_(index), buffer.name, range.lo, range.hi, buffer.elements.number());
    }
  }

  // True if `index` is a sum in which `symbol` occurs once, as a term of its own.
  bool is_linear(SymDim index, uint32_t symbol) const {
    if (index.index() == symbol) return true;
    size_t terms = 0;
    for (const symbolic::Term& term : kernel_.arena.node(index).terms) {
      for (const symbolic::Factor& factor : term.monomial) {
        if (!symbols_of(kernel_.arena, kernel_.arena.atom(factor.atom)).contains(symbol)) continue;
        if (factor.atom != symbol || term.monomial.size() != 1 || factor.power != 1) return false;
        ++terms;
      }
    }
    return terms == 1;
  }

  void stage(Id id) {
    const Stage& stage = kernel_.stages[id];
    name(stage.name, "stage");
    std::vector<Id> axes = stage.axes;
    axes.insert(axes.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] >= kernel_.axes.size()) wrong("Stage {} has an axis that the kernel does not have.", stage.name);
      if (std::find(axes.begin(), axes.begin() + static_cast<ptrdiff_t>(i), axes[i]) !=
          axes.begin() + static_cast<ptrdiff_t>(i)) {
        wrong("Stage {} names axis {} twice.", stage.name, kernel_.axes[axes[i]].name);
      }
    }
    if (stage.value >= kernel_.exprs.size()) wrong("Stage {} has no expression.", stage.name);
    const DType type = kernel_.exprs[stage.value].dtype;
    if (type != stage.dtype) {
      wrong("Stage {} has dtype {}, but its expression has dtype {}.", stage.name, dtype_name(stage.dtype),
            dtype_name(type));
    }
    reduction_or_store(stage, axes);
    if (stage.storage == Storage::inlined && stage.kind != StageKind::value) {
      wrong("Stage {} is not a value, so it cannot be inlined.", stage.name);
    }
    std::set<Id> seen;
    walk(stage.value, &seen, [&](const Expr& expr) { reads(id, expr, axes); });
  }

  void reduction_or_store(const Stage& stage, const std::vector<Id>& axes) {
    if (stage.kind == StageKind::reduce) {
      const table::ReduceRow* row = table::reduce_row(stage.op);
      if (row == nullptr) wrong("Stage {} has the unknown reduction {}.", stage.name, stage.op);
      if (is_narrow(stage.dtype) || !table::in_domain(row->domain, stage.dtype)) {
        wrong("Stage {}: {} is not computed in {}; cast first.", stage.name, row->name, dtype_name(stage.dtype));
      }
      if (stage.reduce_axes.empty()) wrong("Stage {} reduces over no axis.", stage.name);
    } else if (!stage.reduce_axes.empty()) {
      wrong("Stage {} is not a reduction, but has axes to reduce.", stage.name);
    }
    if (stage.kind != StageKind::store) return;
    if (stage.buffer >= kernel_.buffers.size())
      wrong("Stage {} stores into buffer {}, which does not exist.", stage.name, stage.buffer);
    const Buffer& buffer = kernel_.buffers[stage.buffer];
    if (!buffer.output) wrong("Stage {} stores into buffer {}, which is an input.", stage.name, buffer.name);
    if (buffer.dtype != stage.dtype) {
      wrong("Stage {} stores {} into buffer {} of {}.", stage.name, dtype_name(stage.dtype), buffer.name,
            dtype_name(buffer.dtype));
    }
    names_only(stage.index, axes, fmt::format("The index of stage {}", stage.name));
    bounds(stage, stage.index, buffer);
  }

  void reads(Id id, const Expr& expr, const std::vector<Id>& axes) {
    const Stage& stage = kernel_.stages[id];
    if (expr.kind == ExprKind::load || expr.kind == ExprKind::index) {
      names_only(expr.index, axes, fmt::format("An index of stage {}", stage.name));
      if (expr.kind == ExprKind::load && expr.args[0] == kNone) bounds(stage, expr.index, kernel_.buffers[expr.target]);
    }
    if (expr.kind != ExprKind::stage) return;
    const Stage& read = kernel_.stages[expr.target];
    if (expr.target >= id) wrong("Stage {} reads stage {}, which does not come before it.", stage.name, read.name);
    if (read.kind == StageKind::store) wrong("Stage {} reads stage {}, which is a store.", stage.name, read.name);
    for (const Id axis : read.axes) {
      if (!contains(axes, axis)) {
        wrong("Stage {} reads stage {}, whose axis {} it does not have.", stage.name, read.name,
              kernel_.axes[axis].name);
      }
    }
  }

  void loops() {
    if (kernel_.body.size() != 1 || !kernel_.body[0].is_loop() || kernel_.body[0].kind != LoopKind::items) {
      wrong("The loops of kernel {} must be one loop of items.", kernel_.name);
    }
    shape(kernel_.body[0], {});
    const Places places(kernel_);
    for (size_t id = 0; id < kernel_.stages.size(); ++id) place(places, static_cast<Id>(id));
    if (in_groups_) together(places, kernel_.body[0], {});
  }

  // Checks each loop without regard to stages.
  void shape(const Node& node, const std::vector<const Node*>& around) {
    if (node.is_barrier) return;
    if (!node.is_loop()) {
      if (node.stage >= kernel_.stages.size()) wrong("The loops run a stage that the kernel does not have.");
      return;
    }
    if (node.axis >= kernel_.axes.size()) wrong("A loop runs over an axis that the kernel does not have.");
    const std::string& axis = kernel_.axes[node.axis].name;
    if (node.kind == LoopKind::items && !around.empty()) wrong("The items loop over {} is not the outermost.", axis);
    const int64_t most = node.kind == LoopKind::items ? 1024 : 16;
    if (node.step < 1 || node.unroll < 1 || node.unroll > most) {
      wrong("The loop over {} has step {} and unroll {}; a step is at least 1, unroll from 1 to {}.", axis, node.step,
            node.unroll, most);
    }
    if (node.kind == LoopKind::vector && node.step != 1) wrong("The vector loop over {} has step {}.", axis, node.step);
    const bool has_blocks = node.kind == LoopKind::items && node.step > 1;
    if (node.kind != LoopKind::vector && !has_blocks && node.unroll != 1) {
      wrong("The loop over {} is unrolled, but it is neither a vector loop nor an items loop of several positions.",
            axis);
    }
    work_items(node, axis);
    for (const Node* outer : around) {
      if (outer->kind == LoopKind::work_items && node.kind == LoopKind::work_items && outer->dim == node.dim) {
        wrong("The loop of work_items over {} along dim {} is inside of another one along this dim.", axis, node.dim);
      }
      if (outer->kind == LoopKind::vector && node.kind == LoopKind::vector) {
        wrong("The vector loop over {} is inside of another vector loop.", axis);
      }
      if (outer->axis == node.axis && outer->step <= node.step) {
        wrong("The loop over {} has step {}, but it is inside of one of step {}.", axis, node.step, outer->step);
      }
    }
    std::vector<const Node*> inside = around;
    inside.push_back(&node);
    for (const Node& inner : node.body) shape(inner, inside);
  }

  void work_items(const Node& node, const std::string& axis) {
    if (node.kind != LoopKind::work_items) {
      if (node.width != 1 || node.dim != 0)
        wrong("The loop over {} has a width, but it is not a loop of work_items.", axis);
      if (node.kind == LoopKind::vector) has_vectors_ = true;
    } else {
      if (node.dim != 0 && node.dim != 1)
        wrong("The loop over {} is along dim {}; a group has 0 and 1.", axis, node.dim);
      if (node.width < 1 || node.width > 1024 || (node.width & (node.width - 1)) != 0) {
        wrong("The loop over {} has width {}, which must be a power of two from 1 to 1024.", axis, node.width);
      }
      int64_t& width = widths_[static_cast<size_t>(node.dim)];
      if (width != 0 && width != node.width) {
        wrong("The loop over {} has width {}, but the group has {} along dim {}.", axis, node.width, width, node.dim);
      }
      width = node.width;
      in_groups_ = true;
    }
    if (in_groups_ && has_vectors_) wrong("Kernel {} has loops of work_items and vector loops.", kernel_.name);
  }

  // Checks that the whole group reaches each barrier, and the end of each reduction over work-items.
  void together(const Places& places, const Node& loop, std::vector<const Node*> around) {
    if (loop.kind == LoopKind::work_items && places.runs_together(loop, around.size())) {
      if (loop.step != 1) {
        wrong("The loop over {} contains a barrier or a reduction over work-items, but has step {}.",
              kernel_.axes[loop.axis].name, loop.step);
      }
      int64_t left = 0;
      for (const Node* outer : around) {
        if (outer->axis == loop.axis) left = outer->step;
      }
      if (left != loop.width) {
        wrong(
            "The loop over {} contains a barrier or a reduction over work-items, so it must have {} positions left, "
            "not {}.",
            kernel_.axes[loop.axis].name, loop.width, left == 0 ? "all" : std::to_string(left));
      }
    }
    around.push_back(&loop);
    for (const Node& node : loop.body) {
      if (node.is_loop()) together(places, node, around);
    }
  }

  // True if the work-item that wrote a number of `source` is the one that reads it: the work_items loops around both
  // run over the same positions.
  bool same_work_items(const Place& written, const Place& place) const {
    const auto dealt = [](const std::vector<const Node*>& loops, size_t count, int64_t dim) {
      std::vector<std::array<int64_t, 3>> result;  // the loops over the axis of the dim's loop
      for (size_t i = 0; i < count; ++i) {
        if (loops[i]->kind != LoopKind::work_items || loops[i]->dim != dim) continue;
        for (size_t k = 0; k <= i; ++k) {
          if (loops[k]->axis == loops[i]->axis) result.push_back({loops[k]->axis, loops[k]->step, loops[k]->width});
        }
      }
      return result;
    };
    for (const int64_t dim : {0, 1}) {
      if (widths_[static_cast<size_t>(dim)] <= 1) continue;
      const auto writers = dealt(written.loops, written.result, dim);
      if (writers.empty() || writers != dealt(place.loops, place.loops.size(), dim)) return false;
    }
    return true;
  }

  // True if a barrier lies between the loops of the write and those of the read, in their common body.
  bool has_barrier_between(const Place& written, const Place& place, size_t shared) const {
    const std::vector<Node>& body = shared == 0 ? kernel_.body : written.loops[shared - 1]->body;
    const auto holds = [&](const Node& node, const Place& each, Id stage) {
      return shared < each.loops.size() ? &node == each.loops[shared] : !node.is_barrier && node.stage == stage;
    };
    bool inside = false;
    for (const Node& node : body) {
      if (inside && node.is_barrier) return true;
      if (holds(node, place, place.stage)) return false;
      if (holds(node, written, written.stage)) inside = true;
    }
    return false;
  }

  void place(const Places& places, Id id) {
    const Stage& stage = kernel_.stages[id];
    const std::vector<const Place*> found = places.of(id);
    if (stage.storage == Storage::inlined) {
      if (!found.empty()) wrong("Stage {} is inlined, but the loops run it.", stage.name);
      return;
    }
    if (found.size() != 1) wrong("The loops run stage {} {} times; each runs once.", stage.name, found.size());
    const Place& place = *found[0];
    std::vector<Id> axes = stage.axes;
    axes.insert(axes.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
    for (const Id axis : axes) {
      if (std::none_of(place.loops.begin(), place.loops.end(),
                       [&](const Node* loop) { return loop->axis == axis && loop->step == 1; })) {
        wrong("Stage {} has axis {}, but no loop of step 1 over it encloses the stage.", stage.name,
              kernel_.axes[axis].name);
      }
    }
    for (const Node* loop : place.loops) {
      if (!contains(axes, loop->axis)) {
        wrong("A loop over {} encloses stage {}, which has no such axis: the stage would run more than once.",
              kernel_.axes[loop->axis].name, stage.name);
      }
    }
    if (!contains(stage.axes, place.loops[0]->axis)) {
      wrong("Stage {} reduces over {}, whose positions are the items of a launch.", stage.name,
            kernel_.axes[place.loops[0]->axis].name);
    }
    if (stage.kind == StageKind::reduce && stage.storage == Storage::registers && place.result < place.loops.size()) {
      for (size_t i = place.result; i < place.loops.size(); ++i) {
        if (!contains(stage.reduce_axes, place.loops[i]->axis)) {
          wrong("Stage {} is in registers, but a loop over {} is inside of the loops that it reduces over.", stage.name,
                kernel_.axes[place.loops[i]->axis].name);
        }
      }
    }
    if (in_groups_ && stage.storage == Storage::row)
      wrong("Stage {} is in a row, but the kernel has groups.", stage.name);
    if (!in_groups_ && stage.storage == Storage::shared) {
      wrong("Stage {} is in shared storage, but the kernel has no loop of work_items.", stage.name);
    }
    if (in_groups_ && stage.kind == StageKind::reduce && !places.adds_in_one_number(id)) {
      wrong("Stage {} needs more than one number to add up in, which a kernel of groups does not support.", stage.name);
    }
    for (const Id read : places.reads(id)) order(places, id, place, read);
  }

  // Checks that the number of `read` exists when the stage at `place` runs.
  void order(const Places& places, Id id, const Place& place, Id read) {
    const Stage& stage = kernel_.stages[id];
    const Stage& source = kernel_.stages[read];
    const std::vector<const Place*> found = places.of(read);
    if (found.size() != 1) wrong("The loops run stage {} {} times; each runs once.", source.name, found.size());
    const Place& written = *found[0];
    if (written.number >= place.number)
      wrong("Stage {} runs before stage {}, which it reads.", stage.name, source.name);
    size_t shared = 0;
    while (shared < written.loops.size() && shared < place.loops.size() &&
           written.loops[shared] == place.loops[shared]) {
      ++shared;
    }
    if (shared > written.result) {
      wrong("Stage {} reads stage {} inside of the loop over {} that computes it.", stage.name, source.name,
            kernel_.axes[written.loops[written.result]->axis].name);
    }
    if (source.storage == Storage::registers && shared < written.result) {
      wrong("Stage {} reads stage {}, which is in registers, outside of the loop over {} that computes it.", stage.name,
            source.name, kernel_.axes[written.loops[shared]->axis].name);
    }
    if (source.storage == Storage::shared && !same_work_items(written, place) &&
        !has_barrier_between(written, place, shared)) {
      wrong("Stage {} reads stage {}, which other work-items wrote, without a barrier in between.", stage.name,
            source.name);
    }
  }

  const Kernel& kernel_;
  SizeWriter size_;
  std::set<std::string> names_;
  std::set<uint32_t> sizes_;
  bool in_groups_ = false;
  bool has_vectors_ = false;
  std::array<int64_t, 2> widths_{};  // work-items of a group; 0: no loop along the dim
};

}  // namespace

Status verify(const Kernel& kernel) {
  try {
    Verifier(kernel).verify();
    return {};
  } catch (const Error& error) {
    return error.status();
  }
}

}  // namespace tenon::codegen
