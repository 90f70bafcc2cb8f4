#include "sdk/onnx/importer/parsed_model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "primitives/text/format.h"
#include "sdk/onnx/proto/wire.h"
#include "sdk/onnx/schema/schema.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

namespace proto = onnx_proto;
using proto::AttributeProto;

// The newest version of the file format whose changes the reader knows. Versions since 8 only add element types, which
// the reader knows by name, and metadata.
constexpr int64_t kNewestIrVersion = 14;
// From this version on a file states the versions of its operators.
constexpr int64_t kIrVersionWithOpsets = 3;

std::string quoted(std::string_view text) { return fmt::format("'{}'", text); }

class ProgramReader {
 public:
  ProgramReader(const proto::ModelProto& model, TensorFiles files, Device device, std::vector<std::string>* refusals)
      : model_(model), graph_(*model.graph), files_(std::move(files)), refusals_(*refusals) {
    parsed_.device = device;
  }

  ParsedModel read() {
    read_versions();
    read_weights();
    read_inputs();
    read_nodes();
    read_outputs();
    return std::move(parsed_);
  }

 private:
  int32_t define(std::string_view name, const std::string& by) {
    if (values_.find(name) != values_.end())
      malformed(fmt::format("the value {} is made a second time, by {}", quoted(name), by));
    const auto id = static_cast<int32_t>(parsed_.names.size());
    parsed_.names.emplace_back(name);
    parsed_.constants.emplace_back();
    values_.emplace(parsed_.names.back(), id);
    return id;
  }

  void refuse(std::string line) { refusals_.push_back(std::move(line)); }

  void read_versions() {
    parsed_.info.producer = std::string(model_.producer_name);
    if (!model_.producer_version.empty()) parsed_.info.producer += fmt::format(" {}", model_.producer_version);
    parsed_.info.domain = std::string(model_.domain);
    parsed_.info.graph = std::string(graph_.name);
    parsed_.info.description = std::string(model_.doc_string);
    parsed_.info.version = model_.model_version;
    for (const proto::StringStringEntryProto& entry : model_.metadata_props) {
      parsed_.info.metadata.emplace(entry.key, entry.value);
    }
    parsed_.info.ir_version = model_.ir_version;
    if (model_.ir_version < 1) malformed(fmt::format("its IR version is {}; the first is 1", model_.ir_version));
    if (model_.ir_version > kNewestIrVersion) {
      refuse(fmt::format("the file is of IR version {}; versions up to {} are known.", model_.ir_version,
                         kNewestIrVersion));
    }
    for (const proto::OperatorSetIdProto& opset : model_.opset_import) {
      const std::string domain = opset.domain == "ai.onnx" ? std::string() : std::string(opset.domain);
      int64_t& version = opsets_.emplace(domain, opset.version).first->second;
      version = std::max(version, opset.version);  // of several versions the highest counts
    }
    if (opsets_.empty() && model_.ir_version >= kIrVersionWithOpsets)
      malformed("it does not say which versions of operators it wants (opset_import)");
    if (opsets_.empty()) opsets_[""] = 1;
    parsed_.info.opset = opsets_.count("") != 0 ? opsets_[""] : 0;
    if (parsed_.info.opset > kNewestOpset) {
      refuse(
          fmt::format("the model wants version {} of the operators of ai.onnx; versions up to {} are known. Export it "
                      "with opset_version={}, or convert it with onnx.version_converter.convert_version(model, {}).",
                      parsed_.info.opset, kNewestOpset, kNewestOpset, kNewestOpset));
    }
    if (!model_.functions.empty()) {
      refuse(
          fmt::format("the model defines {} operators of its own (model-local functions).", model_.functions.size()));
    }
    if (!graph_.sparse_initializer.empty()) {
      refuse(fmt::format("the model has {} sparse weights.", graph_.sparse_initializer.size()));
    }
  }

  void read_weights() {
    parsed_.info.weights = graph_.initializer.size();
    for (const proto::TensorProto& tensor : graph_.initializer) {
      const int32_t id = define(tensor.name, "a weight");
      Result<TensorHeader> header = check_tensor(tensor, files_);
      if (!header.ok() && header.status().code() == Code::unsupported) {
        refuse(header.status().message());
        continue;
      }
      throw_if_error(header.status());
      parsed_.info.weight_bytes += static_cast<uint64_t>(header->bytes);
      const Device where = stays_on_host(header->dtype, header->elements) ? Device::host() : parsed_.device;
      parsed_.constants[static_cast<size_t>(id)] = value_or_throw(read_tensor(tensor, files_, where));
    }
  }

