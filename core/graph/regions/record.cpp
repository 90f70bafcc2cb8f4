// Records control flow: each function once, in a frame of its own, whose graph becomes a region of the node. A value of
// an outer frame that the function uses becomes an input of the region.
#include <algorithm>
#include <cstring>

#include "core/graph/functional.h"
#include "core/graph/recorder.h"
#include "core/graph/regions/eager.h"
#include "core/graph/regions/regions.h"
#include "core/ops/sizes.h"
#include "core/tensor/factory.h"
#include "primitives/infer/axis.h"
#include "primitives/text/format.h"

namespace tenon::graph {

bool Recorder::keeps(const OpInfo& op) const { return control::is_control(op); }

size_t Recorder::go_to(size_t at) {
  const size_t before = at_;
  frames_[at_].label = label_;
  at_ = at;
  graph_ = frames_[at].graph;
  label_ = frames_[at].label;
  return before;
}

std::optional<size_t> Recorder::open_frame(uint64_t id) const {
  for (size_t i = frames_.size(); i-- > 0;) {
    if (frames_[i].id == id) return i;
  }
  return std::nullopt;
}

ValueId Recorder::carried_in(ValueId value, size_t from) {
  for (size_t frame = from + 1; frame <= at_; ++frame) value = captured(frame, value);
  return value;
}

// Constants are copied as constants.
ValueId Recorder::captured(size_t frame, ValueId outer) {
  Frame& inner = frames_[frame];
  const Value& value = (*frames_[frame - 1].graph)[outer];
  if (value.constant.defined()) {
    ValueId& constant = inner.constants[value.constant.impl()];
    return constant != 0 ? constant : constant = inner.graph->add_constant(value.constant);
  }
  for (const auto& [from, input] : inner.captures) {
    if (from == outer) return input;
  }
  inner.captures.emplace_back(outer, inner.graph->add_input(value.dtype, value.dims, value.device));
  return inner.captures.back().second;
}

TensorMeta Recorder::hinted(ValueId value) const {
  const Value& of = (*graph_)[value];
  Dims dims;
  for (SymDim dim : of.dims) dims.push_back(hint_of(dim));
  return {of.dtype, dims, contiguous_strides(dims)};
}

class Recorder::RegionScope {
 public:
  RegionScope(Recorder& recorder, std::string name) : recorder_(recorder) {
    if (recorder.frames_.size() > kMostRegionDepth) {
      throw Error(Subject{name}, Code::unsupported,
                  fmt::format("regions are nested more than {} deep.", kMostRegionDepth));
    }
    std::shared_ptr<Graph> graph = recorder.graph_->new_region();
    const uint64_t id = recorder.graphs_.size();
    recorder.graphs_[id] = graph;
    const std::string& label = recorder.graph_->labels()[recorder.label_];
    const uint32_t inner = label.empty() ? 0 : graph->add_label(label);
    recorder.frames_.push_back({id, std::move(name), std::move(graph), {}, {}, inner});
    before_ = recorder.go_to(recorder.frames_.size() - 1);
  }
  ~RegionScope() {
    recorder_.go_to(before_);
    recorder_.frames_.pop_back();
  }
  RegionScope(const RegionScope&) = delete;
  RegionScope& operator=(const RegionScope&) = delete;

 private:
  Recorder& recorder_;
  size_t before_ = 0;
};

// Makes the inputs of a region for the operands of the call. Eager functions would write the operands themselves.
TensorList Recorder::region_inputs(const OpCall& call, const Node& node) {
  const control::Row& row = control::row_of(*call.op);
  const control::Attributes& numbers = call.attributes_as<control::Call>().attributes;
  const Graph& outer = *frames_[at_ - 1].graph;
  TensorList inputs;
  for (size_t i = row.first; i < node.inputs.size(); ++i) {
    const Value& operand = outer[node.inputs[i]];
    const auto at = static_cast<int64_t>(i);
    const bool sliced =
        row.kind == control::Kind::scan && at >= numbers.carried && at < numbers.carried + numbers.sliced;
    SymDims dims;
    for (int32_t axis = sliced ? 1 : 0; axis < operand.dims.rank(); ++axis) dims.push_back(operand.dims[axis]);
    const ValueId input = graph_->add_input(operand.dtype, dims, operand.device);
    inputs.push_back(new_tensor(input, hinted(input)));
    recorded(inputs.back()).base->outside = true;
  }
  return inputs;
}

Recorder::Frame Recorder::record_region(const OpCall& call, size_t body, const Node& node) {
  const control::Call& given = call.attributes_as<control::Call>();
  const std::string_view part = control::row_of(*call.op).bodies[body];
  const RegionScope region(*this, fmt::format("the function '{}' of {} in {}", part, call.op->name, recording_->name));
  const size_t own = at_;
  TensorList results;
  {
    const TensorList inputs = region_inputs(call, node);
    const InterpreterScope scope(*given.interpreter);
    results = given.bodies[body](inputs);
    if (given.interpreter != this) control::refuse_gradients(*call.op, results);
  }
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) {
      throw Error(Subject{call.op->name}, Code::invalid_argument,
                  fmt::format("result {} of the function '{}' is an undefined tensor.", i, part));
    }
    check_value(call.op->name, "result", i, results[i]);
    outputs.push_back(value_of(results[i]));
  }
  graph_->set_outputs(std::move(outputs));
  return frames_[own];
}

void Recorder::record_regions(const OpCall& call) {
  check_values(call);
  const control::Call& given = call.attributes_as<control::Call>();
  Node node;
  node.op = call.op;
  node.label = label_;
  node.attributes.resize(sizeof(control::Attributes) / sizeof(uint64_t));
  std::memcpy(node.attributes.data(), &given.attributes, sizeof given.attributes);
  for (const Tensor* input : call.inputs) node.inputs.push_back(value_of(*input));
  std::vector<Frame> regions;
  for (size_t body = 0; body < given.bodies.size(); ++body) regions.push_back(record_region(call, body, node));
  if (regions.back().graph->outputs().empty()) return;  // nothing is computed

  std::vector<ValueId> captures;  // the captures of all regions
  for (const Frame& region : regions) {
    for (const auto& [outer, input] : region.captures) {
      if (std::find(captures.begin(), captures.end(), outer) == captures.end()) captures.push_back(outer);
    }
  }
  const size_t own = node.inputs.size() - control::row_of(*call.op).first;
  for (const Frame& region : regions) {
    std::vector<ValueId> inputs(region.graph->inputs().begin(),
                                region.graph->inputs().begin() + static_cast<ptrdiff_t>(own));
    for (ValueId outer : captures) {
      const auto known = std::find_if(region.captures.begin(), region.captures.end(),
                                      [&](const auto& capture) { return capture.first == outer; });
      const Value& value = (*graph_)[outer];
      inputs.push_back(known != region.captures.end() ? known->second
                                                      : region.graph->add_input(value.dtype, value.dims, value.device));
    }
    region.graph->keep_inputs(std::move(inputs));
    node.regions.push_back(region.graph);
  }
  node.inputs.insert(node.inputs.end(), captures.begin(), captures.end());
  const NodeId id = graph_->append(std::move(node));
  graph_->arena().context({});
  for (const ValueId result : graph_->node(id).results) {
    const TensorMeta meta = hinted(result);
    // the size of a region's result times the number of steps
    value_or_throw(infer::checked(call.op->name, meta.dims));
    given.results->push_back(new_tensor(result, meta));
  }
}

}  // namespace tenon::graph
