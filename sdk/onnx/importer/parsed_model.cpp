#include "sdk/onnx/importer/parsed_model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "sdk/onnx/proto/wire.h"
#include "sdk/onnx/schema/schema.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

namespace proto = onnx_proto;
using proto::AttributeProto;

// The newest version of the file format whose changes the reader knows; those since 8 add element types, which it meets
// by name, and metadata.
constexpr int64_t kNewestIrVersion = 14;
// From this version on a file says which versions of operators it wants.
constexpr int64_t kIrVersionWithOpsets = 3;

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

class ProgramReader {
 public:
  ProgramReader(const proto::ModelProto& model, const std::string& external_root, Device device,
                std::vector<std::string>* refusals)
      : model_(model), graph_(*model.graph), files_(external_root), refusals_(*refusals) {
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
      malformed("the value " + quoted(name) + " is made a second time, by " + by);
    const auto id = static_cast<int32_t>(parsed_.names.size());
    parsed_.names.emplace_back(name);
    parsed_.constants.emplace_back();
    values_.emplace(parsed_.names.back(), id);
    return id;
  }

  void refuse(std::string line) { refusals_.push_back(std::move(line)); }

  void read_versions() {
    parsed_.info.producer = std::string(model_.producer_name);
    if (!model_.producer_version.empty()) parsed_.info.producer += " " + std::string(model_.producer_version);
    parsed_.info.domain = std::string(model_.domain);
    parsed_.info.ir_version = model_.ir_version;
    if (model_.ir_version < 1) malformed("its IR version is " + std::to_string(model_.ir_version) + "; the first is 1");
    if (model_.ir_version > kNewestIrVersion) {
      refuse("the file is of IR version " + std::to_string(model_.ir_version) + "; versions up to " +
             std::to_string(kNewestIrVersion) + " are known.");
    }
    for (const proto::OperatorSetIdProto& opset : model_.opset_import) {
      const std::string domain = opset.domain == "ai.onnx" ? std::string() : std::string(opset.domain);
      int64_t& version = opsets_.emplace(domain, opset.version).first->second;
      version = std::max(version, opset.version);  // of several the highest counts
    }
    if (opsets_.empty() && model_.ir_version >= kIrVersionWithOpsets)
      malformed("it does not say which versions of operators it wants (opset_import)");
    if (opsets_.empty()) opsets_[""] = 1;
    parsed_.info.opset = opsets_.count("") != 0 ? opsets_[""] : 0;
    if (parsed_.info.opset > kNewestOpset) {
      refuse("the model wants version " + std::to_string(parsed_.info.opset) +
             " of the operators of ai.onnx; versions up to " + std::to_string(kNewestOpset) +
             " are known. Export it with opset_version=" + std::to_string(kNewestOpset) +
             ", or convert it with onnx.version_converter.convert_version(model, " + std::to_string(kNewestOpset) +
             ").");
    }
    if (!model_.functions.empty()) {
      refuse("the model defines " + std::to_string(model_.functions.size()) +
             " operators of its own (model-local functions).");
    }
    if (!graph_.sparse_initializer.empty()) {
      refuse("the model has " + std::to_string(graph_.sparse_initializer.size()) + " sparse weights.");
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

  // Fills `info`; false (and a refusal) when the value is no tensor Tenon can hold.
  bool read_value_info(const proto::ValueInfoProto& value, const char* what, ValueInfo* info) {
    info->name = std::string(value.name);
    if (!value.type || !value.type->tensor_type) {
      refuse(std::string(what) + " " + quoted(value.name) +
             (value.type ? " is a " + type_name(*value.type) + ", not a tensor." : " has no type."));
      return false;
    }
    const proto::TypeProto_Tensor& tensor = *value.type->tensor_type;
    info->dtype = dtype_of_onnx(tensor.elem_type);
    if (info->dtype == DType::none) {
      refuse(std::string(what) + " " + quoted(value.name) + " holds " + onnx_type_name(tensor.elem_type) +
             ", an element type that Tenon does not have.");
      return false;
    }
    if (!tensor.shape) return true;
    info->has_shape = true;
    if (tensor.shape->dim.size() > EP_MAX_RANK) {
      refuse(std::string(what) + " " + quoted(value.name) + " has rank " + std::to_string(tensor.shape->dim.size()) +
             "; at most " + std::to_string(EP_MAX_RANK) + " is possible.");
      return false;
    }
    for (const proto::TensorShapeProto_Dimension& dim : tensor.shape->dim) {
      const bool fixed = dim.has(proto::TensorShapeProto_Dimension::k_dim_value);
      if (fixed && dim.dim_value < 0)
        malformed(quoted(value.name) + " has the negative dim " + std::to_string(dim.dim_value));
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
      if (!names.insert(input.name).second) malformed("it has two inputs with the name " + quoted(input.name));
      if (values_.count(input.name) != 0) continue;  // a weight that files of before IR version 4 list as an input too
      ValueInfo info;
      const bool usable = read_value_info(input, "input", &info);
      const int32_t id = define(input.name, "an input");
      parsed_.input_values.push_back(id);
      parsed_.inputs.push_back(info);
      if (usable) parsed_.declared[id] = info;
    }
  }

  void read_attribute(const Node& node, const AttributeProto& from, Attribute* to) {
    if (!from.ref_attr_name.empty()) malformed(label(node) + " refers to an attribute of a function, but is in none");
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

  // The ways in which an attribute holds its content.
  struct ContentRow {
    int32_t type;
    Attribute::Kind kind;
    bool (*there)(const AttributeProto& from);
  };

  // The row of what `from` holds. Its tag and the field that is there must agree; files of IR version 1 have no tags,
  // and writers leave out a field that is 0 or empty.
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
        malformed(label(node) + " has the attribute " + quoted(from.name) + " with both " +
                  std::string(attribute_kind_name(found->kind)) + " and " + std::string(attribute_kind_name(row.kind)));
      }
      found = &row;
    }
    if (from.type == 0 || found == nullptr) return found != nullptr ? found : tagged;
    if (found != tagged) {
      malformed(label(node) + " has the attribute " + quoted(from.name) + ", which is marked as " +
                std::string(attribute_kind_name(tagged->kind)) + " and holds " +
                std::string(attribute_kind_name(found->kind)));
    }
    return found;
  }

