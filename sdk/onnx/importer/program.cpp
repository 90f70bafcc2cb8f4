#include "sdk/onnx/importer/program.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sdk/onnx/proto/wire.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

namespace proto = onnx_proto;
using proto::AttributeProto;

[[noreturn]] void malformed(const std::string& what) {
  throw Error(Code::invalid_argument, "The model is malformed: " + what + ".");
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

class ProgramReader {
 public:
  ProgramReader(const proto::ModelProto& model, const std::string& external_root, Device device,
                std::vector<std::string>* refusals)
      : model_(model), graph_(*model.graph), files_(external_root), refusals_(*refusals) {
    program_.device = device;
  }

  Program read() {
    read_versions();
    read_weights();
    read_inputs();
    read_nodes();
    read_outputs();
    return std::move(program_);
  }

 private:
  int32_t define(std::string_view name, const std::string& by) {
    if (values_.find(name) != values_.end())
      malformed("the value " + quoted(name) + " is made a second time, by " + by);
    const auto id = static_cast<int32_t>(program_.names.size());
    program_.names.emplace_back(name);
    program_.constants.emplace_back();
    values_.emplace(program_.names.back(), id);
    return id;
  }

  void refuse(std::string line) { refusals_.push_back(std::move(line)); }

  void read_versions() {
    program_.info.producer = std::string(model_.producer_name);
    if (!model_.producer_version.empty()) program_.info.producer += " " + std::string(model_.producer_version);
    program_.info.domain = std::string(model_.domain);
    program_.info.ir_version = model_.ir_version;
    for (const proto::OperatorSetIdProto& opset : model_.opset_import) {
      const std::string domain = opset.domain == "ai.onnx" ? std::string() : std::string(opset.domain);
      opsets_[domain] = opset.version;
    }
    if (opsets_.empty()) opsets_[""] = 1;
    program_.info.opset = opsets_.count("") != 0 ? opsets_[""] : 0;
    if (program_.info.opset > kNewestOpset) {
      refuse("the model wants version " + std::to_string(program_.info.opset) +
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
    program_.info.weights = graph_.initializer.size();
    for (const proto::TensorProto& tensor : graph_.initializer) {
      const int32_t id = define(tensor.name, "a weight");
      Result<TensorHeader> header = check_tensor(tensor, files_);
      if (!header.ok() && header.status().code() == Code::unsupported) {
        refuse(header.status().message());
        continue;
      }
      throw_if_error(header.status());
      program_.info.weight_bytes += static_cast<uint64_t>(header->bytes);
      const Device where = stays_on_host(header->dtype, header->elements) ? Device::host() : program_.device;
      program_.constants[static_cast<size_t>(id)] = value_or_throw(read_tensor(tensor, files_, where));
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
    for (const proto::ValueInfoProto& input : graph_.input) {
      if (values_.count(input.name) != 0) continue;  // a weight that files of before IR version 4 list as an input too
      ValueInfo info;
      const bool usable = read_value_info(input, "input", &info);
      const int32_t id = define(input.name, "an input");
      program_.input_values.push_back(id);
      program_.inputs.push_back(info);
      if (usable) program_.declared[id] = info;
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
    switch (from.type != 0 ? from.type : guess_type(from)) {
      case AttributeProto::AttributeType_FLOAT: to->kind = Attribute::Kind::number; break;
      case AttributeProto::AttributeType_INT: to->kind = Attribute::Kind::integer; break;
      case AttributeProto::AttributeType_STRING: to->kind = Attribute::Kind::text; break;
      case AttributeProto::AttributeType_FLOATS: to->kind = Attribute::Kind::numbers; break;
      case AttributeProto::AttributeType_INTS: to->kind = Attribute::Kind::integers; break;
      case AttributeProto::AttributeType_STRINGS: to->kind = Attribute::Kind::texts; break;
      case AttributeProto::AttributeType_TENSOR: read_tensor_attribute(node, from, to); break;
      default: break;
    }
  }

  // Files of IR version 1 and 2 leave the type out.
  static int32_t guess_type(const AttributeProto& from) {
    if (from.has(AttributeProto::k_f)) return AttributeProto::AttributeType_FLOAT;
    if (from.has(AttributeProto::k_i)) return AttributeProto::AttributeType_INT;
    if (from.has(AttributeProto::k_s)) return AttributeProto::AttributeType_STRING;
    if (from.t) return AttributeProto::AttributeType_TENSOR;
    if (!from.ints.empty()) return AttributeProto::AttributeType_INTS;
    return from.floats.empty() ? AttributeProto::AttributeType_UNDEFINED : AttributeProto::AttributeType_FLOATS;
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
    to->kind = Attribute::Kind::tensor;
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
      Attribute& to = node.attributes[std::string(attribute.name)];
      read_attribute(node, attribute, &to);
    }
    for (std::string_view name : from.output) node.outputs.push_back(name.empty() ? -1 : define(name, label(node)));
    return node;
  }

  void read_nodes() {
    program_.info.nodes = graph_.node.size();
    for (size_t i = 0; i < graph_.node.size(); ++i) {
      Node node = read_node(graph_.node[i], i);
      const auto opset = opsets_.find(node.domain);
      if (opset == opsets_.end())
        malformed(label(node) + " is of domain " + quoted(node.domain) + ", of which the model imports no version");
      node.version = opset->second;
      std::string reason;
      node.translator = find_translator(node, &reason);
      if (node.translator == nullptr) refuse(describe_node(node) + reason);
      program_.nodes.push_back(std::move(node));
    }
  }

  void read_outputs() {
    for (const proto::ValueInfoProto& output : graph_.output) {
      const auto found = values_.find(output.name);
      if (found == values_.end()) malformed("nothing makes the output " + quoted(output.name));
      ValueInfo info;
      if (read_value_info(output, "output", &info)) program_.declared.emplace(found->second, info);
      program_.output_values.push_back(found->second);
      program_.outputs.push_back(info);
    }
    if (program_.outputs.empty()) malformed("it has no outputs");
  }

  const proto::ModelProto& model_;
  const proto::GraphProto& graph_;
  ExternalFiles files_;
  std::vector<std::string>& refusals_;
  std::map<std::string, int64_t, std::less<>> opsets_;
  std::map<std::string, int32_t, std::less<>> values_;
  Program program_;
};

}  // namespace

void find_last_uses(Program* program) {
  program->drop_after.assign(program->names.size(), -1);
  for (size_t i = 0; i < program->nodes.size(); ++i) {
    for (const std::vector<int32_t>* values : {&program->nodes[i].outputs, &program->nodes[i].inputs}) {
      for (int32_t value : *values) {
        if (value >= 0) program->drop_after[static_cast<size_t>(value)] = static_cast<int32_t>(i);
      }
    }
  }
  for (int32_t value : program->output_values) program->drop_after[static_cast<size_t>(value)] = -1;
}

std::string_view attribute_kind_name(Attribute::Kind kind) {
  switch (kind) {
    case Attribute::Kind::number: return "float";
    case Attribute::Kind::integer: return "int";
    case Attribute::Kind::text: return "string";
    case Attribute::Kind::numbers: return "list of floats";
    case Attribute::Kind::integers: return "list of ints";
    case Attribute::Kind::texts: return "list of strings";
    case Attribute::Kind::tensor: return "tensor";
    case Attribute::Kind::other: break;
  }
  return "graph, type or sparse tensor";
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

Program read_program(std::string_view bytes, const std::string& external_root, Device device,
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
