#include <algorithm>

#include "core/graph/signature.h"
#include "core/ops/ops.h"
#include "core/tensor/unread.h"
#include "primitives/text/format.h"
#include "primitives/text/visible.h"
#include "sdk/onnx/border.h"
#include "sdk/onnx/file/file.h"
#include "sdk/onnx/importer/model_impl.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {
namespace {

// The largest model file. Larger weights belong in external data.
constexpr uint64_t kLargestFile = uint64_t{16} << 30;
// An input of at most this many elements may be taken by value if shapes in the model depend on it.
constexpr int64_t kByValueElements = 64;

std::string names_of(const std::vector<ValueInfo>& infos) {
  std::string text;
  for (const ValueInfo& info : infos) text += (text.empty() ? "" : ", ") + quoted(info.name);
  return text.empty() ? "none" : text;
}

// `given` must contain all names of `wanted`, may contain names of `defaults`, and no others.
void check_input_names(const std::set<std::string>& given, const std::vector<ValueInfo>& wanted,
                       const std::vector<ValueInfo>& defaults = {}) {
  std::string unknown, missing;
  std::set<std::string_view> names;
  for (const std::vector<ValueInfo>* infos : {&wanted, &defaults}) {
    for (const ValueInfo& info : *infos) names.insert(info.name);
  }
  for (const std::string& name : given) {
    if (names.count(name) == 0) unknown += (unknown.empty() ? "" : " or ") + quoted(name);
  }
  for (const ValueInfo& info : wanted) {
    if (given.count(info.name) != 0) continue;
    missing += (missing.empty() && unknown.empty() ? "" : " ");
    missing += fmt::format("Input {}, {}, is missing.", quoted(info.name), info);
  }
  if (!unknown.empty())
    unknown = fmt::format("The model has no input {}; its inputs are {}.", unknown, names_of(wanted));
  if (!unknown.empty() || !missing.empty()) throw Error(Code::invalid_argument, unknown + missing);
}

Tensor fitting_input(const Tensor& tensor, const ValueInfo& info, Device device, Shapes shapes) {
  bool fits = tensor.defined() && tensor.dtype() == info.dtype;
  if (fits && info.has_shape && shapes != Shapes::any) {
    fits = tensor.rank() == static_cast<int32_t>(info.dims.size());
    for (int32_t axis = 0; shapes == Shapes::exact && fits && axis < tensor.rank(); ++axis) {
      const int64_t dim = info.dims[static_cast<size_t>(axis)].value;
      fits = dim < 0 || dim == tensor.dims()[axis];
    }
  }
  if (!fits) {
    throw Error(Code::invalid_argument,
                fmt::format("Input {} must be {}, but {} was given.", quoted(info.name), info,
                            tensor.defined() ? fmt::format("{}{}", dtype_name(tensor.dtype()), tensor.dims())
                                             : "an undefined tensor"));
  }
  return contiguous(tensor.to(device));
}

// Checks that dims of one name have one size.
void check_named_dims(const std::vector<ValueInfo>& infos, const TensorList& inputs) {
  struct Seen {
    int64_t size;
    const ValueInfo* in;
  };
  std::map<std::string_view, Seen> seen;
  for (size_t i = 0; i < infos.size(); ++i) {
    for (size_t axis = 0; axis < infos[i].dims.size() && infos[i].has_shape; ++axis) {
      const std::string& name = infos[i].dims[axis].name;
      if (name.empty()) continue;
      const int64_t size = inputs[i].dims()[static_cast<int64_t>(axis)];
      const Seen& first = seen.try_emplace(name, Seen{size, &infos[i]}).first->second;
      if (first.size == size) continue;
      throw Error(Code::invalid_argument,
                  fmt::format("Input {} must be {}, but {}{} was given: '{}' is {} in input {}.", quoted(infos[i].name),
                              infos[i], dtype_name(inputs[i].dtype()), inputs[i].dims(), name, first.size,
                              quoted(first.in->name)));
    }
  }
}

TensorList tensors_of(const ValueList& values) {
  TensorList tensors;
  for (const Value& value : values) tensors.push_back(value.tensor());
  return tensors;
}

// Adds the tensors of numbers in `value`.
void add_tensors(const Value& value, TensorList* tensors) {
  if (value.is_tensor()) tensors->push_back(value.tensor());
  if (value.kind() != Value::Kind::sequence || value.matrix().defined()) return;
  for (const Value& each : value.elements()) add_tensors(each, tensors);
}

// Checks a value of another kind than a tensor of numbers against `info`.
Value fitting_value(const Value& value, const ValueInfo& info) {
  const bool fits = value.kind() == info.kind || (info.optional && value.kind() == Value::Kind::optional);
  if (fits && info.kind == Value::Kind::strings && info.has_shape &&
      value.dims().rank() != static_cast<int32_t>(info.dims.size())) {
    throw Error(Code::invalid_argument,
                fmt::format("Input {} must be {}, but {} was given.", quoted(info.name), info, to_string(value)));
  }
  if (fits) return value;
  throw Error(Code::invalid_argument,
              fmt::format("Input {} must be {}, but {} was given.", quoted(info.name), info, to_string(value)));
}

}  // namespace