  void read_tensor_attribute(const Node& node, const AttributeProto& from, Attribute* to) {
    if (!from.t) malformed(label(node) + " has the tensor attribute " + quoted(from.name) + " without a tensor");
    // An attribute's data stands in the file: data elsewhere would be an unannounced way to read other files.
    if (from.t->data_location == proto::TensorProto::DataLocation_EXTERNAL) {
      malformed(label(node) + " has the attribute " + quoted(from.name) +
                " with external data, which is for weights only");
    }
    Result<Tensor> tensor = read_tensor(*from.t, files_, Device::host());
    if (!tensor.ok() && tensor.status().code() == Code::unsupported)
      return refuse(describe_node(node) + tensor.status().message());
    if (!tensor.ok())
      throw Error(tensor.status().with_context("  in attribute " + quoted(from.name) + " of " + label(node)));
    to->tensor = std::move(tensor).value();
  }

  static std::string describe_node(const Node& node) { return label(node) + ": " + node.op_type + ": "; }

  Node read_node(const proto::NodeProto& from, size_t position) {
    Node node;
    node.position = static_cast<int32_t>(position);
    node.name = std::string(from.name);
    node.op_type = std::string(from.op_type);
    node.domain = from.domain == "ai.onnx" ? std::string() : std::string(from.domain);
    for (std::string_view name : from.input) {
      const auto found = values_.find(name);
      if (!name.empty() && found == values_.end()) {
        malformed(label(node) + " (" + node.op_type + ") reads " + quoted(name) + ", which nothing before it makes");
      }
      node.inputs.push_back(name.empty() ? -1 : found->second);
    }
    for (const AttributeProto& attribute : from.attribute) {
      const auto [to, fresh] = node.attributes.emplace(std::string(attribute.name), Attribute());
      if (!fresh) malformed(label(node) + " has two attributes with the name " + quoted(attribute.name));
      read_attribute(node, attribute, &to->second);
    }
    for (std::string_view name : from.output) node.outputs.push_back(name.empty() ? -1 : define(name, label(node)));
    return node;
  }

  // Finds the schema of the node and holds the node against it.
  static void check_form(Node* node) {
    node->schema = node->domain.empty() ? find_schema(node->op_type, node->version) : nullptr;
    if (node->schema == nullptr) return;
    const std::string broken = broken_form(*node->schema, *node);
    if (!broken.empty()) malformed(label(*node) + ": " + node->op_type + ": " + broken);
  }

  void read_nodes() {
    parsed_.info.nodes = graph_.node.size();
    for (size_t i = 0; i < graph_.node.size(); ++i) {
      Node node = read_node(graph_.node[i], i);
      const auto opset = opsets_.find(node.domain);
      if (opset == opsets_.end())
        malformed(label(node) + " is of domain " + quoted(node.domain) + ", of which the model imports no version");
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
      if (found == values_.end()) malformed("nothing makes the output " + quoted(output.name));
      ValueInfo info;
      if (read_value_info(output, "output", &info)) parsed_.declared.emplace(found->second, info);
      parsed_.output_values.push_back(found->second);
      parsed_.outputs.push_back(info);
    }
    if (parsed_.outputs.empty()) malformed("it has no outputs");
  }

  const proto::ModelProto& model_;
  const proto::GraphProto& graph_;
  ExternalFiles files_;
  std::vector<std::string>& refusals_;
  std::map<std::string, int64_t, std::less<>> opsets_;
  std::map<std::string, int32_t, std::less<>> values_;
  ParsedModel parsed_;
};

}  // namespace

void malformed(const std::string& what) {
  throw Error(Code::invalid_argument, "The model is malformed: " + what + ".");
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
    if (!broken.empty()) malformed(label(node) + ": " + node.op_type + ": " + broken);
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
  malformed("its output " + quoted(parsed.outputs[i].name) + " is declared as " + std::string(dtype_name(declared)) +
            ", but the nodes make " + std::string(dtype_name(made)));
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
  return "node " + std::to_string(node.position) + (node.name.empty() ? "" : " (" + node.name + ")");
}

std::string label_with_operator(const Node& node) {
  return node.name.empty() ? label(node) + " (" + node.op_type + ")" : label(node);
}

bool stays_on_host(DType dtype, int64_t elements) {
  return elements <= kHostElements && (dtype == DType::i64 || dtype == DType::i32 || dtype == DType::boolean);
}

ParsedModel parse_model(std::string_view bytes, const std::string& external_root, Device device,
                        std::vector<std::string>* refusals) {
  if (bytes.empty()) malformed("it is empty");
  proto::ModelProto model;
  if (const std::string error = proto::decode(bytes, &model); !error.empty()) {
    throw Error(Code::invalid_argument, "This is not an ONNX model, or it is damaged. " + error);
  }
  if (!model.graph) throw Error(Code::invalid_argument, "This is not an ONNX model: it holds no graph.");
  return ProgramReader(model, external_root, device, refusals).read();
}

}  // namespace tenon::onnx