  // Fills `info`. Returns false, and adds a refusal, if the value is no tensor that Tenon can hold.
  bool read_value_info(const proto::ValueInfoProto& value, const char* what, ValueInfo* info) {
    info->name = std::string(value.name);
    if (!value.type || !value.type->tensor_type) {
      refuse(
          fmt::format("{} {}{}", what, quoted(value.name),
                      value.type ? fmt::format(" is a {}, not a tensor.", type_name(*value.type)) : " has no type."));
      return false;
    }
    const proto::TypeProto_Tensor& tensor = *value.type->tensor_type;
    info->dtype = dtype_of_onnx(tensor.elem_type);
    if (info->dtype == DType::none) {
      refuse(fmt::format("{} {} holds {}, an element type that Tenon does not have.", what, quoted(value.name),
                         onnx_type_name(tensor.elem_type)));
      return false;
    }
    if (!tensor.shape) return true;
    info->has_shape = true;
    if (tensor.shape->dim.size() > EP_MAX_RANK) {
      refuse(fmt::format("{} {} has rank {}; at most {} is possible.", what, quoted(value.name),
                         tensor.shape->dim.size(), EP_MAX_RANK));
      return false;
    }
    for (const proto::TensorShapeProto_Dimension& dim : tensor.shape->dim) {
      const bool fixed = dim.has(proto::TensorShapeProto_Dimension::k_dim_value);
      if (fixed && dim.dim_value < 0)
        malformed(fmt::format("{} has the negative dim {}", quoted(value.name), dim.dim_value));
      info->dims.push_back({fixed ? dim.dim_value : -1, std::string(dim.dim_param)});
    }
    return true;
  }

  static std::string type_name(const proto::TypeProto& type) {
    if (type.sequence_type) return "sequence";
    if (type.map_type) return "map";
    if (type.optional_type) return "optional";
    return type.sparse_tensor_type ? "sparse tensor" : "value without a type";
  }

  void read_inputs() {
    std::set<std::string_view> names;
    for (const proto::ValueInfoProto& input : graph_.input) {
      if (input.name.empty()) malformed("it has an input without a name");
      if (!names.insert(input.name).second)
        malformed(fmt::format("it has two inputs with the name {}", quoted(input.name)));
      if (values_.count(input.name) != 0) continue;  // before IR version 4, files list weights as inputs too
      ValueInfo info;
      const bool usable = read_value_info(input, "input", &info);
      const int32_t id = define(input.name, "an input");
      parsed_.input_values.push_back(id);
      parsed_.inputs.push_back(info);
      if (usable) parsed_.declared[id] = info;
    }
  }

  void read_attribute(const Node& node, const AttributeProto& from, Attribute* to) {
    if (!from.ref_attr_name.empty())
      malformed(fmt::format("{} refers to an attribute of a function, but is in none", label(node)));
    to->f = from.f;
    to->i = from.i;
    to->s = std::string(from.s);
    to->floats = from.floats;
    to->ints = from.ints;
    for (std::string_view text : from.strings) to->strings.emplace_back(text);
    const ContentRow* content = content_of(node, from);
    to->kind = content->kind;
    if (to->kind == Attribute::Kind::tensor) read_tensor_attribute(node, from, to);
  }

  // The forms in which an attribute holds its content.
  struct ContentRow {
    int32_t type;
    Attribute::Kind kind;
    bool (*there)(const AttributeProto& from);
  };

