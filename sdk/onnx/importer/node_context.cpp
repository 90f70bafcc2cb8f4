#include "sdk/onnx/importer/node_context.h"

#include "core/graph/recorder.h"
#include "core/ops/known_sizes.h"
#include "core/ops/op_call.h"
#include "core/ops/ops.h"
#include "core/ops/sized_ops.h"
#include "primitives/text/format.h"
#include "primitives/text/visible.h"
#include "sdk/onnx/importer/trace.h"
#include "sdk/onnx/schema/constraints.h"
#include "sdk/onnx/schema/schema.h"

namespace tenon::onnx {
namespace {

constexpr int64_t kMostPositions = int64_t{1} << 24;
// Limits of the work of one node on the host: about a second, and a gigabyte.
constexpr double kMostHostSteps = 0x1p30, kMostHostBytes = 0x1p30;
// The limits while the model is recorded: milliseconds, and a megabyte.
constexpr double kMostRecordedSteps = 0x1p22, kMostRecordedBytes = 0x1p20;

std::optional<SymDims> shape_of(const Value& value) {
  if (value.is_tensor()) return sizes(value.tensor());
  if (value.kind() != Value::Kind::strings) return std::nullopt;
  SymDims dims;
  for (const int64_t dim : value.dims()) dims.push_back(dim);
  return dims;
}

}  // namespace

NodeContext::NodeContext(const ParsedModel& parsed, const Node& node, std::vector<Value>* values)
    : parsed_(parsed), node_(node), values_(*values), device_(parsed.device), moved_(node.inputs.size()) {
  bool on_host = false, elsewhere = false;
  for (int32_t value : node.inputs) {
    if (value < 0) continue;
    const Value& given = values_[static_cast<size_t>(value)];
    if (!given.defined()) throw UnknownValue(value);
    if (!given.is_tensor()) continue;
    const Tensor& tensor = given.tensor();
    const bool small = is_known(tensor) && stays_on_host(tensor.dtype(), tensor.elements());
    (small && tensor.device() == Device::host() ? on_host : elsewhere) = true;
  }
  if (on_host && !elsewhere) device_ = Device::host();
}

bool NodeContext::is_known(const Tensor& tensor) { return current_interpreter().host_value_known(tensor); }

void NodeContext::require_eager() {
  if (dynamic_cast<graph::Recorder*>(&current_interpreter()) != nullptr) throw UnknownValue(-1);
}

void NodeContext::require_host_work(double bytes, double steps) const {
  if (!(bytes <= kMostRecordedBytes && steps <= kMostRecordedSteps)) require_eager();
  if (bytes <= kMostHostBytes && steps <= kMostHostSteps) return;
  unsupported(
      fmt::format("{} asks for {:.3g} steps and a result of {:.3g} bytes on the host; at most {:.3g} steps and "
                  "{:.3g} bytes are possible",
                  node_.op_type, steps, bytes, kMostHostSteps, kMostHostBytes));
}

const Value& NodeContext::value(size_t i) const {
  if (!has(i)) invalid(fmt::format("input {} is missing", i));
  return values_[static_cast<size_t>(node_.inputs[i])];
}

const Tensor& NodeContext::raw(size_t i) const {
  const Value& given = value(i);
  if (!given.is_tensor()) invalid(fmt::format("input {} must be a tensor of numbers, not {}", i, to_string(given)));
  return given.tensor();
}

const Subgraph& NodeContext::graph(std::string_view name) const { return *require(name, Attribute::Kind::graph).graph; }

ValueList NodeContext::run(const Subgraph& graph, const ValueList& inputs) {
  if (inputs.size() != graph.inputs.size())
    invalid(fmt::format("its graph has {} inputs where {} are given", graph.inputs.size(), inputs.size()));
  // Drops the values that the graph made, also when it throws.
  struct Reset {
    const ParsedModel& parsed;
    const Subgraph& graph;
    std::vector<Value>& values;
    ~Reset() {
      for (int32_t value : graph.made)
        values[static_cast<size_t>(value)] = parsed.constants[static_cast<size_t>(value)];
    }
  } const reset{parsed_, graph, values_};
  for (size_t i = 0; i < inputs.size(); ++i) values_[static_cast<size_t>(graph.inputs[i])] = inputs[i];
  for (const Node& inner : graph.nodes) {
    if (!is_settled(parsed_, inner)) apply_node(parsed_, inner, &values_);
  }
  ValueList results;
  for (int32_t value : graph.outputs) {
    results.push_back(values_[static_cast<size_t>(value)]);
    if (!results.back().defined()) throw UnknownValue(value);
  }
  return results;
}

const Tensor& NodeContext::input(size_t i) {
  const Tensor& tensor = raw(i);
  if (tensor.device() == device_) return tensor;
  if (!moved_[i].defined()) moved_[i] = tensor.to(device_);
  return moved_[i];
}

void NodeContext::check_rules() const {
  if (node_.schema == nullptr) return;
  std::vector<int32_t> types;
  std::vector<std::optional<SymDims>> shapes;
  for (size_t i = 0; i < input_count(); ++i) {
    types.push_back(has(i) ? type_of(value(i)) : 0);
    shapes.push_back(has(i) ? shape_of(value(i)) : std::nullopt);
  }
  std::string broken = broken_types(*node_.schema, node_, types);
  if (broken.empty()) broken = broken_constraints(node_, shapes);
  if (!broken.empty()) invalid(broken);
}

SymDim NodeContext::product(size_t i, int64_t first, int64_t last) const {
  const SymDims dims = sizes(i);
  SymDim result = 1;
  int64_t hint = 1;
  for (int64_t axis = first; axis < last; ++axis) {
    if (__builtin_mul_overflow(hint, hint_of(dims[axis]), &hint) || hint > SymDim::kMost)
      invalid(fmt::format("the shape {} is too large", dims));
    result *= dims[axis];
  }
  return result;
}

TensorList NodeContext::inputs(size_t first) {
  TensorList list;
  for (size_t i = first; i < input_count(); ++i) list.push_back(input(i));
  return list;
}

const Tensor& NodeContext::known(size_t i) const {
  const Tensor& tensor = raw(i);
  if (!is_known(tensor)) throw UnknownValue(node_.inputs[i]);
  return tensor;
}

std::vector<double> NodeContext::numbers(size_t i) const {
  const Tensor& tensor = known(i);
  if (tensor.elements() > kHostElements) {
    invalid(fmt::format("input {} has {} elements where at most {} are possible", i, tensor.elements(), kHostElements));
  }
  return cast(tensor.to(Device::host()), DType::f64).to_host<double>();
}

template <class T>
std::vector<T> NodeContext::elements(size_t i) const {
  return cast(contiguous(known(i).to(Device::host())), dtype_of<T>()).template to_host<T>();
}
template std::vector<float> NodeContext::elements<float>(size_t i) const;
template std::vector<double> NodeContext::elements<double>(size_t i) const;
template std::vector<int64_t> NodeContext::elements<int64_t>(size_t i) const;

std::vector<int64_t> NodeContext::ints(size_t i) const {
  const Tensor& tensor = known(i);
  if (!is_integer(tensor.dtype()) || tensor.elements() > kHostElements) {
    invalid(fmt::format("input {} must hold at most {} integers, not {} of {}", i, kHostElements, tensor.elements(),
                        dtype_name(tensor.dtype())));
  }
  return cast(tensor.to(Device::host()), DType::i64).to_host<int64_t>();
}

std::vector<SymDim> NodeContext::size_list(size_t i) const {
  const Tensor& tensor = known(i);
  if (known_sizes(tensor) != nullptr) return sized::elements(tensor);
  std::vector<SymDim> list;
  for (const int64_t number : ints(i)) list.push_back(SymDim::saturated(number));
  return list;
}

Scalar NodeContext::scalar(size_t i) const {
  const Tensor& tensor = known(i);
  if (tensor.elements() != 1) {
    invalid(fmt::format("input {} must have one element, not shape {}", i, tensor.dims()));
  }
  return tensor.item();
}

const Attribute* NodeContext::find(std::string_view name) const {
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? nullptr : &found->second;
}

const Attribute* NodeContext::find(std::string_view name, Attribute::Kind kind) const {
  const Attribute* attribute = find(name);
  if (attribute != nullptr && attribute->kind != kind) {
    invalid(fmt::format("attribute '{}' must be {}, not {}", name, attribute_kind_name(kind),
                        attribute_kind_name(attribute->kind)));
  }
  return attribute;
}

const Attribute& NodeContext::require(std::string_view name, Attribute::Kind kind) const {
  const Attribute* attribute = find(name, kind);
  if (attribute == nullptr) invalid(fmt::format("attribute '{}' is missing", name));
  return *attribute;
}

int64_t NodeContext::integer(std::string_view name, int64_t initial) const {
  const Attribute* attribute = find(name, Attribute::Kind::integer);
  return attribute != nullptr ? attribute->i : initial;
}

double NodeContext::number(std::string_view name, double initial) const {
  const Attribute* attribute = find(name, Attribute::Kind::number);
  return attribute != nullptr ? static_cast<double>(attribute->f) : initial;
}

std::string NodeContext::text(std::string_view name, std::string_view initial) const {
  const Attribute* attribute = find(name, Attribute::Kind::text);
  return attribute != nullptr ? attribute->s : std::string(initial);
}

std::optional<std::vector<int64_t>> NodeContext::integers(std::string_view name) const {
  const Attribute* attribute = find(name, Attribute::Kind::integers);
  if (attribute == nullptr) return std::nullopt;
  return attribute->ints;
}

std::span<const float> NodeContext::float_list(std::string_view name) const {
  const Attribute* attribute = find(name, Attribute::Kind::numbers);
  return attribute == nullptr ? std::span<const float>() : attribute->floats;
}

std::span<const int64_t> NodeContext::integer_list(std::string_view name) const {
  const Attribute* attribute = find(name, Attribute::Kind::integers);
  return attribute == nullptr ? std::span<const int64_t>() : attribute->ints;
}

std::span<const std::string> NodeContext::text_list(std::string_view name) const {
  const Attribute* attribute = find(name, Attribute::Kind::texts);
  return attribute == nullptr ? std::span<const std::string>() : attribute->strings;
}

int64_t NodeContext::normalise_axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) {
    invalid(fmt::format("axis {} is outside [{}, {})", axis, -rank, rank));
  }
  return axis < 0 ? axis + rank : axis;
}

