// The public functions that write models.
#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <set>

#include "core/compile/program.h"
#include "core/tensor/file_access.h"
#include "core/tensor/version.h"
#include "onnx_messages.h"
#include "primitives/text/format.h"
#include "sdk/onnx/border.h"
#include "sdk/onnx/exporter/operators.h"
#include "sdk/onnx/exporter/program_writer.h"
#include "sdk/onnx/onnx.h"
#include "sdk/onnx/proto/wire.h"
#include "sdk/onnx/tensors/tensor_data.h"

namespace tenon::onnx {
namespace {

namespace proto = onnx_proto;

// Encodes a written program as messages of onnx.proto. The messages point to text and elements that the encoder owns.
class Encoder {
 public:
  explicit Encoder(ProgramWriter& program) : program_(program) {}

  std::string encode(const std::string& name) {
    proto::ModelProto model;
    model.ir_version = kWrittenIrVersion;
    model.producer_name = "tenon";
    model.producer_version = version();
    model.opset_import.emplace_back().version = kWrittenOpset;
    model.opset_import[0].present = 1u << proto::OperatorSetIdProto::k_version;
    model.graph = std::make_unique<proto::GraphProto>();
    proto::GraphProto& graph = *model.graph;
    graph.name = name;
    for (const WrittenNode& node : program_.model().written()) graph.node.push_back(node_of(node));
    for (const Initializer& each : program_.model().initializers()) graph.initializer.push_back(tensor_of(each));
    for (const Operand& each : program_.inputs()) graph.input.push_back(info_of(each));
    for (const Operand& each : program_.outputs()) graph.output.push_back(info_of(each));
    graph.present = 1u << proto::GraphProto::k_name;
    model.present = 1u << proto::ModelProto::k_ir_version | 1u << proto::ModelProto::k_producer_name |
                    1u << proto::ModelProto::k_producer_version | 1u << proto::ModelProto::k_graph;
    return proto::encode(model);
  }

 private:
  std::string_view keep(std::string text) { return kept_.emplace_back(std::move(text)); }

  proto::NodeProto node_of(const WrittenNode& node) {
    proto::NodeProto made;
    made.op_type = node.op;
    made.name = keep(fmt::format("{}/{}", node.op, node.outputs[0]));
    made.input.assign(node.inputs.begin(), node.inputs.end());
    made.output.assign(node.outputs.begin(), node.outputs.end());
    for (const auto& [name, value] : node.attributes) made.attribute.push_back(attribute_of(name, value));
    made.present = 1u << proto::NodeProto::k_op_type | 1u << proto::NodeProto::k_name;
    return made;
  }

  static proto::AttributeProto attribute_of(const std::string& name, const WrittenAttribute& value) {
    using Proto = proto::AttributeProto;
    Proto made;
    made.name = name;
    made.present = 1u << Proto::k_name | 1u << Proto::k_type;
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      made.i = *integer;
      made.type = Proto::AttributeType_INT;
      made.present |= 1u << Proto::k_i;
    } else if (const auto* number = std::get_if<double>(&value)) {
      made.f = static_cast<float>(*number);
      made.type = Proto::AttributeType_FLOAT;
      made.present |= 1u << Proto::k_f;
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      made.s = *text;
      made.type = Proto::AttributeType_STRING;
      made.present |= 1u << Proto::k_s;
    } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
      made.ints = *integers;
      made.type = Proto::AttributeType_INTS;
    } else {
      const auto& texts = std::get<std::vector<std::string>>(value);
      made.strings.assign(texts.begin(), texts.end());
      made.type = Proto::AttributeType_STRINGS;
    }
    return made;
  }

  proto::TensorProto tensor_of(const Initializer& each) {
    using Proto = proto::TensorProto;
    Proto made;
    std::string data(static_cast<size_t>(each.tensor.bytes()), '\0');
    each.tensor.copy_to_host(data.data());
    made.name = each.name;
    made.data_type = onnx_type_of(each.tensor.dtype());
    made.dims.assign(each.tensor.dims().begin(), each.tensor.dims().end());
    made.raw_data = keep(std::move(data));
    made.present = 1u << Proto::k_name | 1u << Proto::k_data_type | 1u << Proto::k_raw_data;
    return made;
  }