  // The row for the content of `from`. The tag and the filled field must agree. Files of IR version 1 have no tags, and
  // writers leave out fields that are 0 or empty.
  static const ContentRow* content_of(const Node& node, const AttributeProto& from) {
    using A = AttributeProto;
    using Kind = Attribute::Kind;
    static constexpr ContentRow kRows[] = {
        {A::AttributeType_FLOAT, Kind::number, [](const A& a) { return a.has(A::k_f); }},
        {A::AttributeType_INT, Kind::integer, [](const A& a) { return a.has(A::k_i); }},
        {A::AttributeType_STRING, Kind::text, [](const A& a) { return a.has(A::k_s); }},
        {A::AttributeType_TENSOR, Kind::tensor, [](const A& a) { return a.t != nullptr; }},
        {A::AttributeType_FLOATS, Kind::numbers, [](const A& a) { return !a.floats.empty(); }},
        {A::AttributeType_INTS, Kind::integers, [](const A& a) { return !a.ints.empty(); }},
        {A::AttributeType_STRINGS, Kind::texts, [](const A& a) { return !a.strings.empty(); }},
        {A::AttributeType_UNDEFINED, Kind::other, [](const A& a) {
           return a.g || a.sparse_tensor || a.tp || !a.tensors.empty() || !a.graphs.empty() ||
                  !a.sparse_tensors.empty() || !a.type_protos.empty();
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
      malformed(fmt::format("{} has the attribute {}, which is marked as {} and holds {}", label(node),
                            quoted(from.name), attribute_kind_name(tagged->kind), attribute_kind_name(found->kind)));
    }
    return found;
  }

  void read_tensor_attribute(const Node& node, const AttributeProto& from, Attribute* to) {
    if (!from.t)
      malformed(fmt::format("{} has the tensor attribute {} without a tensor", label(node), quoted(from.name)));
    // The data of an attribute must be in the model file. External data here would read other files unannounced.
    if (from.t->data_location == proto::TensorProto::DataLocation_EXTERNAL) {
      malformed(fmt::format("{} has the attribute {} with external data, which is for weights only", label(node),
                            quoted(from.name)));
    }
    Result<Tensor> tensor = read_tensor(*from.t, files_, Device::host());
    if (!tensor.ok() && tensor.status().code() == Code::unsupported)
      return refuse(describe_node(node) + tensor.status().message());
    if (!tensor.ok())
      throw Error(tensor.status().with_context(fmt::format("  in attribute {} of {}", quoted(from.name), label(node))));
    to->tensor = std::move(tensor).value();
  }

  static std::string describe_node(const Node& node) { return fmt::format("{}: {}: ", label(node), node.op_type); }

  Node read_node(const proto::NodeProto& from, size_t position) {
    Node node;
    node.position = static_cast<int32_t>(position);
    node.name = std::string(from.name);
    node.op_type = std::string(from.op_type);
    node.domain = from.domain == "ai.onnx" ? std::string() : std::string(from.domain);
    for (std::string_view name : from.input) {
      const auto found = values_.find(name);
      if (!name.empty() && found == values_.end()) {
        malformed(
            fmt::format("{} ({}) reads {}, which nothing before it makes", label(node), node.op_type, quoted(name)));
      }
      node.inputs.push_back(name.empty() ? -1 : found->second);
    }
    for (const AttributeProto& attribute : from.attribute) {
      const auto [to, fresh] = node.attributes.emplace(std::string(attribute.name), Attribute());
      if (!fresh) malformed(fmt::format("{} has two attributes with the name {}", label(node), quoted(attribute.name)));
      read_attribute(node, attribute, &to->second);
    }
    for (std::string_view name : from.output) node.outputs.push_back(name.empty() ? -1 : define(name, label(node)));
    return node;
  }

  // Finds the schema of the node and checks the node against it.
  static void check_form(Node* node) {
    node->schema = node->domain.empty() ? find_schema(node->op_type, node->version) : nullptr;
    if (node->schema == nullptr) return;
    const std::string broken = broken_form(*node->schema, *node);
    if (!broken.empty()) malformed(fmt::format("{}: {}: {}", label(*node), node->op_type, broken));
  }

  void read_nodes() {
    parsed_.info.nodes = graph_.node.size();
    for (size_t i = 0; i < graph_.node.size(); ++i) {
      Node node = read_node(graph_.node[i], i);
      const auto opset = opsets_.find(node.domain);
      if (opset == opsets_.end())
        malformed(
            fmt::format("{} is of domain {}, of which the model imports no version", label(node), quoted(node.domain)));
      node.version = opset->second;
      check_form(&node);
      std::string reason;
      node.translator = find_translator(node, &reason);
      if (node.translator == nullptr) refuse(describe_node(node) + reason);
      parsed_.nodes.push_back(std::move(node));
    }
  }

  void read_outputs() {
    for (const proto::ValueInfoProto& output : graph_.output) {
      const auto found = values_.find(output.name);
      if (found == values_.end()) malformed(fmt::format("nothing makes the output {}", quoted(output.name)));
      ValueInfo info;
      if (read_value_info(output, "output", &info)) parsed_.declared.emplace(found->second, info);
      parsed_.output_values.push_back(found->second);
      parsed_.outputs.push_back(info);
    }
    if (parsed_.outputs.empty()) malformed("it has no outputs");
  }

  const proto::ModelProto& model_;
  const proto::GraphProto& graph_;
  TensorFiles files_;
  std::vector<std::string>& refusals_;
  std::map<std::string, int64_t, std::less<>> opsets_;
  std::map<std::string, int32_t, std::less<>> values_;
  ParsedModel parsed_;
};

}  // namespace

void malformed(const std::string& what) {
  throw Error(Code::invalid_argument, fmt::format("The model is malformed: {}.", what));
}

void check_types(const ParsedModel& parsed) {
  std::vector<DType> types(parsed.names.size(), DType::none);
  for (size_t value = 0; value < types.size(); ++value) {
    if (parsed.constants[value].defined()) types[value] = parsed.constants[value].dtype();
  }
  for (size_t i = 0; i < parsed.inputs.size(); ++i)
    types[static_cast<size_t>(parsed.input_values[i])] = parsed.inputs[i].dtype;
  for (const Node& node : parsed.nodes) {
    if (node.schema == nullptr) continue;
    std::vector<DType> inputs;
    for (int32_t value : node.inputs) inputs.push_back(value < 0 ? DType::none : types[static_cast<size_t>(value)]);
    const std::string broken = broken_types(*node.schema, node, inputs);
    if (!broken.empty()) malformed(fmt::format("{}: {}: {}", label(node), node.op_type, broken));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] >= 0)
        types[static_cast<size_t>(node.outputs[i])] = output_type(*node.schema, node, inputs, i);
    }
  }
  for (size_t i = 0; i < parsed.outputs.size(); ++i)
    check_output_type(parsed, i, types[static_cast<size_t>(parsed.output_values[i])]);
}