int64_t NodeContext::axis(int64_t initial, int32_t rank, bool end) const {
  const int64_t given = integer("axis", initial);
  return end && given == rank ? given : normalise_axis(given, rank);
}

std::optional<std::vector<int64_t>> NodeContext::axes(size_t index, int64_t since_input) const {
  if (version() < since_input) return integers("axes");
  if (!has(index)) return std::nullopt;
  return ints(index);
}

Tensor NodeContext::positions(SymDim count) const {
  if (hint_of(count) > kMostPositions) {
    unsupported(fmt::format("it needs {} positions; at most {} are possible", count, kMostPositions));
  }
  return sized::positions(count, device_);
}

Tensor NodeContext::within(size_t i, int64_t least, SymDim most) {
  const Tensor numbers = cast(input(i), DType::i64);
  if (is_known(numbers) && most.is_number()) {
    for (const int64_t number : contiguous(numbers.to(Device::host())).to_host<int64_t>()) {
      if (number >= least && number <= most.number()) continue;
      invalid(fmt::format("its input {}, {}, has the element {}; {} to {} is expected", i,
                          quoted(node_.schema->inputs[i].name), number, least, most));
    }
    return numbers;
  }
  // The lookup below reports numbers that are too large. Numbers that are too small are first replaced by one that
  // is too large.
  const Tensor places = sub(numbers, Scalar(least));
  const Tensor checked = where(lt(places, Scalar(0)), Scalar(INT32_MAX), places);
  return add(gather_slices(positions(most - least + 1), 0, checked), Scalar(least));
}

Tensor NodeContext::host_ints(std::span<const int64_t> values) {
  return Tensor::from<int64_t>(values, Dims{static_cast<int64_t>(values.size())}, Device::host());
}

void NodeContext::unsupported(const std::string& reason) const {
  throw Error(Code::unsupported, fmt::format("{}.", reason));
}

void NodeContext::invalid(const std::string& what) const {
  throw Error(Code::invalid_argument, fmt::format("{}: {}.", node_.op_type, what));
}

}  // namespace tenon::onnx