TensorList Model::Impl::bind(const Inputs& inputs) const {
  std::set<std::string> names;
  for (const auto& [name, tensor] : inputs) names.insert(name);
  check_input_names(names, parsed.inputs);
  TensorList bound;
  for (const ValueInfo& info : parsed.inputs) {
    if (info.kind != Value::Kind::tensor)
      throw Error(Code::invalid_argument,
                  fmt::format("Input {} is {}; call run_values for such a model.", quoted(info.name), info));
    bound.push_back(fitting_input(inputs.at(info.name), info, parsed.device, options.shapes));
  }
  if (one_size_per_name()) check_named_dims(parsed.inputs, bound);
  return bound;
}

ValueList Model::Impl::bind_values(const Values& inputs) const {
  std::set<std::string> names;
  for (const auto& [name, value] : inputs) names.insert(name);
  for (const ValueInfo& info : parsed.inputs) {
    if (info.optional) names.insert(info.name);
  }
  check_input_names(names, parsed.inputs);
  ValueList bound;
  for (const ValueInfo& info : parsed.inputs) {
    const auto given = inputs.find(info.name);
    const Value value = given != inputs.end() ? given->second : Value::nothing();
    const bool tensor = info.kind == Value::Kind::tensor && value.is_tensor();
    bound.push_back(tensor ? Value(fitting_input(value.tensor(), info, parsed.device, options.shapes))
                           : fitting_value(value, info));
  }
  return bound;
}

std::vector<int64_t> Model::Impl::signature(std::span<const Tensor> inputs, const std::vector<bool>& values) const {
  std::vector<int64_t> key;
  for (size_t i = 0; i < inputs.size(); ++i) {
    key.push_back(values[i] ? -inputs[i].rank() - 1 : inputs[i].rank());
    key.insert(key.end(), inputs[i].dims().begin(), inputs[i].dims().end());
    if (!values[i]) continue;
    const size_t at = key.size();
    key.resize(at + (static_cast<size_t>(inputs[i].bytes()) + 7) / 8, 0);
    inputs[i].copy_to_host(key.data() + at);
  }
  return key;
}

// Marks inputs as taken by value if that may make `value` known. False if no further input helps.
bool Model::Impl::take_by_value(int32_t value, std::span<const Tensor> inputs, std::vector<bool>* values) const {
  if (value < 0) return false;  // the error names no value
  const uint64_t bits = dependences[static_cast<size_t>(value)];
  bool more = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool needed = (bits >> std::min<size_t>(i, 63) & 1) != 0;
    if (!needed || (*values)[i] || inputs[i].elements() > kByValueElements) continue;
    (*values)[i] = more = true;
  }
  return more;
}

graph::Graph Model::Impl::record_for(std::span<const Tensor> inputs, DynamicDims dims) const {
  std::vector<bool> values(inputs.size(), false);
  while (true) {
    try {
      return std::move(record_graph(parsed, inputs, values, dims, one_size_per_name()).graph);
    } catch (const UnknownValue& unknown) {
      if (take_by_value(unknown.value, inputs, &values)) continue;
      throw Error(
          Code::unsupported,
          "The model has shapes that depend on data, so it cannot be recorded as a graph; it runs node after node.");
    }
  }
}

