// The ONNX importer. For any bytes it returns a model that runs, or a sentence. The fuzzer changes models as bytes and
// in decoded form: it changes nodes, attributes, shapes and weights so that the file stays readable and the change
// takes effect deep inside. This file repeats the limits of the importer: if it took them from the importer, it would
// not notice that a limit no longer holds.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "loader/settings/settings.h"
#include "onnx_messages.h"
#include "primitives/status/error.h"
#include "sdk/onnx/onnx.h"
#include "sdk/onnx/proto/wire.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

constexpr size_t most_messages_deep = 64;
constexpr size_t most_dims = 8;
constexpr size_t most_decoded_bytes = size_t{64} << 20;  // plus 32 bytes for each byte of the file

namespace proto = tenon::onnx_proto;
using tenon::Tensor;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "the importer broke a rule: %s\n", what);
  std::abort();
}

// A model may request any amount of memory. It must get an error instead of all memory of the machine.
bool prepare_process() {
  setenv("TENON_DEVICE", "cpu", 0);
  const tenon::Status status = tenon::loader::set_argument("memory_limit", "48MiB");
  require(status.ok(), "the memory limit was not taken");
  return true;
}

// Inputs of a loaded model: declared dims, small ones for dynamic dims. The numbers 0 to 3 are often valid indices.
tenon::onnx::Inputs make_inputs(const tenon::onnx::Model& model, bool* large) {
  tenon::onnx::Inputs inputs;
  for (const tenon::onnx::ValueInfo& info : model.inputs()) {
    tenon::Dims dims;
    require(info.dims.size() <= most_dims, "an input of a higher rank than it says");
    for (const tenon::onnx::Dim& dim : info.dims) dims.push_back(dim.value >= 0 ? dim.value : 2);
    const std::optional<int64_t> count = tenon::checked_count(dims);
    *large = *large || !count || *count > 1 << 16;
    if (*large) return inputs;
    std::string bytes(static_cast<size_t>(*count * tenon::dtype_size(info.dtype)), '\0');
    const int64_t step = std::max<int64_t>(1, tenon::dtype_size(info.dtype));
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(step))
      bytes[at] = static_cast<char>(at / static_cast<size_t>(step) % 4);
    if (info.dtype == tenon::DType::boolean) {
      for (char& byte : bytes) byte &= 1;
    }
    inputs[info.name] = Tensor::copy_from_host(bytes.data(), dims, info.dtype);
  }
  return inputs;
}

// The nesting depth of a type, including itself.
size_t depth_of(const proto::TypeProto& type) {
  if (type.sequence_type && type.sequence_type->elem_type) return 2 + depth_of(*type.sequence_type->elem_type);
  if (type.optional_type && type.optional_type->elem_type) return 2 + depth_of(*type.optional_type->elem_type);
  return 1;
}

// Checks the promises of the wire format's reader for every message that it accepts.
void require_decoded(std::string_view bytes) {
  proto::ModelProto model;
  if (!proto::decode(bytes, &model).empty() || !model.graph) return;
  for (const proto::ValueInfoProto& input : model.graph->input) {
    // The graph and the input contain the type. The model contains them, but is not counted.
    require(!input.type || 2 + depth_of(*input.type) <= most_messages_deep, "messages nested deeper than it says");
  }
  size_t decoded = model.graph->node.size() * 2 * sizeof(proto::NodeProto);
  for (const proto::NodeProto& node : model.graph->node) {
    decoded += node.attribute.size() * 2 * sizeof(proto::AttributeProto);
  }
  require(decoded <= most_decoded_bytes + 32 * bytes.size(), "decoded messages that take more memory than it says");
}

void load_and_run(std::string_view bytes) {
  const tenon::onnx::Model model = tenon::onnx::load_bytes(bytes);
  bool large = false;
  const tenon::onnx::Inputs inputs = make_inputs(model, &large);
  if (large) return;
  const tenon::TensorList outputs = model.run(inputs);
  require(outputs.size() == model.outputs().size(), "another number of outputs than declared");
  for (const Tensor& output : outputs) {
    require(output.defined(), "an undefined output");
    require(static_cast<size_t>(output.rank()) <= most_dims, "an output of a higher rank than it says");
    std::string data(static_cast<size_t>(output.bytes()), '\0');
    output.copy_to_host(data.data());
  }
}