void check_output_type(const ParsedModel& parsed, size_t i, DType made) {
  const DType declared = parsed.outputs[i].dtype;
  if (declared == DType::none || made == DType::none || declared == made) return;
  malformed(fmt::format("its output {} is declared as {}, but the nodes make {}", quoted(parsed.outputs[i].name),
                        dtype_name(declared), dtype_name(made)));
}

void name_nodes(ParsedModel* parsed) {
  parsed->labels = Labels();
  for (const Node& node : parsed->nodes) parsed->labels.add(label_with_operator(node));
}

void find_last_uses(ParsedModel* parsed) {
  parsed->drop_after.assign(parsed->names.size(), -1);
  for (size_t i = 0; i < parsed->nodes.size(); ++i) {
    for (const std::vector<int32_t>* values : {&parsed->nodes[i].outputs, &parsed->nodes[i].inputs}) {
      for (int32_t value : *values) {
        if (value >= 0) parsed->drop_after[static_cast<size_t>(value)] = static_cast<int32_t>(i);
      }
    }
  }
  for (int32_t value : parsed->output_values) parsed->drop_after[static_cast<size_t>(value)] = -1;
}

std::string_view attribute_kind_name(Attribute::Kind kind) {
  switch (kind) {
    case Attribute::Kind::number: return "a float";
    case Attribute::Kind::integer: return "an int";
    case Attribute::Kind::text: return "a string";
    case Attribute::Kind::numbers: return "a list of floats";
    case Attribute::Kind::integers: return "a list of ints";
    case Attribute::Kind::texts: return "a list of strings";
    case Attribute::Kind::tensor: return "a tensor";
    case Attribute::Kind::other: break;
  }
  return "a graph, type or sparse tensor";
}

std::string label(const Node& node) {
  return fmt::format("node {}{}", node.position, node.name.empty() ? "" : fmt::format(" ({})", node.name));
}

std::string label_with_operator(const Node& node) {
  return node.name.empty() ? fmt::format("{} ({})", label(node), node.op_type) : label(node);
}

bool stays_on_host(DType dtype, int64_t elements) {
  return elements <= kHostElements && (dtype == DType::i64 || dtype == DType::i32 || dtype == DType::boolean);
}

ParsedModel parse_model(std::string_view bytes, TensorFiles files, Device device, std::vector<std::string>* refusals) {
  if (bytes.empty()) malformed("it is empty");
  proto::ModelProto model;
  if (const std::string error = proto::decode(bytes, &model); !error.empty()) {
    throw Error(Code::invalid_argument, fmt::format("This is not an ONNX model, or it is damaged. {}", error));
  }
  if (!model.graph) throw Error(Code::invalid_argument, "This is not an ONNX model: it holds no graph.");
  return ProgramReader(model, std::move(files), device, refusals).read();
}

}  // namespace tenon::onnx