// True if the inputs that `recorded` holds as constants have the same elements in `inputs`.
static bool same_values(const RecordedGraph& recorded, std::span<const Tensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!recorded.by_value[i]) continue;
    const Tensor& value = recorded.values[i];
    if (value.dims() != inputs[i].dims()) return false;
    std::vector<unsigned char> a(static_cast<size_t>(value.bytes())), b(a.size());
    value.copy_to_host(a.data());
    inputs[i].copy_to_host(b.data());
    if (a != b) return false;
  }
  return true;
}

// `like`: an executable prepared from the same recording for other sizes, or null.
graph::PrepareOptions Model::Impl::preparation(const graph::Executable* like) const {
  graph::PrepareOptions made{.packed = options.passes != Passes::exact, .like = like};
  made.fuse = options.fuse;
  made.compile = options.compile;
  return made;
}

// Prepares the first recording whose guards allow `inputs`.
std::optional<RecordedModel> Model::Impl::from_recordings(std::span<const Tensor> inputs) {
  std::vector<std::shared_ptr<const RecordedGraph>> all;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [key, recording] : recordings) all.push_back(recording);
  }
  for (const auto& recording : all) {
    if (!same_values(*recording, inputs)) continue;
    std::shared_ptr<const RecordedModel> before;  // the last model prepared from this recording
    {
      const std::lock_guard lock(mutex);
      const auto from = [&](const auto& entry) { return entry.second->from == recording; };
      const auto last = std::find_if(recorded_models.begin(), recorded_models.end(), from);
      if (last != recorded_models.end()) before = last->second;
    }
    std::optional<RecordedModel> model =
        prepare_model(*recording, inputs, preparation(before == nullptr ? nullptr : before->graph.get()));
    if (!model) continue;
    model->from = recording;
    const std::lock_guard lock(mutex);
    recordings.find(recording.get());  // the most recently used from now on
    return model;
  }
  return std::nullopt;
}

// Records with dynamic dims as symbols; with numbers if some sizes of the model cannot be expressions.
std::optional<RecordedModel> Model::Impl::record_open(std::span<const Tensor> inputs, const std::vector<bool>& values) {
  for (const DynamicDims dims : {DynamicDims::open, DynamicDims::numbers}) {
    try {
      auto recording = std::make_shared<RecordedGraph>(record_graph(parsed, inputs, values, dims, one_size_per_name()));
      graph::optimise(&recording->graph, {options.passes == Passes::exact, &folded, options.fuse});
      std::optional<RecordedModel> model = prepare_model(*recording, inputs, preparation());
      if (!model) continue;
      model->from = recording;
      const std::lock_guard lock(mutex);
      ++recorded;
      recordings.keep(recording.get(), recording);
      return model;
    } catch (const Error&) {
      if (dims == DynamicDims::numbers) throw;
    }
  }
  return std::nullopt;
}

std::shared_ptr<const RecordedModel> Model::Impl::keep(RecordedModel model, std::span<const Tensor> inputs) {
  auto kept = std::make_shared<RecordedModel>(std::move(model));
  const std::lock_guard lock(mutex);
  recorded_models.keep(signature(inputs, by_value), kept);
  return kept;
}

std::shared_ptr<const RecordedModel> Model::Impl::record(std::span<const Tensor> inputs, std::vector<bool> values) {
  if (std::optional<RecordedModel> model = from_recordings(inputs)) return keep(std::move(*model), inputs);
  RecordedModel model;
  while (true) {
    try {
      model = std::move(record_open(inputs, values).value());
      break;
    } catch (const UnknownValue& unknown) {
      if (take_by_value(unknown.value, inputs, &values)) continue;
      model = RecordedModel();
      break;
    }
  }
  // A model that runs node after node serves all values, so its signature needs no values.
  if (model.graph) {
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < values.size(); ++i) by_value[i] = by_value[i] || values[i];
  }
  return keep(std::move(model), inputs);
}

static bool is_outdated(const RecordedModel& model) {
  return model.graph != nullptr && graph::is_outdated(*model.graph);
}

std::shared_ptr<const RecordedModel> Model::Impl::recorded_for(std::span<const Tensor> inputs) {
  std::vector<bool> values;
  {
    const std::lock_guard lock(mutex);
    values = by_value;
  }
  const std::vector<int64_t> key = signature(inputs, values);
  {
    const std::lock_guard lock(mutex);
    const std::shared_ptr<const RecordedModel>* known = recorded_models.find(key);
    if (known != nullptr && !is_outdated(**known)) return *known;
  }
  return record(inputs, std::move(values));
}