// Changes a decoded model. The texts that it makes live as long as this object.
class ModelMutator {
 public:
  explicit ModelMutator(unsigned seed) : random_(seed) {}

  void change(proto::ModelProto* model) {
    if (!model->graph) return;
    for (size_t left = 1 + below(3); left > 0; --left) change_once(model);
  }

 private:
  size_t below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random_() % limit); }
  template <class T>
  T* any(std::vector<T>& list) {
    return list.empty() ? nullptr : &list[below(list.size())];
  }

  int64_t number() {
    constexpr int64_t kNumbers[] = {
        0, 1, -1, 2, 3, 4, 7, 8, 16, -2, 100, 1 << 16, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int64_t{1} << 40};
    return kNumbers[below(std::size(kNumbers))];
  }

  std::string_view value_name(const proto::GraphProto& graph) {
    std::vector<std::string_view> names = {""};
    for (const proto::NodeProto& node : graph.node) names.insert(names.end(), node.output.begin(), node.output.end());
    for (const proto::ValueInfoProto& input : graph.input) names.push_back(input.name);
    for (const proto::TensorProto& weight : graph.initializer) names.push_back(weight.name);
    return names[below(names.size())];
  }

  void change_once(proto::ModelProto* model) {
    proto::GraphProto& graph = *model->graph;
    switch (below(10)) {
      case 9: duplicate_node(&graph); break;
      case 0:
        if (auto* import = any(model->opset_import)) import->version = static_cast<int64_t>(below(22));
        break;
      case 1:
        if (auto* input = any(graph.input)) change_value(input);
        break;
      case 2:
        if (auto* weight = any(graph.initializer)) change_tensor(weight);
        break;
      case 3: change_op(&graph); break;
      case 4:
        if (graph.node.size() > 1)
          graph.node.erase(graph.node.begin() + static_cast<std::ptrdiff_t>(below(graph.node.size())));
        break;
      default:
        if (auto* node = any(graph.node)) change_node(graph, node);
        break;
    }
  }

  // Gives a node the operator of another node, or an operator that reads shapes and indices from its inputs.
  void change_op(proto::GraphProto* graph) {
    constexpr const char* kOps[] = {
        "Reshape", "Gather",  "Slice",       "Pad",       "Tile",  "Expand", "ConstantOfShape", "Range",
        "Conv",    "MaxPool", "AveragePool", "Concat",    "Split", "Cast",   "OneHot",          "ReduceSum",
        "MatMul",  "Gemm",    "Squeeze",     "Unsqueeze", "Trilu", "Div",    "GatherND",        "ConvTranspose"};
    proto::NodeProto* node = any(graph->node);
    if (node == nullptr) return;
    node->op_type = below(2) == 0 ? std::string_view(kOps[below(std::size(kOps))]) : any(graph->node)->op_type;
  }

  void duplicate_node(proto::GraphProto* graph) {
    if (graph->node.empty()) return;
    const proto::NodeProto& from = graph->node[below(graph->node.size())];
    const std::vector<std::string_view> input = from.input, output = from.output;
    const std::string_view op_type = from.op_type;
    proto::NodeProto& node = graph->node.emplace_back();
    node.input = input;
    node.output = output;
    node.op_type = op_type;
    node.present = 1u << proto::NodeProto::k_op_type;
  }

  // Adds one attribute, or a sixteenth of the present number if there are very many.
  static void add_attributes(proto::NodeProto* node) {
    node->attribute.resize(node->attribute.size() + 1 + node->attribute.size() / 16);
  }

  // Wraps a type into a sequence of it.
  static void nest(std::unique_ptr<proto::TypeProto>* type) {
    auto sequence = std::make_unique<proto::TypeProto_Sequence>();
    sequence->elem_type = std::move(*type);
    sequence->present = 1u << proto::TypeProto_Sequence::k_elem_type;
    *type = std::make_unique<proto::TypeProto>();
    (*type)->sequence_type = std::move(sequence);
    (*type)->present = 1u << proto::TypeProto::k_sequence_type;
  }

  void change_node(const proto::GraphProto& graph, proto::NodeProto* node) {
    switch (below(6)) {
      case 5: add_attributes(node); break;
      case 0:
        if (auto* name = any(node->input)) *name = value_name(graph);
        break;
      case 1: node->input.push_back(value_name(graph)); break;
      case 2:
        if (!node->input.empty()) node->input.pop_back();
        break;
      default:
        if (auto* attribute = any(node->attribute)) change_attribute(attribute);
        break;
    }
  }

  void change_attribute(proto::AttributeProto* attribute) {
    switch (below(5)) {
      case 0: attribute->i = number(); break;
      case 1: attribute->f = static_cast<float>(number()); break;
      case 2: attribute->type = static_cast<int32_t>(below(12)); break;
      case 3:
        if (attribute->t) return change_tensor(attribute->t.get());
        [[fallthrough]];
      default: change_list(&attribute->ints); break;
    }
  }

  void change_list(std::vector<int64_t>* list) {
    const size_t choice = below(4);
    if (choice == 0)
      list->push_back(number());
    else if (choice == 1 && !list->empty())
      list->pop_back();
    else if (auto* value = any(*list))
      *value = number();
  }

  void change_tensor(proto::TensorProto* tensor) {
    switch (below(4)) {
      case 0: change_list(&tensor->dims); break;
      case 1: tensor->data_type = static_cast<int32_t>(below(20)); break;
      case 2: tensor->data_location = static_cast<int32_t>(below(3)); break;
      default: {
        texts_.emplace_back(tensor->raw_data);
        std::string& data = texts_.back();
        if (data.empty()) return;
        const int64_t value = number();
        const size_t at = below(data.size());
        std::memcpy(data.data() + at, &value, std::min<size_t>(8, data.size() - at));
        tensor->raw_data = data;
      }
    }
  }

  void change_value(proto::ValueInfoProto* value) {
    if (value->type && below(3) == 0) return nest(&value->type);
    if (!value->type || !value->type->tensor_type) return;
    proto::TypeProto_Tensor& tensor = *value->type->tensor_type;
    if (below(3) == 0 || !tensor.shape) {
      tensor.elem_type = static_cast<int32_t>(below(18));
      return;
    }
    if (below(6) == 0) {
      tensor.shape->dim.emplace_back().dim_value = static_cast<int64_t>(below(3));
      tensor.shape->dim.back().present = 1u << proto::TensorShapeProto_Dimension::k_dim_value;
      return;
    }
    if (auto* dim = any(tensor.shape->dim)) dim->dim_value = below(2) == 0 ? number() : static_cast<int64_t>(below(9));
  }

  std::mt19937 random_;
  std::deque<std::string> texts_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool prepared = prepare_process();
  (void)prepared;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  require_decoded(bytes);
  try {
    load_and_run(bytes);
  } catch (const tenon::Error& error) {
    require(error.code() != tenon::Code::internal, error.what());
    require(error.what()[0] != '\0', "an error without a sentence");
  } catch (const std::bad_alloc&) {
    require(false, "memory was asked for that no check had allowed");
  }
  return 0;
}

// libFuzzer itself makes every second change, and every change of bytes that cannot be decoded.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  const std::string before(reinterpret_cast<const char*>(data), size);
  proto::ModelProto model;
  if (seed % 2 == 0 || !proto::decode(before, &model).empty()) return LLVMFuzzerMutate(data, size, max_size);
  ModelMutator mutator(seed);
  mutator.change(&model);
  const std::string after = proto::encode(model);
  if (after.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, after.data(), after.size());
  return after.size();
}
