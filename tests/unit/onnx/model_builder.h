// Writes small ONNX models for the tests.
#pragma once

#include <cstring>
#include <deque>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "onnx_messages.h"
#include "sdk/onnx/proto/wire.h"

namespace tenon::onnx {

inline std::vector<float> random_floats(size_t count, uint32_t seed, float low = -1.0f, float high = 1.0f) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(low, high);
  std::vector<float> floats(count);
  for (float& value : floats) value = values(random);
  return floats;
}

namespace proto = onnx_proto;

class ModelBuilder {
 public:
  explicit ModelBuilder(int64_t opset = 17) {
    model_.ir_version = 8;
    model_.present = 1u << proto::ModelProto::k_ir_version;
    model_.graph = std::make_unique<proto::GraphProto>();
    mark(model_, proto::ModelProto::k_graph);
    proto::OperatorSetIdProto& import = model_.opset_import.emplace_back();
    import.version = opset;
    mark(import, proto::OperatorSetIdProto::k_version);
  }

  proto::ModelProto& model() { return model_; }
  proto::GraphProto& graph() { return *model_.graph; }

  // Dims as text: "2", "batch".
  void input(const std::string& name, int32_t type, const std::vector<std::string>& dims) {
    info(&graph().input, name, type, dims);
  }
  void output(const std::string& name, int32_t type, const std::vector<std::string>& dims) {
    info(&graph().output, name, type, dims);
  }

  proto::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs, const std::string& name = "") {
    proto::NodeProto& node = graph().node.emplace_back();
    node.op_type = keep(op);
    node.name = keep(name);
    mark(node, proto::NodeProto::k_op_type);
    mark(node, proto::NodeProto::k_name);
    for (const std::string& text : inputs) node.input.push_back(keep(text));
    for (const std::string& text : outputs) node.output.push_back(keep(text));
    return node;
  }

  proto::AttributeProto& attribute(proto::NodeProto& node, const std::string& name, int32_t type) {
    proto::AttributeProto& attribute = node.attribute.emplace_back();
    attribute.name = keep(name);
    attribute.type = type;
    mark(attribute, proto::AttributeProto::k_name);
    mark(attribute, proto::AttributeProto::k_type);
    return attribute;
  }
  void integer(proto::NodeProto& node, const std::string& name, int64_t value) {
    proto::AttributeProto& a = attribute(node, name, proto::AttributeProto::AttributeType_INT);
    a.i = value;
    mark(a, proto::AttributeProto::k_i);
  }
  void integers(proto::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
    attribute(node, name, proto::AttributeProto::AttributeType_INTS).ints = values;
  }

  // Gives the node the graph that `body` builds.
  void graph(proto::NodeProto& node, const std::string& name, ModelBuilder body) {
    proto::AttributeProto& a = attribute(node, name, proto::AttributeProto::AttributeType_GRAPH);
    a.g = std::move(body.model_.graph);
    mark(a, proto::AttributeProto::k_g);
    texts_of_graphs_.push_back(std::move(body.texts_));
    for (auto& texts : body.texts_of_graphs_) texts_of_graphs_.push_back(std::move(texts));
  }
  void text(proto::NodeProto& node, const std::string& name, const std::string& value) {
    proto::AttributeProto& a = attribute(node, name, proto::AttributeProto::AttributeType_STRING);
    a.s = keep(value);
    mark(a, proto::AttributeProto::k_s);
  }

  template <class T>
  proto::TensorProto& weight(const std::string& name, int32_t type, const std::vector<int64_t>& dims,
                             const std::vector<T>& values) {
    proto::TensorProto& tensor = graph().initializer.emplace_back();
    tensor.name = keep(name);
    tensor.data_type = type;
    tensor.dims = dims;
    std::string bytes(values.size() * sizeof(T), '\0');
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    tensor.raw_data = keep(bytes);
    mark(tensor, proto::TensorProto::k_name);
    mark(tensor, proto::TensorProto::k_data_type);
    mark(tensor, proto::TensorProto::k_raw_data);
    return tensor;
  }

  void external(proto::TensorProto& tensor, const std::vector<std::pair<std::string, std::string>>& entries) {
    tensor.present &= ~(1u << proto::TensorProto::k_raw_data);
    tensor.data_location = proto::TensorProto::DataLocation_EXTERNAL;
    mark(tensor, proto::TensorProto::k_data_location);
    for (const auto& [key, value] : entries) {
      proto::StringStringEntryProto& entry = tensor.external_data.emplace_back();
      entry.key = keep(key);
      entry.value = keep(value);
      mark(entry, proto::StringStringEntryProto::k_key);
      mark(entry, proto::StringStringEntryProto::k_value);
    }
  }

  std::string bytes() const { return proto::encode(model_); }

  template <class Message>
  static void mark(Message& message, uint32_t field) {
    message.present |= 1u << field;
  }
  std::string_view keep(const std::string& text) { return texts_.emplace_back(text); }

 private:
  void info(std::vector<proto::ValueInfoProto>* list, const std::string& name, int32_t type,
            const std::vector<std::string>& dims) {
    proto::ValueInfoProto& value = list->emplace_back();
    value.name = keep(name);
    value.type = std::make_unique<proto::TypeProto>();
    value.type->tensor_type = std::make_unique<proto::TypeProto_Tensor>();
    proto::TypeProto_Tensor& tensor = *value.type->tensor_type;
    tensor.elem_type = type;
    tensor.shape = std::make_unique<proto::TensorShapeProto>();
    mark(value, proto::ValueInfoProto::k_name);
    mark(value, proto::ValueInfoProto::k_type);
    mark(*value.type, proto::TypeProto::k_tensor_type);
    mark(tensor, proto::TypeProto_Tensor::k_elem_type);
    mark(tensor, proto::TypeProto_Tensor::k_shape);
    for (const std::string& text : dims) {
      proto::TensorShapeProto_Dimension& dim = tensor.shape->dim.emplace_back();
      const bool number = !text.empty() && (isdigit(static_cast<unsigned char>(text[0])) != 0 || text[0] == '-');
      if (number)
        dim.dim_value = std::stoll(text);
      else
        dim.dim_param = keep(text);
      mark(dim,
           number ? proto::TensorShapeProto_Dimension::k_dim_value : proto::TensorShapeProto_Dimension::k_dim_param);
    }
  }

  std::deque<std::string> texts_;
  std::vector<std::deque<std::string>> texts_of_graphs_;
  proto::ModelProto model_;
};

constexpr int32_t kFloat = 1, kUint8 = 2, kInt32 = 6, kInt64 = 7, kString = 8, kBool = 9, kComplex64 = 14;

}  // namespace tenon::onnx