NodeExecution Model::Impl::execution(int32_t node, ExecutionEntry entry) const {
  NodeExecution launch;
  if (node >= 0) {
    const Node& from = parsed.nodes[static_cast<size_t>(node)];
    launch.node = from.position;
    launch.node_name = from.name;
    launch.op_type = from.op_type;
  }
  launch.provider = entry.device.substr(0, entry.device.find(':'));
  launch.op = std::move(entry.op);
  launch.device = std::move(entry.device);
  launch.implementation = std::move(entry.implementation);
  launch.rung = std::string(rung_name(entry.rung));
  launch.reason = std::move(entry.reason);
  launch.bytes_copied = entry.bytes_copied;
  launch.tier = std::move(entry.tier);
  return launch;
}

ValueList Model::Impl::run_nodes(std::span<const Value> inputs, std::vector<NodeExecution>* executions) const {
  std::vector<Value> values = initial_values(parsed, inputs);
  for (size_t i = 0; i < parsed.nodes.size(); ++i) {
    const Node& node = parsed.nodes[i];
    if (is_settled(parsed, node)) continue;
    if (executions == nullptr) {
      apply_node(parsed, node, &values);
    } else {
      ExecutionScope scope;
      apply_node(parsed, node, &values);
      for (ExecutionEntry& entry : scope.take())
        executions->push_back(execution(static_cast<int32_t>(i), std::move(entry)));
    }
    const auto drop = [&](int32_t value) {
      if (value >= 0 && parsed.drop_after[static_cast<size_t>(value)] == static_cast<int32_t>(i))
        values[static_cast<size_t>(value)] = Value();
    };
    std::for_each(node.inputs.begin(), node.inputs.end(), drop);
    std::for_each(node.captures.begin(), node.captures.end(), drop);
    std::for_each(node.outputs.begin(), node.outputs.end(), drop);
  }
  ValueList outputs;
  for (int32_t value : parsed.output_values) outputs.push_back(values[static_cast<size_t>(value)]);
  return outputs;
}

TensorList Model::Impl::run_recorded(const RecordedModel& recorded, std::span<const Tensor> inputs,
                                     std::span<const Tensor> bound, std::vector<NodeExecution>* executions) const {
  if (!recorded.graph) return tensors_of(run_nodes(ValueList(inputs.begin(), inputs.end()), executions));
  TensorList taken;
  for (uint32_t i : recorded.graph_inputs) taken.push_back(inputs[i]);
  if (executions == nullptr) return graph::run(*recorded.graph, taken, bound);
  std::vector<graph::StepExecution> steps;
  TensorList outputs = graph::run(*recorded.graph, taken, bound, &steps);
  for (graph::StepExecution& step : steps) {
    NodeExecution& made = executions->emplace_back(execution(recorded.nodes[step.label], std::move(step.entry)));
    made.bytes = step.work.bytes;
    made.flops = step.work.flops;
    if (made.node < 0) made.node_name = (*recorded.graph->labels)[step.label];
  }
  return outputs;
}

// The storages of `inputs` and of the weights.
Model::Impl::Storages Model::Impl::storages(std::span<const Tensor> inputs) const {
  Storages all;
  for (const Tensor& input : inputs) all.insert(input.impl()->storage.at_hand());
  for (const Value& constant : parsed.constants) {
    if (constant.is_tensor()) all.insert(constant.tensor().impl()->storage.at_hand());
  }
  return all;
}

// Returns `result` on the model's device, or a copy of it if its storage is in `taken`. Adds the storage to `taken`.
Tensor Model::Impl::own(const Tensor& result, Storages* taken) const {
  const Tensor here = contiguous(result.to(parsed.device));
  Storage* storage = here.impl()->storage.at_hand();
  return storage == nullptr || taken->insert(storage).second ? here : clone(here);
}

