#include "core/codegen/lower/lower.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/codegen/axes/axes.h"
#include "core/codegen/decompose/decompose.h"
#include "core/ops/attributes.h"
#include "core/ops/op_rows.h"
#include "core/ops/ops.h"
#include "core/ops/scalar_patch.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/axis.h"
#include "primitives/infer/view-inl.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::NodeId;
using graph::Value;
using graph::ValueId;

bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// Numbers of f16 and bf16 are computed as rounded f32.
DType wide(DType dtype) { return is_narrow(dtype) ? DType::f32 : dtype; }

// The position at which a value is read: one size per axis, outermost first.
using Index = std::vector<SymDim>;

class Lowering {
 public:
  Lowering(Graph& graph, std::string name) : graph_(graph), axes_(graph), kernel_(std::move(name), graph.arena()) {
    axes_.align(std::vector<ValueId>(graph.outputs().begin(), graph.outputs().end()));
  }

  Kernel run() {
    const symbolic::ArenaScope scope(kernel_.arena);
    for (const ValueId id : graph_.inputs()) add_buffer(id, "in", false);
    for (const ValueId id : graph_.outputs()) add_buffer(id, "out", true);
    find_shared();
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) add(id);
    for (size_t i = 0; i < graph_.outputs().size(); ++i) store(i);
    find_parameters();
    return std::move(kernel_);
  }

 private:
  template <class... Parts>
  [[noreturn]] static void refuse(fmt::format_string<const Parts&...> text, const Parts&... parts) {
    throw Error(Code::unsupported, fmt::format(text, parts...));
  }

  const graph::Node& node(NodeId id) const { return graph_.node(id); }
  ValueId result(NodeId id) const { return node(id).results[0]; }

  void add_buffer(ValueId id, const char* role, bool output) {
    SymDim elements = 1;
    for (const SymDim size : dims_of(graph_, id)) elements *= size;
    const Id made =
        kernel_.add_buffer(fmt::format("{}{}", role, kernel_.buffers.size()), graph_[id].dtype, elements, output);
    if (!output) loads_[id] = made;
  }

  // The kernel's axis for an axis of the graph.
  Id axis(AxisId axis) {
    const auto known = kernel_axes_.find(axis);
    if (known != kernel_axes_.end()) return known->second;
    const Id made = kernel_.add_axis(fmt::format("a{}", kernel_.axes.size()), axes_.size(axis));
    return kernel_axes_[axis] = made;
  }
  std::vector<Id> kernel_axes(const std::vector<AxisId>& list) {
    std::vector<Id> made;
    for (const AxisId one : list) made.push_back(axis(one));
    return made;
  }
  // The index of each element of `value` itself.
  Index here(ValueId value) {
    Index index;
    for (const AxisId one : axes_.of(value)) index.push_back(kernel_.at(axis(one)));
    return index;
  }

  // Finds the axes that all outputs and all reductions have. An item of a launch is a position on them.
  void find_shared() {
    std::vector<ValueId> values(graph_.outputs().begin(), graph_.outputs().end());
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) {
      if (axes_.access(id).role == Role::reduce) values.push_back(result(id));
    }
    shared_ = sorted_axes(values[0]);
    for (const ValueId value : values) {
      const std::vector<AxisId> own = sorted_axes(value);
      std::vector<AxisId> both;
      std::set_intersection(shared_.begin(), shared_.end(), own.begin(), own.end(), std::back_inserter(both));
      shared_ = std::move(both);
    }
  }

  std::vector<AxisId> sorted_axes(ValueId value) const {
    std::vector<AxisId> axes = axes_.of(value);
    std::sort(axes.begin(), axes.end());
    return axes;
  }

  // True if a map should be a stage: several stages read it, or each of its numbers is read more than once, such as a
  // factor of a row. It must have all shared axes, because a value without them would be computed again in each item.
  bool worth_a_stage(ValueId made) const {
    const std::vector<AxisId> own = sorted_axes(made);
    if (!std::includes(own.begin(), own.end(), shared_.begin(), shared_.end())) return false;
    const std::vector<graph::Use>& uses = graph_[made].uses;
    const auto wider = [&](const graph::Use& use) {
      return axes_.access(use.node).role == Role::map && axes_.of(result(use.node)).size() > own.size();
    };
    return uses.size() + (graph_.is_output(made) ? 1 : 0) >= 2 || std::any_of(uses.begin(), uses.end(), wider);
  }

  // Makes stages of reductions, and of maps that should be stages.
  void add(NodeId id) {
    const Access& access = axes_.access(id);
    const ValueId made = result(id);
    if (access.role == Role::reduce) return reduce(id);
    if (access.role != Role::map) refuse("{} is neither a map nor a reduction.", node(id).op->name);
    if (access.view || access.cost == 0 || !worth_a_stage(made)) return;
    const Id value = compute(id, here(made), kNone);
    stages_[made] = kernel_.add_value(fmt::format("v{}", made), kernel_axes(axes_.of(made)), value);
  }

  // True if the reduction is over one number, which is then the result.
  bool is_of_one(NodeId id) const {
    if (axes_.access(id).picks) return false;
    for (const std::string_view op : {"sum", "mean", "max", "min", "prod"}) {
      if (table::reduce_row(node(id).op->scalar_op)->name == op) return true;
    }
    return false;
  }

  void reduce(NodeId id) {
    const ValueId from = node(id).inputs[0], made = result(id);
    const std::vector<AxisId> kept = axes_.of(made);
    Index index;
    std::vector<Id> over;
    size_t next = 0;
    for (int32_t dim = 0; dim < graph_[from].dims.rank(); ++dim) {
      const bool reduced = (axes_.access(id).reduced >> dim & 1) != 0;
      for (const AxisId of : axes_.of(from, dim)) {
        if (!reduced && next >= kept.size()) refuse("{} has lost an axis.", node(id).op->name);
        const Id at = axis(reduced ? of : kept[next++]);
        if (reduced) over.push_back(at);
        index.push_back(kernel_.at(at));
      }
    }
    if (over.empty() && is_of_one(id)) {
      Id value = read(from, index, kNone);
      if (wide(graph_[made].dtype) != wide(graph_[from].dtype)) value = kernel_.cast(graph_[made].dtype, value);
      stages_[made] = kernel_.add_value(fmt::format("v{}", made), kernel_axes(kept), value);
      return;
    }
    if (over.empty()) over.push_back(kernel_.add_axis(fmt::format("a{}", kernel_.axes.size()), 1));
    if (axes_.access(id).picks) return pick(id, index, over);
    const Id value = read(from, index, kNone);
    const std::string_view op = table::reduce_row(node(id).op->scalar_op)->name;
    stages_[made] = kernel_.add_reduce(fmt::format("v{}", made), op, kernel_axes(kept), over, value);
    narrow_[made] = is_narrow(graph_[made].dtype);
  }

  // A pick as a maximum over the row: the element at the position, and -infinity in place of all others.
  void pick(NodeId id, const Index& index, const std::vector<Id>& over) {
    const ValueId from = node(id).inputs[0], which = node(id).inputs[1], made = result(id);
    const int32_t dim = static_cast<int32_t>(node(id).attributes_as<AxisAttributes>().axis);
    Id number = read(which, input_index(id, 1, here(made)), kNone);
    if (graph_[which].dtype != DType::i64) number = kernel_.cast(DType::i64, number);
    const auto buffer = loads_.find(which);
    const Id limit = kernel_.index(dims_of(graph_, from)[dim]);
    const Id place =
        kernel_.add_value(fmt::format("i{}", made), kernel_axes(axes_.of(made)),
                          kernel_.position(number, limit, buffer == loads_.end() ? Id{0} : buffer->second));
    const Id here = kernel_.binary("eq", kernel_.index(position(from, dim, index)), kernel_.read(place));
    const Id none = kernel_.constant(wide(graph_[from].dtype), -std::numeric_limits<double>::infinity());
    const Id value = kernel_.ternary("where", here, read(from, index, kNone), none);
    stages_[made] = kernel_.add_reduce(fmt::format("v{}", made), "max", kernel_axes(axes_.of(made)), over, value);
    narrow_[made] = is_narrow(graph_[made].dtype);
  }

  void store(size_t output) {
    const ValueId id = graph_.outputs()[output];
    const Index index = here(id);
    Id value = read(id, index, kNone);
    if (is_narrow(graph_[id].dtype)) value = kernel_.cast(graph_[id].dtype, value);
    kernel_.add_store(fmt::format("s{}", output), static_cast<Id>(graph_.inputs().size() + output), linear(id, index),
                      kernel_axes(axes_.of(id)), value);
  }

  SymDim joined(const std::vector<AxisId>& list, const Index& index) const {
    SymDim sum = 0;
    for (size_t i = 0; i < list.size(); ++i) sum = sum * axes_.size(list[i]) + index[i];
    return sum;
  }
  SymDim linear(ValueId id, const Index& index) const { return joined(axes_.of(id), index); }

  // `number` split into an index on each axis of `list`.
  Index split(SymDim number, const std::vector<AxisId>& list) const {
    Index index(list.size(), 0);
    const auto empty = [&](AxisId one) { return identical(axes_.size(one), SymDim(0)); };
    if (std::any_of(list.begin(), list.end(), empty)) return index;  // no element is read
    for (size_t i = list.size(); i-- > 0;) {
      index[i] = i == 0 ? number : modulo(number, axes_.size(list[i]));
      number = floor_div(number, axes_.size(list[i]));
    }
    return index;
  }

  // The element of `id` at `index`. If `where` (a bool) is false, nothing is read.
  Id read(ValueId id, const Index& index, Id where) {
    std::vector<uint64_t> key{id, where};
    for (const SymDim one : index) key.push_back(one.word());
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    const Id made = element(id, index, where);
    return known_[std::move(key)] = made;
  }

  Id element(ValueId id, const Index& index, Id where) {
    if (const auto load = loads_.find(id); load != loads_.end()) {
      const Id loaded = kernel_.load(load->second, linear(id, index), where);
      return is_narrow(graph_[id].dtype) ? kernel_.cast(DType::f32, loaded) : loaded;
    }
    if (graph_[id].constant.defined()) return constant(id);
    if (const auto stage = stages_.find(id); stage != stages_.end() && is_here(id, index)) {
      const Id value = kernel_.read(stage->second);
      return narrow_[id] ? rounded(value, graph_[id].dtype) : value;
    }
    const NodeId maker = graph_[id].producer;
    if (maker == kNoNode || axes_.access(maker).role != Role::map) {
      refuse("%{} is read at other positions than it is computed.", id);
    }
    return compute(maker, index, where);
  }

  bool is_here(ValueId id, const Index& index) {
    const Index own = here(id);
    return std::equal(index.begin(), index.end(), own.begin(), own.end(),
                      [](SymDim a, SymDim b) { return identical(a, b); });
  }

  // The number of a constant of one element.
  Id constant(ValueId id) {
    const Tensor& tensor = graph_[id].constant;
    if (tensor.elements() != 1) refuse("%{} is a constant of {} elements.", id, tensor.elements());
    const DType dtype = tensor.dtype();
    if (is_floating(dtype)) return kernel_.constant(wide(dtype), cast_to(tensor, DType::f64).to_host<double>()[0]);
    return kernel_.constant_integer(dtype, cast_to(tensor, DType::i64).to_host<int64_t>()[0]);
  }
  static Tensor cast_to(const Tensor& tensor, DType dtype);

  Id rounded(Id value, DType dtype) {
    return is_narrow(dtype) ? kernel_.cast(DType::f32, kernel_.cast(dtype, value)) : value;
  }

  // The index at which `id` reads its input `i` for the element `index` of its result. For dims without a link the op
  // decides.
  Index input_index(NodeId id, uint32_t i, const Index& index, SymDim shift = 0) {
    const ValueId in = node(id).inputs[i], out = result(id);
    std::map<int32_t, Index> by_dim;  // by first dim of the input
    const auto take = [&](ValueId of, const Index& from, int32_t first, int32_t count) {
      size_t begin = 0, end = 0;
      for (int32_t dim = 0; dim < first + count; ++dim) (dim < first ? begin : end) += axes_.of(of, dim).size();
      return Index(from.begin() + static_cast<ptrdiff_t>(begin), from.begin() + static_cast<ptrdiff_t>(begin + end));
    };
    std::vector<bool> linked(static_cast<size_t>(graph_[in].dims.rank()), false);
    for (const Link& link : axes_.access(id).links) {
      if (link.input != i) continue;
      by_dim[link.in_first] =
          through(list_of(in, link.in_first, link.in_count), list_of(out, link.out_first, link.out_count),
                  take(out, index, link.out_first, link.out_count));
      for (int32_t dim = 0; dim < link.in_count; ++dim) linked[static_cast<size_t>(link.in_first + dim)] = true;
    }
    for (int32_t dim = 0; dim < graph_[in].dims.rank(); ++dim) {
      const std::vector<AxisId> list = axes_.of(in, dim);
      if (linked[static_cast<size_t>(dim)] || list.empty()) continue;
      by_dim[dim] = split(
          number_of(id, dim, [&](int32_t at) { return joined(axes_.of(out, at), take(out, index, at, 1)); }) + shift,
          list);
    }
    Index found;
    for (const auto& [dim, part] : by_dim) found.insert(found.end(), part.begin(), part.end());
    return found;
  }

  std::vector<AxisId> list_of(ValueId id, int32_t first, int32_t count) const {
    std::vector<AxisId> list;
    for (int32_t dim = first; dim < first + count; ++dim) {
      const std::vector<AxisId> of = axes_.of(id, dim);
      list.insert(list.end(), of.begin(), of.end());
    }
    return list;
  }

  // Converts an index on `out` into one on `in`; both have the same elements in row-major order.
  Index through(const std::vector<AxisId>& in, const std::vector<AxisId>& out, const Index& index) const {
    size_t front = 0, back = 0;
    const size_t least = std::min(in.size(), out.size());
    while (front < least && in[front] == out[front]) ++front;
    while (back < least - front && in[in.size() - 1 - back] == out[out.size() - 1 - back]) ++back;
    const auto middle = [&](const auto& list) {
      return std::vector(list.begin() + static_cast<ptrdiff_t>(front), list.end() - static_cast<ptrdiff_t>(back));
    };
    Index found(index.begin(), index.begin() + static_cast<ptrdiff_t>(front));
    const Index between = in.size() - front - back == 1 && out.size() - front - back == 1
                              ? middle(index)
                              : split(joined(middle(out), middle(index)), middle(in));
    found.insert(found.end(), between.begin(), between.end());
    found.insert(found.end(), index.end() - static_cast<ptrdiff_t>(back), index.end());
    return found;
  }

  infer::BasicSliceRange<SymDim> slice_range(NodeId id, SymDim size) const {
    const auto& attributes = node(id).attributes_as<SliceAttributes>();
    const SymCall call = call_of(node(id));
    return value_or_throw(infer::slice_range<SymDim>("slice", size, size_of(call, attributes.start),
                                                     size_of(call, attributes.end), attributes.step));
  }
  // The number of elements that a pad puts before its input along `dim`.
  SymDim padding(NodeId id, int32_t dim) const {
    return size_of(call_of(node(id)), node(id).attributes_as<PadAttributes>().window.low[dim]);
  }

  // The index on dim `dim` of the input of an op without links. `number` gives the index on a dim of the result.
  template <class Number>
  SymDim number_of(NodeId id, int32_t dim, const Number& number) const {
    const SymDim size = dims_of(graph_, node(id).inputs[0])[dim];
    if (node(id).op == &op_row(OpId::slice)) {
      const auto range = slice_range(id, size);
      return range.start + number(dim) * range.step;
    }
    if (node(id).op == &op_row(OpId::slice_scatter)) {
      const auto range = slice_range(id, size);
      return floor_div(number(dim) - range.start, SymDim(range.step));
    }
    if (node(id).op == &op_row(OpId::pad)) return number(dim) - padding(id, dim);
    if (node(id).op == &op_row(OpId::select)) {
      const auto& attributes = node(id).attributes_as<SelectAttributes>();
      return value_or_throw(infer::selected<SymDim>("select", size, dim, size_of(call_of(node(id)), attributes.index)));
    }
    if (node(id).op == &op_row(OpId::concat)) return number(dim);
    refuse("{} reads dim {} in a way that the compiler does not know.", node(id).op->name, dim);
  }

  Id compute(NodeId id, const Index& index, Id where) {
    const OpInfo& op = *node(id).op;
    const DType dtype = graph_[result(id)].dtype;
    if (op.form == OpForm::elementwise) return elementwise(id, index, where);
    if (axes_.access(id).view) return read(node(id).inputs[0], input_index(id, 0, index), where);
    if (&op == &op_row(OpId::full)) return rounded(scalar(id, 0, dtype), dtype);
    if (&op == &op_row(OpId::concat)) return concat(id, index, where);
    if (&op == &op_row(OpId::pad)) return pad(id, index, where);
    if (&op == &op_row(OpId::slice_scatter)) return slice_scatter(id, index, where);
    const ValueId from = node(id).inputs[0];  // a cast
    const Id value = read(from, input_index(id, 0, index), where);
    if (is_narrow(dtype)) return rounded(kernel_.cast(DType::f32, value), dtype);
    return wide(graph_[from].dtype) == dtype ? value : kernel_.cast(dtype, value);
  }

  // Launch scalar `slot` as an argument of `dtype`.
  Id scalar(NodeId id, size_t slot, DType dtype) {
    for (const Patch& patch : node(id).patches) {
      if (patch.word == kScalarPatch + slot) return kernel_.cast(wide(dtype), kernel_.index(patch.size));
    }
    const Scalar& number = node(id).scalars.at(slot);
    if (is_floating(dtype)) return kernel_.constant(wide(dtype), number.to_double());
    return kernel_.constant_integer(dtype, number.to_abi(dtype).value.i64);
  }

  Id elementwise(NodeId id, const Index& index, Id where) {
    const OpInfo& op = *node(id).op;
    const size_t arity = op.kind == EP_PRIMITIVE_unary ? 1 : op.kind == EP_PRIMITIVE_binary ? 2 : 3;
    DType compute = DType::none;
    for (size_t i = op.cond_first ? 1 : 0; i < node(id).inputs.size() && compute == DType::none; ++i) {
      if (node(id).inputs[i] != 0) compute = graph_[node(id).inputs[i]].dtype;
    }
    if (compute == DType::none) compute = graph_[result(id)].dtype;
    std::array<Id, 3> args{kNone, kNone, kNone};
    for (uint32_t i = 0; i < arity; ++i) {
      const ValueId in = i < node(id).inputs.size() ? node(id).inputs[i] : 0;
      const DType dtype = op.cond_first && i == 0 ? DType::boolean : compute;
      args[i] = in != 0 ? read(in, input_index(id, i, index), where) : scalar(id, i, dtype);
    }
    return rounded(apply(id, arity, args), graph_[result(id)].dtype);
  }

  Id apply(NodeId id, size_t arity, const std::array<Id, 3>& args) {
    const int32_t row = node(id).op->scalar_op;
    if (arity == 2) return kernel_.binary(table::binary_row(row)->name, args[0], args[1]);
    if (arity == 3) return kernel_.ternary(table::ternary_row(row)->name, args[0], args[1], args[2]);
    const std::vector<Scalar>& scalars = node(id).scalars;
    const auto parameter = [&](size_t i) { return i < scalars.size() ? scalars[i].to_double() : 0.0; };
    return kernel_.unary(table::unary_row(row)->name, args[0], parameter(0), parameter(1));
  }

  // Reads the input that contains the index; the loads of the other inputs are guarded.
  Id concat(NodeId id, const Index& index, Id where) {
    const int32_t axis = node(id).attributes_as<AxisAttributes>().axis;
    const SymDim at = position(result(id), axis, index);
    std::vector<SymDim> ends;
    SymDim end = 0;
    for (const ValueId input : node(id).inputs) ends.push_back(end += dims_of(graph_, input)[axis]);
    Id value = kNone;
    for (size_t i = ends.size(); i-- > 0;) {
      Id mine = i == 0 ? kNone : compared("ge", at, ends[i - 1]);
      if (i + 1 < ends.size()) mine = both(mine, compared("lt", at, ends[i]));
      const Index from = input_index(id, static_cast<uint32_t>(i), index, i == 0 ? SymDim(0) : 0 - ends[i - 1]);
      const Id part = read(node(id).inputs[i], from, both(where, mine));
      value = value == kNone ? part : kernel_.ternary("where", mine, part, value);
    }
    return value;
  }

  // The position on dim `dim` of `id` that `index` means.
  SymDim position(ValueId id, int32_t dim, const Index& index) const {
    size_t begin = 0;
    for (int32_t before = 0; before < dim; ++before) begin += axes_.of(id, before).size();
    const std::vector<AxisId> list = axes_.of(id, dim);
    const auto first = index.begin() + static_cast<ptrdiff_t>(begin);
    return joined(list, Index(first, first + static_cast<ptrdiff_t>(list.size())));
  }
  // The conjunction of two conditions; kNone means true.
  Id both(Id a, Id b) { return a == kNone ? b : b == kNone ? a : kernel_.binary("logical_and", a, b); }
  Id compared(const char* op, SymDim a, SymDim b) { return kernel_.binary(op, kernel_.index(a), kernel_.index(b)); }

  // Reads the input if the index lies in it, else the padding constant.
  Id pad(NodeId id, const Index& index, Id where) {
    const ValueId in = node(id).inputs[0], made = result(id);
    const SymDims from = dims_of(graph_, in), all = dims_of(graph_, made);
    Id inside = kNone;
    for (int32_t dim = 0; dim < from.rank(); ++dim) {
      const SymDim low = padding(id, dim), at = position(made, dim, index);
      if (!identical(low, SymDim(0))) inside = both(inside, compared("ge", at, low));
      if (!identical(low + from[dim], all[dim])) inside = both(inside, compared("lt", at, low + from[dim]));
    }
    const Id value = read(in, input_index(id, 0, index), both(where, inside));
    return inside == kNone ? value
                           : kernel_.ternary("where", inside, value,
                                             rounded(scalar(id, 0, graph_[made].dtype), graph_[made].dtype));
  }

  // Reads the second input if the index lies in the slice, else the first one.
  Id slice_scatter(NodeId id, const Index& index, Id where) {
    const int32_t axis = node(id).attributes_as<SliceAttributes>().axis;
    const auto range = slice_range(id, dims_of(graph_, result(id))[axis]);
    const SymDim at = position(result(id), axis, index), step = range.step;
    Id inside = both(compared("ge", at, range.start), compared("lt", at, range.start + range.length * step));
    if (range.step != 1) inside = both(inside, compared("eq", modulo(at - range.start, step), 0));
    const Id part = read(node(id).inputs[1], input_index(id, 1, index), both(where, inside));
    const Id outside = both(where, kernel_.unary("logical_not", inside));
    return kernel_.ternary("where", inside, part, read(node(id).inputs[0], input_index(id, 0, index), outside));
  }

  // Finds the symbols that are not axes, in the order of their numbers.
  void find_parameters() {
    std::set<uint32_t> symbols;
    const auto note = [&](SymDim size) { symbols.merge(symbols_of(kernel_.arena, size)); };
    for (const Axis& one : kernel_.axes) note(one.extent);
    for (const Buffer& buffer : kernel_.buffers) note(buffer.elements);
    for (const Expr& expr : kernel_.exprs) {
      if (expr.kind == ExprKind::load || expr.kind == ExprKind::index) note(expr.index);
    }
    for (const Stage& stage : kernel_.stages) {
      if (stage.kind == StageKind::store) note(stage.index);
    }
    for (const Axis& one : kernel_.axes) symbols.erase(one.symbol.index());
    for (const uint32_t symbol : symbols) {
      kernel_.add_parameter(fmt::format("n{}", kernel_.parameters.size()), kernel_.arena.atom(symbol));
    }
  }

  Graph& graph_;
  Axes axes_;
  Kernel kernel_;
  std::map<AxisId, Id> kernel_axes_;
  std::vector<AxisId> shared_;      // sorted
  std::map<ValueId, Id> loads_;     // buffers
  std::map<ValueId, Id> stages_;    // for values that have a stage
  std::map<ValueId, bool> narrow_;  // for values that have a stage: true if their numbers must be rounded
  std::map<std::vector<uint64_t>, Id> known_;
};

Tensor Lowering::cast_to(const Tensor& tensor, DType dtype) {
  const InterpreterScope eager(eager_interpreter());
  return cast(tensor, dtype);
}

}  // namespace

Kernel lower(Graph* region, std::string name) {
  decompose_rows(region);
  return Lowering(*region, std::move(name)).run();
}

}  // namespace tenon::codegen
