#include "sdk/onnx/importer/attributes.h"

#include "primitives/text/format.h"
#include "primitives/text/visible.h"

namespace tenon::onnx {
namespace {

using onnx_proto::AttributeProto;

// The forms in which an attribute holds its content.
struct ContentRow {
  int32_t type;
  Attribute::Kind kind;
  bool (*there)(const AttributeProto& from);
};

// The row for the content of `from`. Its type tag and the filled field must agree. Files of IR version 1 have no tags,
// and writers leave out fields that are 0 or empty.
const ContentRow* content_of(const Node& node, const AttributeProto& from) {
  using A = AttributeProto;
  using Kind = Attribute::Kind;
  static constexpr ContentRow kRows[] = {
      {A::AttributeType_FLOAT, Kind::number, [](const A& a) { return a.has(A::k_f); }},
      {A::AttributeType_INT, Kind::integer, [](const A& a) { return a.has(A::k_i); }},
      {A::AttributeType_STRING, Kind::text, [](const A& a) { return a.has(A::k_s); }},
      {A::AttributeType_TENSOR, Kind::tensor, [](const A& a) { return a.t != nullptr; }},
      {A::AttributeType_SPARSE_TENSOR, Kind::tensor, [](const A& a) { return a.sparse_tensor != nullptr; }},
      {A::AttributeType_GRAPH, Kind::graph, [](const A& a) { return a.g != nullptr; }},
      {A::AttributeType_FLOATS, Kind::numbers, [](const A& a) { return !a.floats.empty(); }},
      {A::AttributeType_INTS, Kind::integers, [](const A& a) { return !a.ints.empty(); }},
      {A::AttributeType_STRINGS, Kind::texts, [](const A& a) { return !a.strings.empty(); }},
      {A::AttributeType_UNDEFINED, Kind::other, [](const A& a) {
         return a.tp || !a.tensors.empty() || !a.graphs.empty() || !a.sparse_tensors.empty() || !a.type_protos.empty();
       }}};
  const ContentRow *tagged = std::end(kRows) - 1, *found = nullptr;
  for (const ContentRow& row : kRows) {
    if (from.type != 0 && row.type == from.type) tagged = &row;
    if (!row.there(from)) continue;
    if (found != nullptr) {
      malformed(fmt::format("{} has the attribute {} with both {} and {}", label(node), quoted(from.name),
                            attribute_kind_name(found->kind), attribute_kind_name(row.kind)));
    }
    found = &row;
  }
  if (from.type == 0 || found == nullptr) return found != nullptr ? found : tagged;
  if (found != tagged) {
    malformed(fmt::format("{} has the attribute {}, which is marked as {} and holds {}", label(node), quoted(from.name),
                          attribute_kind_name(tagged->kind), attribute_kind_name(found->kind)));
  }
  return found;
}

// Refuses external data in attributes: a model could read other files this way without notice.
void refuse_external(const Node& node, const AttributeProto& from, const onnx_proto::TensorProto* tensor) {
  if (tensor == nullptr || tensor->data_location != onnx_proto::TensorProto::DataLocation_EXTERNAL) return;
  malformed(fmt::format("{} has the attribute {} with external data, which is for weights only", label(node),
                        quoted(from.name)));
}

void read_tensor_attribute(const Node& node, const AttributeProto& from, TensorFiles& files,
                           std::vector<std::string>* refusals, Attribute* to) {
  if (!from.t && !from.sparse_tensor)
    malformed(fmt::format("{} has the tensor attribute {} without a tensor", label(node), quoted(from.name)));
  refuse_external(node, from, from.t.get());
  if (from.sparse_tensor) {
    refuse_external(node, from, from.sparse_tensor->values.get());
    refuse_external(node, from, from.sparse_tensor->indices.get());
  }
  Result<Value> value = from.t ? read_value(*from.t, files, Device::host())
                               : read_sparse_tensor(*from.sparse_tensor, files, Device::host());
  if (!value.ok() && value.status().code() == Code::unsupported) {
    refusals->push_back(fmt::format("{}: {}: {}", label(node), node.op_type, value.status().message()));
    return;
  }
  if (!value.ok())
    throw Error(value.status().with_context(fmt::format("  in attribute {} of {}", quoted(from.name), label(node))));
  if (value->is_tensor()) {
    to->tensor = value->tensor();
  } else {
    to->text_tensor = std::move(value).value();
  }
}

}  // namespace

Attribute read_attribute(const Node& node, const AttributeProto& from, TensorFiles& files,
                         std::vector<std::string>* refusals) {
  Attribute to;
  to.f = from.f;
  to.i = from.i;
  to.s = std::string(from.s);
  to.floats = from.floats;
  to.ints = from.ints;
  for (std::string_view text : from.strings) to.strings.emplace_back(text);
  to.kind = content_of(node, from)->kind;
  if (to.kind == Attribute::Kind::tensor) read_tensor_attribute(node, from, files, refusals, &to);
  if (to.kind == Attribute::Kind::graph && !from.g)
    malformed(fmt::format("{} has the graph attribute {} without a graph", label(node), quoted(from.name)));
  return to;
}

}  // namespace tenon::onnx