// Like the other own(), for every tensor in `result`.
Value Model::Impl::own(const Value& result, Storages* taken) const {
  if (result.is_tensor()) return own(result.tensor(), taken);
  if (result.kind() != Value::Kind::sequence) return result;
  if (const Tensor matrix = result.matrix(); matrix.defined()) return Value::maps(result.keys(), own(matrix, taken));
  ValueList elements;
  for (const Value& each : result.elements()) elements.push_back(own(each, taken));
  return Value::sequence(std::move(elements));
}

// The tensors of `bound` in the order of the outputs; undefined where none is bound.
TensorList Model::Impl::targets_of(const Inputs& bound) const {
  TensorList targets(parsed.outputs.size());
  for (const auto& [name, tensor] : bound) {
    const auto found = std::find_if(parsed.outputs.begin(), parsed.outputs.end(),
                                    [&wanted = name](const ValueInfo& info) { return info.name == wanted; });
    if (found == parsed.outputs.end()) {
      throw Error(Code::invalid_argument, fmt::format("The model has no output {}; its outputs are {}.", quoted(name),
                                                      names_of(parsed.outputs)));
    }
    targets[static_cast<size_t>(found - parsed.outputs.begin())] = tensor;
  }
  return targets;
}

// Writes output `i` to `target`.
void Model::Impl::write_output(size_t i, const Value& result, Tensor target) const {
  if (!result.is_tensor() || result.dims() != target.dims() || result.tensor().dtype() != target.dtype()) {
    throw Error(Code::invalid_argument,
                fmt::format("Output {} is {}, but the tensor bound to it is {}.", quoted(parsed.outputs[i].name),
                            to_string(result), to_string(Value(target))));
  }
  copy_(target, result.tensor());
}

TensorList Model::Impl::run(const Inputs& inputs, const Inputs& bound, std::vector<NodeExecution>* executions) {
  if (const auto other = with_defaults_of(inputs)) return other->run(inputs, bound, executions);
  for (const ValueInfo& info : parsed.outputs) {
    if (info.kind == Value::Kind::tensor && !info.optional) continue;
    throw Error(Code::invalid_argument,
                fmt::format("Output {} is {}; call run_values for such a model.", quoted(info.name), info));
  }
  const TensorList given = bind(inputs);
  const TensorList targets = targets_of(bound);
  std::shared_ptr<const RecordedModel> recorded;
  TensorList results;
  if (options.eager) {
    results = tensors_of(run_nodes(ValueList(given.begin(), given.end()), executions));
  } else {
    recorded = recorded_for(given);
    results = run_recorded(*recorded, given, {}, executions);
  }
  TensorList outputs;
  Storages taken = storages(given);
  for (size_t i = 0; i < results.size(); ++i) {
    if (targets[i].defined()) {
      write_output(i, results[i], targets[i]);
      outputs.push_back(targets[i]);
      taken.insert(targets[i].impl()->storage.at_hand());
      continue;
    }
    const bool constant =
        recorded && recorded->graph && recorded->graph->values[recorded->graph->outputs[i]].constant.defined();
    outputs.push_back(constant ? clone(results[i].to(parsed.device)) : own(results[i], &taken));
  }
  return outputs;
}

ValueList Model::Impl::run_values(const Values& inputs, const Inputs& bound, std::vector<NodeExecution>* executions) {
  if (const auto other = with_defaults_of(inputs)) return other->run_values(inputs, bound, executions);
  if (!parsed.takes_and_gives_tensors()) {
    const ValueList given = bind_values(inputs);
    TensorList tensors;
    for (const Value& each : given) add_tensors(each, &tensors);
    Storages taken = storages(tensors);
    const TensorList targets = targets_of(bound);
    ValueList results = run_nodes(given, executions);
    for (size_t i = 0; i < results.size(); ++i) {
      if (targets[i].defined()) {
        write_output(i, results[i], targets[i]);
        results[i] = targets[i];
        taken.insert(targets[i].impl()->storage.at_hand());
      } else {
        results[i] = own(results[i], &taken);
      }
    }
    return results;
  }
  Inputs tensors;
  for (const auto& [name, value] : inputs) tensors[name] = value.tensor();
  const TensorList outputs = run(tensors, bound, executions);
  return {outputs.begin(), outputs.end()};
}

