#include "sdk/onnx/exporter/program_writer.h"

#include <algorithm>

#include "core/ops/control.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"
#include "sdk/onnx/exporter/operators.h"
#include "sdk/onnx/tensors/tensor_data.h"

namespace tenon::onnx {
namespace {

constexpr int32_t kNewestType = 16;  // bfloat16, the last type of kWrittenIrVersion

bool is_symbol(const compilation::ProgramSizes& sizes, SymDim size) {
  return !size.is_number() && sizes.node(size).kind == symbolic::Kind::symbol;
}

// True for a condition that only says that a size is not 0 or 1. Every open size is recorded under it.
bool is_usual(const compilation::ProgramSizes& sizes, const Condition& condition) {
  const bool of_number = condition.a.is_number() && condition.a.number() <= 1 && is_symbol(sizes, condition.b);
  return of_number && (condition.relation == Relation::lt || condition.relation == Relation::le ||
                       condition.relation == Relation::ne);
}

}  // namespace

ProgramWriter::ProgramWriter(graph::Graph& graph, const ExportOptions& options)
    : graph_(graph), options_(options), sizes_(graph), model_(sizes_) {}

void ProgramWriter::refuse_dtype(DType dtype) const {
  const int32_t type = onnx_type_of(dtype);
  if (type == 0 || type > kNewestType) {
    throw NotWritten{fmt::format("opset {} of ONNX has no {}.", kWrittenOpset, dtype_name(dtype))};
  }
}

void ProgramWriter::add_inputs() {
  for (const std::string& name : options_.input_names) model_.reserve(name);
  for (const std::string& name : options_.output_names) model_.reserve(name);
  for (size_t i = 0; i < graph_.inputs().size(); ++i) {
    const graph::ValueId id = graph_.inputs()[i];
    inputs_.push_back({options_.input_names[i], graph_[id].dtype, graph_[id].dims});
    values_[id] = inputs_.back();
  }
}

// Fixes sizes to the numbers of the examples: sizes that options.dynamic_axes does not list, and sizes that the program
// has branched on, since a model has no guards.
void ProgramWriter::fix_sizes() {
  for (const Operand& input : inputs_) {
    for (int32_t axis = 0; axis < input.dims.rank(); ++axis) {
      const SymDim size = input.dims[axis];
      if (size.is_number()) continue;
      std::string name = fmt::format("{}_{}", input.name, axis);
      if (options_.dynamic_axes) {
        const auto axes = options_.dynamic_axes->find(input.name);
        const bool is_wanted = axes != options_.dynamic_axes->end() && axes->second.count(axis) != 0;
        if (!is_wanted) {
          sizes_.fix(size);
          continue;
        }
        if (!axes->second.at(axis).empty()) name = axes->second.at(axis);
      }
      dim_names_[size.word()] = name;
    }
  }
  const std::vector<symbolic::Constraint> constraints = graph_.arena().constraints();
  for (const symbolic::Constraint& each : constraints) {
    const Condition condition{each.condition.relation, sizes_.resolve(each.condition.a),
                              sizes_.resolve(each.condition.b)};
    if (each.origin != symbolic::Origin::guard || identical(condition.a, condition.b) || is_usual(sizes_, condition))
      continue;
    sizes_.fix(condition.a);
    sizes_.fix(condition.b);
  }
  // A declaration can name a size, but not an expression such as twice a size.
  for (const Operand& input : inputs_) {
    for (const SymDim each : input.dims) {
      if (const SymDim size = sizes_.resolve(each); !is_symbol(sizes_, size)) sizes_.fix(size);
    }
  }
}

// Errors: unsupported if an axis in dynamic_axes had to be fixed.
void ProgramWriter::check_sizes() {
  if (!options_.dynamic_axes) return;
  for (const Operand& input : inputs_) {
    for (int32_t axis = 0; axis < input.dims.rank(); ++axis) {
      const auto axes = options_.dynamic_axes->find(input.name);
      const SymDim size = sizes_.resolve(input.dims[axis]);
      if (axes == options_.dynamic_axes->end() || axes->second.count(axis) == 0 || !size.is_number()) continue;
      throw Error(Code::unsupported,
                  fmt::format("{}: axis {} of input '{}' cannot be dynamic: the program only works for size {}.",
                              options_.name, axis, input.name, size.number()),
                  "The function reads this size as a number, or branches on it.");
    }
  }
}

std::string ProgramWriter::dim_name(SymDim dim) const {
  const auto name = dim_names_.find(dim.word());
  return name == dim_names_.end() ? std::string() : name->second;
}

std::string ProgramWriter::constant_name(const Tensor& tensor) const {
  for (const auto& [name, parameter] : options_.parameters) {
    if (parameter.impl()->storage == tensor.impl()->storage) return name;
  }
  return "constant";
}

Operand ProgramWriter::operand(graph::ValueId id) {
  if (id == 0) return {};
  const graph::Value& value = graph_[id];
  const auto [at, is_new] = values_.insert({id, {{}, value.dtype, value.dims}});
  if (is_new && value.constant.defined()) {
    refuse_dtype(value.dtype);
    at->second.name = model_.constant(value.constant, constant_name(value.constant));
  }
  return at->second;
}

void ProgramWriter::write_by_row(const OpInfo& op, NodeWriter& n) const {
  const OperatorRow* row = find_row(op.name);
  if (row == nullptr) {
    throw NotWritten{
        fmt::format("opset {} of ONNX has no such operator and no combination of others for it.", kWrittenOpset)};
  }
  for (size_t i = 0; i < n.result_count(); ++i) refuse_dtype(n.result(i).dtype);
  onnx::write_node(*row, n);
}

// Writes the epilogue of a product as separate nodes.
void ProgramWriter::write_epilogues(const graph::Node& node, Operand* result) {
  for (const Epilogue& epilogue : node.epilogues) {
    graph::Node alone;
    alone.op = epilogue.op;
    const auto slot = static_cast<size_t>(epilogue.scalar);
    std::vector<Operand> inputs{*result};
    const bool binary = epilogue.op->kind == EP_PRIMITIVE_binary;
    for (size_t i = slot; i < node.scalars.size() && i < slot + 2; ++i) alone.scalars.push_back(node.scalars[i]);
    if (binary && epilogue.input < 0) alone.scalars.insert(alone.scalars.begin(), Scalar());
    if (binary) {
      inputs.push_back(epilogue.input < 0 ? Operand() : operand(node.inputs[static_cast<size_t>(epilogue.input)]));
    }
    NodeWriter n(model_, alone, std::move(inputs), {{{}, result->dtype, result->dims}});
    write_by_row(*epilogue.op, n);
    *result = n.result();
  }
}

void ProgramWriter::write_node(graph::NodeId id) {
  const graph::Node& node = graph_.node(id);
  std::vector<Operand> results;
  for (const graph::ValueId result : node.results) {
    results.push_back({{}, graph_[result].dtype, graph_[result].dims});
  }
  try {
    if (!node.regions.empty()) throw NotWritten{"control flow cannot be exported."};
    std::vector<Operand> inputs;
    const auto reads = [](const Epilogue& epilogue) { return epilogue.input >= 0; };
    const auto behind = std::count_if(node.epilogues.begin(), node.epilogues.end(), reads);
    for (size_t i = 0; i + static_cast<size_t>(behind) < node.inputs.size(); ++i)
      inputs.push_back(operand(node.inputs[i]));
    NodeWriter n(model_, node, std::move(inputs), results);
    write_by_row(*node.op, n);
    for (size_t i = 0; i < results.size(); ++i) results[i] = n.result(i);
    if (!node.epilogues.empty()) write_epilogues(node, results.data());
  } catch (const NotWritten& refused) {
    const std::string line = fmt::format("{}: {}", node.op->name, refused.why);
    if (std::find(refusals_.begin(), refusals_.end(), line) == refusals_.end()) refusals_.push_back(line);
    for (Operand& result : results) result.name = "refused";
  }
  for (size_t i = 0; i < results.size(); ++i) values_[node.results[i]] = results[i];
}

// Gives each output a value of its own with the requested name.
void ProgramWriter::name_outputs() {
  std::map<std::string, std::string> names;  // names of node results: current name to output name
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    Operand output = operand(graph_.outputs()[i]);
    const std::string& wanted = options_.output_names[i];
    const auto makes = [&](const WrittenNode& node) {
      return std::find(node.outputs.begin(), node.outputs.end(), output.name) != node.outputs.end();
    };
    const bool made = std::any_of(model_.written().begin(), model_.written().end(), makes);
    if (!made || !names.insert({output.name, wanted}).second) {
      model_.written().push_back({"Identity", {output.name}, {wanted}, {}});
    }
    output.name = wanted;
    outputs_.push_back(std::move(output));
  }
  for (WrittenNode& node : model_.written()) {
    for (std::vector<std::string>* list : {&node.inputs, &node.outputs}) {
      for (std::string& name : *list) {
        if (const auto renamed = names.find(name); renamed != names.end()) name = renamed->second;
      }
    }
  }
}

void ProgramWriter::write() {
  add_inputs();
  fix_sizes();
  for (const Operand& input : inputs_) {
    for (int32_t axis = 0; axis < input.dims.rank(); ++axis) {
      if (is_symbol(sizes_, input.dims[axis])) model_.add_symbol(input.dims[axis], input.name, axis);
    }
  }
  for (graph::NodeId id = graph_.first(); id != graph::kNoNode; id = graph_.next(id)) write_node(id);
  if (!refusals_.empty()) {
    std::string message =
        fmt::format("{}: {} kinds of ops cannot be written as ONNX.", options_.name, refusals_.size());
    for (const std::string& line : refusals_) message += "\n  " + line;
    throw Error(Code::unsupported, message);
  }
  check_sizes();
  name_outputs();
}

}  // namespace tenon::onnx
