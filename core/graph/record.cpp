#include "core/graph/record.h"

#include <algorithm>
#include <cstring>

#include "core/ops/attributes.h"
#include "core/ops/op_rows.h"
#include "core/ops/record_shape.h"
#include "core/ops/rules/epilogue.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

template <class... Parts>
Status wrong(fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Code::invalid_argument, fmt::format(text, parts...));
}

bool is(const Node& node, OpId op) { return node.op == &op_row(op); }

// True for a floating-point product: its arguments have one dtype, and it takes epilogues.
bool is_real_product(const Node& node) {
  const int32_t kind = node.op->kind;
  return (kind == EP_PRIMITIVE_matmul || kind == EP_PRIMITIVE_convolution) && !is(node, OpId::quantized_matmul) &&
         !is(node, OpId::quantized_conv);
}

Status check_epilogues(const Node& node) {
  size_t next = node.own_inputs();
  for (const Epilogue& epilogue : node.epilogues) {
    const bool unary = epilogue.op->kind == EP_PRIMITIVE_unary;
    const table::ScalarRow* row =
        unary ? table::unary_row(epilogue.op->scalar_op) : table::binary_row(epilogue.op->scalar_op);
    if (epilogue.op->form != OpForm::elementwise || row == nullptr || row->result != table::ResultType::SAME) {
      return wrong("'{}' cannot be an epilogue", epilogue.op->name);
    }
    if (epilogue.input >= 0 && (unary || static_cast<size_t>(epilogue.input) != next++)) {
      return wrong("the tensors of epilogues are not the last inputs, in their order");
    }
    const auto scalars = static_cast<size_t>(ops::scalars_of(epilogue));
    const auto slot = static_cast<size_t>(epilogue.scalar);
    if (scalars != 0 && (epilogue.scalar < ops::kEpilogueSlot || slot + scalars > node.scalars.size())) {
      return wrong("the scalars of epilogue '{}' are missing", epilogue.op->name);
    }
  }
  return {};
}

Status check_arguments(const Node& node, size_t results) {
  const RecordShape shape = record_shape(*node.op);
  const size_t own = node.own_inputs();
  if (own < shape.required || own > shape.most || (!shape.listed && own < shape.most)) {
    return wrong("it has {} arguments, but takes {} to {}", own, shape.required, shape.most);
  }
  if (node.inputs.size() + results > EP_MAX_OPERANDS) return wrong("it has more than {} tensors", EP_MAX_OPERANDS);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool scalar = node.op->form == OpForm::elementwise && i < node.scalars.size();
    const bool needed = i < shape.required || i >= own || shape.listed;
    if (node.inputs[i] == 0 && needed && !scalar) return wrong("argument {} is absent", i);
  }
  if (node.scalars.size() > EP_MAX_SCALARS) return wrong("it has {} scalars", node.scalars.size());
  if (own != 0 && node.inputs[0] == 0 &&
      node.inputs.size() == static_cast<size_t>(std::count(node.inputs.begin(), node.inputs.end(), 0u)))
    return wrong("all its arguments are absent");
  if (node.epilogues.size() > EP_MAX_EPILOGUES) return wrong("it has {} epilogues", node.epilogues.size());
  if (!node.epilogues.empty() && !is_real_product(node)) return wrong("it takes no epilogues");
  if (node.op->output_count != 0 && results != node.op->output_count) {
    return wrong("it has {} results, but gives {}", results, node.op->output_count);
  }
  if (results == 0) return wrong("it has no results");
  if (node.attributes.size() * 8 < node.op->attribute_bytes) return wrong("its attributes are missing");
  return {};
}