namespace {

// Prepares a parsed model to run and finds the nodes that cannot run.
void finish_parsed(ParsedModel* parsed, std::vector<std::string>* refusals) {
  check_types(*parsed);
  name_nodes(parsed);
  settle_constants(parsed);
  find_last_uses(parsed);
  find_refusals(*parsed, refusals);
}

ParsedModel parse(std::string_view bytes, TensorFiles files, const Options& options,
                  std::vector<std::string>* refusals) {
  const Device device = options.device ? options.device : Device::current();
  ParsedModel parsed = parse_model(bytes, std::move(files), device, refusals);
  parsed.precision = options.precision;
  return parsed;
}

void throw_refusals(const std::vector<std::string>& refusals) {
  if (refusals.empty()) return;
  std::string text =
      fmt::format("The model cannot run for {}{}", refusals.size(), refusals.size() == 1 ? " reason:" : " reasons:");
  for (const std::string& line : refusals) text += fmt::format("\n  {}", line);
  throw Error(Code::unsupported, text);
}

// `refusals` come from reading the file.
std::shared_ptr<Model::Impl> finished(ParsedModel parsed, const Options& options, std::vector<std::string> refusals) {
  auto impl = std::make_shared<Model::Impl>(options);
  impl->parsed = std::move(parsed);
  finish_parsed(&impl->parsed, &refusals);
  throw_refusals(refusals);
  // A weight that cannot be copied makes load() fail, not every run().
  for (const Value& weight : impl->parsed.constants) {
    if (weight.is_tensor() && !is_unread(weight.tensor())) weight.tensor().wait();
  }
  impl->dependences = input_dependences(impl->parsed);
  impl->by_value.assign(impl->parsed.inputs.size(), false);
  return impl;
}

// `file`: the file of `bytes`, or null.
Model load_checked(std::string_view bytes, const ModelFile* file, const Options& options) {
  std::vector<std::string> refusals;
  ParsedModel parsed = parse(bytes, {ExternalFiles(options.external_data_root), file}, options, &refusals);
  std::optional<ReadModel> unsettled;
  if (!parsed.defaults.empty()) unsettled = parsed;
  auto impl = finished(std::move(parsed), options, std::move(refusals));
  impl->unsettled = std::move(unsettled);
  return Model(std::move(impl));
}

// Makes each default in `names` the last input of the model.
void make_inputs_of_defaults(const std::set<std::string>& names, ParsedModel* parsed) {
  for (size_t i = 0; i < parsed->defaults.size(); ++i) {
    const ValueInfo& info = parsed->defaults[i];
    if (names.count(info.name) == 0) continue;
    const int32_t value = parsed->default_values[i];
    parsed->constants[static_cast<size_t>(value)] = Value();
    parsed->input_values.push_back(value);
    parsed->inputs.push_back(info);
    parsed->declared.emplace(value, info);
  }
  parsed->defaults.clear();
  parsed->default_values.clear();
}

}  // namespace

std::shared_ptr<Model::Impl> Model::Impl::with_defaults(const std::set<std::string>& names) {
  std::set<std::string> given;
  for (const ValueInfo& info : parsed.defaults) {
    if (names.count(info.name) != 0) given.insert(info.name);
  }
  if (given.empty()) return nullptr;
  const std::lock_guard lock(mutex);
  if (const std::shared_ptr<Impl>* known = with_inputs.find(given)) return *known;
  ParsedModel changed;
  static_cast<ReadModel&>(changed) = *unsettled;
  make_inputs_of_defaults(given, &changed);
  std::shared_ptr<Impl> made = finished(std::move(changed), options, {});
  with_inputs.keep(std::move(given), made);
  return made;
}

