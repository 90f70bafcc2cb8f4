// Model::Impl: a parsed model and its recorded models.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/graph/recent.h"
#include "core/interpreter/execution_report.h"
#include "sdk/onnx/importer/trace.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {

// The number of copies of a model that are kept with some defaults as inputs.
constexpr size_t kMostWithInputs = 4;

struct Model::Impl {
  explicit Impl(const Options& from) : options(from), recorded_models(from.max_recorded) {}

  ParsedModel parsed;
  Options options;
  std::vector<uint64_t> dependences;  // by value: the inputs that it depends on

  std::mutex mutex;
  graph::Recent<std::vector<int64_t>, std::shared_ptr<const RecordedModel>> recorded_models;  // by signature
  graph::Recent<const RecordedGraph*, std::shared_ptr<const RecordedGraph>> recordings{graph::kMostRecordings};
  uint64_t recorded = 0;               // how often the model was recorded
  std::vector<bool> by_value;          // inputs whose elements are part of the signature
  graph::FoldedConstants folded;       // shared by all recorded models
  std::optional<ReadModel> unsettled;  // the model before constants were computed, if it has defaults
  // Copies of this model with some defaults as inputs, by the names of these.
  graph::Recent<std::set<std::string>, std::shared_ptr<Impl>> with_inputs{kMostWithInputs};

  // The copy of this model that also takes the defaults in `names` as inputs; null if `names` contains no default.
  std::shared_ptr<Impl> with_defaults(const std::set<std::string>& names);
  std::shared_ptr<Impl> with_defaults_of(const auto& inputs) {
    std::set<std::string> names;
    for (const auto& [name, value] : inputs) names.insert(name);
    return parsed.defaults.empty() ? nullptr : with_defaults(names);
  }
  TensorList bind(const Inputs& inputs) const;
  ValueList bind_values(const Values& inputs) const;
  std::vector<int64_t> signature(std::span<const Tensor> inputs, const std::vector<bool>& values) const;
  std::shared_ptr<const RecordedModel> recorded_for(std::span<const Tensor> inputs);
  graph::Graph record_for(std::span<const Tensor> inputs, DynamicDims dims) const;
  std::shared_ptr<const RecordedModel> record(std::span<const Tensor> inputs, std::vector<bool> values);
  std::optional<RecordedModel> from_recordings(std::span<const Tensor> inputs);
  std::optional<RecordedModel> record_open(std::span<const Tensor> inputs, const std::vector<bool>& values);
  graph::PrepareOptions preparation(const graph::Executable* like = nullptr) const;
  std::shared_ptr<const RecordedModel> keep(RecordedModel recorded, std::span<const Tensor> inputs);
  bool one_size_per_name() const { return options.shapes == Shapes::exact; }
  bool take_by_value(int32_t value, std::span<const Tensor> inputs, std::vector<bool>* values) const;
  ValueList run_nodes(std::span<const Value> inputs, std::vector<NodeExecution>* executions) const;
  ValueList run_values(const Values& inputs, const Inputs& bound, std::vector<NodeExecution>* executions);
  TensorList targets_of(const Inputs& bound) const;
  void write_output(size_t i, const Value& result, Tensor target) const;
  TensorList run_recorded(const RecordedModel& recorded, std::span<const Tensor> inputs, std::span<const Tensor> bound,
                          std::vector<NodeExecution>* executions) const;
  TensorList run(const Inputs& inputs, const Inputs& bound, std::vector<NodeExecution>* executions);
  using Storages = std::unordered_set<Storage*>;
  Storages storages(std::span<const Tensor> inputs) const;
  Tensor own(const Tensor& result, Storages* taken) const;
  Value own(const Value& result, Storages* taken) const;
  NodeExecution execution(int32_t node, ExecutionEntry entry) const;
};

}  // namespace tenon::onnx