// Checks attributes by name: axes must be axes of the first argument.
Status check_attributes(const Graph& graph, const Node& node, size_t results) {
  const int32_t rank = node.inputs.empty() || node.inputs[0] == 0 ? 0 : graph[node.inputs[0]].dims.rank();
  for (const AttributeField& field : attribute_fields(*node.op)) {
    const auto* at = reinterpret_cast<const char*>(node.attributes.data()) + field.offset;
    uint32_t number = 0;
    std::memcpy(&number, at, sizeof number);
    const auto value = static_cast<int32_t>(number);
    const bool is_axis = field.name == "axis" || field.name == "scatter.axis";
    const int32_t kind = node.op->kind;
    const bool also_of_numbers =
        kind == EP_PRIMITIVE_softmax || kind == EP_PRIMITIVE_quantise || kind == EP_PRIMITIVE_dequantise;
    const bool adds_axis = kind == EP_PRIMITIVE_one_hot;
    const int32_t end = also_of_numbers ? std::max(rank, 1) : rank + (adds_axis ? 1 : 0);
    if (is_axis && field.type == AttributeType::i32 && (value < 0 || value >= end)) {
      return wrong("its axis is {}, but its first argument has rank {}", value, rank);
    }
    if (field.name == "axes" && field.type == AttributeType::u32 && uint64_t{number} >> rank != 0) {
      return wrong("its axes are the bits of {}, but its first argument has rank {}", number, rank);
    }
    if (field.name == "window.spatial_rank" && number > 3) return wrong("its spatial rank is {}", value);
    if (field.name == "count" && field.type == AttributeType::i32 && number != results) {
      return wrong("it has {} parts, but {} results", value, results);
    }
    if (field.type == AttributeType::dims && (value < 0 || value > EP_MAX_RANK)) {
      return wrong("its {} are of rank {}", field.name, value);
    }
  }
  return {};
}

// Checks that the arguments of products and of concat have one dtype, and those of concat one rank.
Status check_types(const Graph& graph, const Node& node) {
  const bool joins = is(node, OpId::concat);
  if (!joins && !is_real_product(node)) return {};
  const Value& first = graph[node.inputs[0]];
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == 0) continue;
    const Value& other = graph[node.inputs[i]];
    if (other.dtype != first.dtype || (joins && other.dims.rank() != first.dims.rank())) {
      return wrong("argument {} is {} of rank {}, but the first is {} of rank {}", i, dtype_name(other.dtype),
                   other.dims.rank(), dtype_name(first.dtype), first.dims.rank());
    }
  }
  return {};
}

// Checks the lists of norms: as long as the axis of a batch norm, or as the axes of a layer norm from its first one on.
Status check_lists(Graph& graph, const Node& node) {
  const bool batch = is(node, OpId::batch_norm) || is(node, OpId::batch_norm_with_statistics);
  const bool layer =
      is(node, OpId::layer_norm) || is(node, OpId::layer_norm_with_statistics) || is(node, OpId::rms_norm);
  if (!batch && !layer) return {};
  if (node.scalars.empty()) return wrong("its epsilon is missing");
  const SymDims& dims = graph[node.inputs[0]].dims;
  const int32_t axis = node.attributes_as<AxisAttributes>().axis;
  const int32_t end = batch ? axis + 1 : dims.rank();
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == 0) continue;
    const SymDims& list = graph[node.inputs[i]].dims;
    bool same = list.rank() == end - axis;
    for (int32_t k = 0; same && k < list.rank(); ++k) {
      same = graph.arena().known({Relation::eq, list[k], dims[axis + k]}) == true;
    }
    if (!same) return wrong("argument {} is not a list along axis {}", i, axis);
  }
  return {};
}

// Checks requirements of single ops.
Status check_op(const Node& node) {
  const bool needs_first = is(node, OpId::clamp) || is(node, OpId::fma);
  if (needs_first && node.inputs[0] == 0) return wrong("argument 0 is absent");
  if (is(node, OpId::batch_norm_backward) && (node.inputs[3] == 0 || node.inputs[4] == 0)) {
    return wrong("the statistics are absent");
  }
  if (is(node, OpId::copy_from)) return wrong("it writes a tensor, and a graph has values only");
  if (is(node, OpId::to) && node.device == nullptr) return wrong("its device is missing");
  const bool attends = is(node, OpId::attention) || is(node, OpId::attention_with_log_sum);
  if (attends && node.scalars.size() != 2) return wrong("it has {} of 2 scalars", node.scalars.size());
  if (is(node, OpId::group_norm) && node.scalars.empty()) return wrong("its epsilon is missing");
  if (is(node, OpId::arange) && node.scalars.size() != 3) return wrong("it has {} of 3 scalars", node.scalars.size());
  return {};
}

}  // namespace

Status check_record(Graph& graph, const Node& node, size_t results) {
  TENON_RETURN_IF_ERROR(check_arguments(node, results));
  TENON_RETURN_IF_ERROR(check_attributes(graph, node, results));
  TENON_RETURN_IF_ERROR(check_types(graph, node));
  TENON_RETURN_IF_ERROR(check_lists(graph, node));
  TENON_RETURN_IF_ERROR(check_op(node));
  return check_epilogues(node);
}

}  // namespace tenon::graph