Model::Model(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Impl& Model::impl() const {
  if (impl_ == nullptr) throw Error(Code::invalid_argument, "The model is empty. Load one with load().");
  return *impl_;
}
const std::vector<ValueInfo>& Model::inputs() const { return impl().parsed.inputs; }
const std::vector<ValueInfo>& Model::outputs() const { return impl().parsed.outputs; }
const ModelInfo& Model::info() const { return impl().parsed.info; }
Device Model::device() const { return impl().parsed.device; }
void Model::check_names(const std::set<std::string>& names) const {
  at_border([&] { check_input_names(names, impl().parsed.inputs, impl().parsed.defaults); });
}
TensorList Model::run(const Inputs& inputs) const {
  return at_border([&] { return impl().run(inputs, {}, nullptr); });
}
TensorList Model::run(const Inputs& inputs, const Inputs& bound) const {
  return at_border([&] { return impl().run(inputs, bound, nullptr); });
}
TensorList Model::run(const Inputs& inputs, std::vector<NodeExecution>* executions) const {
  return at_border([&] { return impl().run(inputs, {}, executions); });
}
const std::vector<ValueInfo>& Model::defaults() const { return impl().parsed.defaults; }
TensorList Model::run_in_order(const TensorList& inputs) const {
  const std::vector<ValueInfo>& infos = this->inputs();
  if (inputs.size() != infos.size()) {
    throw Error(Code::invalid_argument,
                fmt::format("The model has {} inputs, but {} are given.", infos.size(), inputs.size()));
  }
  Inputs named;
  for (size_t i = 0; i < inputs.size(); ++i) named[infos[i].name] = inputs[i];
  return run(named);
}
Inputs Model::run_named(const Inputs& inputs) const {
  TensorList results = run(inputs);
  Inputs named;
  for (size_t i = 0; i < results.size(); ++i) named[outputs()[i].name] = std::move(results[i]);
  return named;
}
ValueList Model::run_values(const Values& inputs, std::vector<NodeExecution>* executions) const {
  return run_values(inputs, {}, executions);
}
ValueList Model::run_values(const Values& inputs, const Inputs& bound, std::vector<NodeExecution>* executions) const {
  return at_border([&] { return impl().run_values(inputs, bound, executions); });
}
graph::Graph Model::record(const Inputs& inputs, bool open) const {
  const DynamicDims dims = open ? DynamicDims::open : DynamicDims::numbers;
  return at_border([&] {
    const auto other = impl().with_defaults_of(inputs);
    const Impl& model = other != nullptr ? *other : impl();
    return model.record_for(model.bind(inputs), dims);
  });
}

uint64_t Model::recorded() const {
  const std::lock_guard lock(impl().mutex);
  return impl().recorded;
}

Model load_bytes(std::string_view bytes, const Options& options) {
  return at_border([&] { return load_checked(bytes, nullptr, options); });
}

Model load(const std::string& path, const Options& options) {
  return at_border([&] {
    const ModelFile file = value_or_throw(ModelFile::open(path, kLargestFile));
    Options with_root = options;
    if (with_root.external_data_root.empty()) {
      const size_t slash = path.rfind('/');
      with_root.external_data_root = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    }
    try {
      return load_checked(file.bytes(), &file, with_root);
    } catch (const Error& error) {
      throw Error(error.status().with_context(fmt::format("  while loading '{}'", path)));
    }
  });
}

Checked check(const std::string& path, const Options& options) {
  return at_border([&] {
    const ModelFile file = value_or_throw(ModelFile::open(path, kLargestFile));
    Checked checked;
    try {
      TensorFiles files{ExternalFiles(std::string()), &file, true};
      ParsedModel parsed = parse(file.bytes(), std::move(files), options, &checked.refusals);
      finish_parsed(&parsed, &checked.refusals);
      checked.info = parsed.info;
      checked.inputs = parsed.inputs;
      checked.outputs = parsed.outputs;
      checked.defaults = parsed.defaults;
    } catch (const Error& error) {
      throw Error(error.status().with_context(fmt::format("  while checking '{}'", path)));
    }
    return checked;
  });
}

std::string to_string(const ValueInfo& info) {
  if (info.optional) {
    ValueInfo held = info;
    held.optional = false;
    return fmt::format("an optional {}", to_string(held));
  }
  if (info.kind == Value::Kind::sequence) return "a sequence";
  if (info.kind == Value::Kind::map) return "a map";
  std::string text(info.kind == Value::Kind::strings ? "string" : dtype_name(info.dtype));
  if (!info.has_shape) return fmt::format("{}[...]", text);
  text += "[";
  for (size_t i = 0; i < info.dims.size(); ++i) {
    const Dim& dim = info.dims[i];
    text += (i == 0 ? "" : ", ") + (dim.value >= 0     ? fmt::format("{}", dim.value)
                                    : dim.name.empty() ? "?"
                                                       : visible(dim.name));
  }
  return fmt::format("{}]", text);
}

}  // namespace tenon::onnx