  proto::ValueInfoProto info_of(const Operand& value) {
    proto::ValueInfoProto made;
    made.name = value.name;
    made.type = std::make_unique<proto::TypeProto>();
    made.type->tensor_type = std::make_unique<proto::TypeProto_Tensor>();
    proto::TypeProto_Tensor& tensor = *made.type->tensor_type;
    tensor.elem_type = onnx_type_of(value.dtype);
    tensor.shape = std::make_unique<proto::TensorShapeProto>();
    for (const SymDim each : value.dims) tensor.shape->dim.push_back(dim_of(each));
    tensor.present = 1u << proto::TypeProto_Tensor::k_elem_type | 1u << proto::TypeProto_Tensor::k_shape;
    made.type->present = 1u << proto::TypeProto::k_tensor_type;
    made.present = 1u << proto::ValueInfoProto::k_name | 1u << proto::ValueInfoProto::k_type;
    return made;
  }

  proto::TensorShapeProto_Dimension dim_of(SymDim dim) {
    using Proto = proto::TensorShapeProto_Dimension;
    Proto made;
    const SymDim size = program_.model().sizes().resolve(dim);
    if (size.is_number()) {
      made.dim_value = size.number();
      made.present = 1u << Proto::k_dim_value;
    } else if (std::string name = program_.dim_name(size); !name.empty()) {
      made.dim_param = keep(std::move(name));
      made.present = 1u << Proto::k_dim_param;
    }
    return made;
  }

  ProgramWriter& program_;
  std::deque<std::string> kept_;
};

void name_values(const std::string& function, std::string_view what, size_t count, std::vector<std::string>* names) {
  if (names->empty()) {
    for (size_t i = 0; i < count; ++i) names->push_back(count == 1 ? std::string(what) : fmt::format("{}_{}", what, i));
  }
  if (names->size() != count) {
    throw Error(Code::invalid_argument,
                fmt::format("{}: there are {} names for {} {}s.", function, names->size(), count, what));
  }
}

void check_names(const ExportOptions& options) {
  std::set<std::string> seen;
  for (const std::vector<std::string>* list : {&options.input_names, &options.output_names}) {
    for (const std::string& name : *list) {
      if (!name.empty() && seen.insert(name).second) continue;
      throw Error(Code::invalid_argument,
                  name.empty() ? fmt::format("{}: the name of an input or output is empty.", options.name)
                               : fmt::format("{}: two inputs or outputs have the name '{}'.", options.name, name));
    }
  }
}

// Checks that every axis in dynamic_axes exists, and counts negative axes from the end.
void check_axes(const graph::Graph& graph, ExportOptions* options) {
  if (!options->dynamic_axes) return;
  for (auto& [name, axes] : *options->dynamic_axes) {
    const auto& names = options->input_names;
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      throw Error(Code::invalid_argument,
                  fmt::format("{}: dynamic_axes names '{}', which is not an input.", options->name, name));
    }
    const int64_t rank = graph[graph.inputs()[static_cast<size_t>(at - names.begin())]].dims.rank();
    std::map<int64_t, std::string> counted;
    for (const auto& [axis, dim] : axes) {
      if (axis < -rank || axis >= rank) {
        throw Error(Code::invalid_argument, fmt::format("{}: input '{}' of rank {} has no axis {} to be dynamic.",
                                                        options->name, name, rank, axis));
      }
      counted[axis < 0 ? axis + rank : axis] = dim;
    }
    axes = std::move(counted);
  }
}

// Records the function. It may throw any exception, so it is called outside the border.
graph::Graph recorded(const ExportedFunction& function, const TensorList& examples, const ExportOptions& options) {
  return compilation::record_program(function, options.name, examples,
                                     [](const OpInfo& op) { return find_row(op.name) == nullptr; });
}

std::string exported(graph::Graph& graph, ExportOptions options) {
  name_values(options.name, "input", graph.inputs().size(), &options.input_names);
  name_values(options.name, "output", graph.outputs().size(), &options.output_names);
  check_names(options);
  check_axes(graph, &options);
  ProgramWriter writer(graph, options);
  writer.write();
  std::string bytes = Encoder(writer).encode(options.name);
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw Error(Code::unsupported, fmt::format("{}: the model has {} bytes; a file of ONNX may have 2 GiB at most.",
                                               options.name, bytes.size()));
  }
  return bytes;
}

void write_file(const std::string& path, const std::string& bytes) {
  files::FileWriter file(path);
  file.write(bytes);
  file.finish();
}

}  // namespace

std::string export_bytes(const ExportedFunction& function, const TensorList& examples, const ExportOptions& options) {
  graph::Graph program = recorded(function, examples, options);
  return at_border([&] { return exported(program, options); });
}

void export_model(const ExportedFunction& function, const TensorList& examples, const std::string& path,
                  const ExportOptions& options) {
  graph::Graph program = recorded(function, examples, options);
  at_border([&] { write_file(path, exported(program, options)); });
}

}  // namespace tenon::onnx
