#include "core/graph/recorder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>

#include "core/device/device_state.h"
#include "core/graph/folding.h"
#include "core/graph/functional.h"
#include "core/graph/passes/passes.h"
#include "core/interpreter/compiled_call.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/order.h"
#include "core/interpreter/prepared.h"
#include "core/ops/control.h"
#include "core/ops/op_rows.h"
#include "core/ops/ops.h"
#include "core/tensor/factory.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

// A result of a factory, which has no inputs, is computed while recording only if it has at most this many elements; a
// larger one would waste memory.
constexpr int64_t kSmallFactory = 1024;

bool is_value(const Tensor& tensor) { return tensor.impl()->storage == nullptr; }

int64_t input_elements(const OpCall& call) {
  int64_t elements = 0;
  for (const Tensor* input : call.inputs) {
    if (input != nullptr) elements += input->impl()->elements;
  }
  return elements;
}

// True if all inputs of `call` are row-major for all values of the open sizes. Then its results are too.
bool all_row_major(const OpCall& call) {
  return std::all_of(call.inputs.begin(), call.inputs.end(), [](const Tensor* input) {
    if (input == nullptr) return true;
    return is_value(*input) ? recorded(*input).row_major : input->contiguous();
  });
}

// Views that keep the elements of a row-major tensor row-major.
bool keeps_row_major(const OpInfo& view) {
  for (const OpId id : {OpId::reshape, OpId::view, OpId::squeeze, OpId::unsqueeze}) {
    if (&view == &op_row(id)) return true;
  }
  return false;
}

// `value` with its elements in the order of `strides`, the order of the memory that it replaces. Reductions add in the
// order of memory, so the order affects their bits.
Tensor in_layout(const Tensor& value, const Dims& strides) {
  const TensorImpl& impl = *value.impl();
  if (same_layout(impl.dims, impl.strides, strides)) return value;
  std::vector<int64_t> order(static_cast<size_t>(impl.dims.rank())), back(order.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return strides[static_cast<int32_t>(a)] > strides[static_cast<int32_t>(b)];
  });
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return permute(contiguous(permute(value, order)), back);
}

std::vector<Patch> patches_of(const OpCall& call) {
  return call.patches == nullptr ? std::vector<Patch>() : call.patches->list;
}

std::vector<uint64_t> attribute_words(const OpCall& call) {
  std::vector<uint64_t> words((call.op->attribute_bytes + 7) / 8);
  if (!words.empty()) std::memcpy(words.data(), call.attributes, call.op->attribute_bytes);
  return words;
}

}  // namespace

Recorder::Recorder(Device device, Options options)
    : device_(device.state()), options_(std::move(options)), known_(current_interpreter()) {
  begin();
}

Recorder::~Recorder() {
  open_arena_.reset();
  recording_->finished.store(true, std::memory_order_relaxed);
}

void Recorder::begin() {
  static std::atomic<uint64_t> count{0};
  recording_ = std::make_shared<Recording>();
  recording_->name = fmt::format("recording {}", ++count);
  if (!options_.name.empty()) recording_->name += fmt::format(" ({})", options_.name);
  open_arena_.reset();
  graph_ = std::make_shared<Graph>(recording_->name);
  frames_.clear();
  frames_.push_back({0, recording_->name, graph_});
  at_ = 0;
  graphs_ = {{0, graph_}};
  open_arena_ = std::make_unique<symbolic::RecordingArena>(graph_->arena());
  symbols_.clear();
  label_ = 0;
}

std::string Recorder::name() const { return recording_->name; }

Tensor Recorder::tensor_of(ValueId value, const TensorMeta& meta, std::shared_ptr<Base> base, ViewChain chain,
                           bool row_major) {
  auto made = std::make_unique<RecordedTensor>(recording_, this);
  made->row_major = row_major;
  made->generation = base->generation;
  made->base = std::move(base);
  made->chain = std::move(chain);
  made->value = value;
  made->frame = frames_[at_].id;
  Tensor tensor = make_meta((*graph_)[value].device, meta);
  tensor.impl()->stand_in = made.release();
  tensor.impl()->open = is_open(recorded(tensor));
  return tensor;
}

Tensor Recorder::new_tensor(ValueId value, const TensorMeta& meta, bool row_major) {
  auto base = std::make_shared<Base>(Base{value, meta.strides, row_major});
  base->frame = frames_[at_].id;
  return tensor_of(value, meta, std::move(base), {}, row_major);
}

Tensor Recorder::view_of(const OpCall& call, ValueId value, const TensorMeta& meta) {
  if (!is_value(*call.inputs[0])) {  // a view, with an open size, of a tensor from outside
    auto base = std::make_shared<Base>(Base{value, meta.strides});
    base->frame = frames_[at_].id;
    base->outside = true;
    return tensor_of(value, meta, std::move(base), {}, false);
  }
  const RecordedTensor& source = recorded(*call.inputs[0]);
  ViewChain chain = source.chain.with({call.op, attribute_words(call), patches_of(call)});
  return tensor_of(value, meta, source.base, std::move(chain), source.row_major && keeps_row_major(*call.op));
}

Tensor Recorder::input(DType dtype, const Dims& dims, Device device) {
  const At program(*this, 0);
  SymDims sizes;
  for (int64_t dim : dims) sizes.push_back(dim);
  return new_tensor(graph_->add_input(dtype, sizes, device.state()), {dtype, dims, contiguous_strides(dims)});
}

Tensor Recorder::variable(const Tensor& known) {
  const At program(*this, 0);
  return new_tensor(graph_->add_constant(known), {known.dtype(), known.dims(), known.strides()}, known.contiguous());
}

void Recorder::label(std::string text) { label_ = graph_->add_label(std::move(text)); }

Tensor Recorder::whole(const std::shared_ptr<Base>& base) {
  const Value& value = (*graphs_.at(base->frame))[base->value];
  Dims dims;
  for (SymDim dim : value.dims) dims.push_back(graph_->arena().hint(dim).value());
  return tensor_of(base->value, {value.dtype, dims, base->strides}, base, {}, base->row_major);
}

bool Recorder::host_value_known(const Tensor& tensor) { return !is_value(tensor); }

void Recorder::check_value(std::string_view op, const char* role, size_t index, const Tensor& tensor) const {
  if (!is_value(tensor)) return;
  const RecordedValue* value = recorded_value(*tensor.impl());
  if (value != nullptr && value->recording == recording_) return;
  throw Error(Subject{op}, Code::invalid_argument,
              fmt::format("{} {} of shape {} is {}, and cannot be used under {}.", role, index, tensor.impl()->dims,
                          origin_of(tensor), recording_->name));
}

void Recorder::check_values(const OpCall& call) const {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] != nullptr) check_value(call.op->name, "argument", i, *call.inputs[i]);
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i].defined()) check_value(call.op->name, "output", i, call.outputs[i]);
  }
}

ValueId Recorder::apply_view(const ViewStep& view, ValueId of) {
  Node node;
  node.op = view.op;
  node.inputs = {of};
  node.attributes = view.attributes;
  node.patches = view.patches;
  node.label = label_;
  return graph_->node(graph_->append(std::move(node))).results[0];
}

ValueId Recorder::value_of(const Tensor& tensor) {
  if (!is_value(tensor)) {
    if (RecordedValue* known = recorded_value(*tensor.impl())) known->read_elements(*tensor.impl());
    ValueId& constant = frames_[at_].constants[tensor.impl()];
    return constant != 0 ? constant : constant = graph_->add_constant(tensor);
  }
  RecordedTensor& self = recorded(tensor);
  std::optional<size_t> at = open_frame(self.frame);
  if (self.generation != self.base->generation || !at) {
    at = open_frame(self.base->frame);
    if (!at) {
      throw Error(Code::invalid_argument,
                  fmt::format("A tensor of shape {} of {} is used outside of it.", tensor.impl()->dims,
                              "the function of a region that has ended"),
                  "Return the tensor as a result of the function.");
    }
    const At there(*this, *at);
    self.value = self.base->value;
    for (const ViewStep* view : self.chain.steps()) self.value = apply_view(*view, self.value);
    self.generation = self.base->generation;
    self.frame = self.base->frame;
  }
  return carried_in(self.value, *at);
}

Tensor Recorder::seen_through(const ViewStep& view, const Tensor& of) {
  const Tensor* inputs[] = {&of};
  OpCall call;
  call.op = view.op;
  call.inputs = inputs;
  call.attributes = view.attributes.data();
  TensorImpl seen;
  {
    const HintScope hints(*this);
    throw_if_error(call.op->view(call, &seen));
  }
  const bool row_major = recorded(of).row_major && keeps_row_major(*view.op);
  return new_tensor(apply_view(view, value_of(of)), {seen.dtype, seen.dims, seen.strides}, row_major);
}

void Recorder::write(const Tensor& tensor, const Tensor& value, const OpInfo& op) {
  RecordedTensor& self = recorded(tensor);
  Base& base = *self.base;
  if (base.layout_decided) bind_all_sizes("a write through a view");
  const InterpreterScope scope(*this);
  // by the number of applied views: the base, seen through the first part of the chain
  TensorList seen{whole(self.base)};
  const std::vector<const ViewStep*> chain = self.chain.steps();
  for (size_t i = 0; i + 1 < chain.size(); ++i) seen.push_back(seen_through(*chain[i], seen.back()));
  Tensor written = value;
  for (size_t i = chain.size(); i-- > 0;) {
    OpCall view;
    view.op = chain[i]->op;
    view.attributes = chain[i]->attributes.data();
    const Patches patches{chain[i]->patches};
    view.patches = patches.list.empty() ? nullptr : &patches;
    written = view.op->write(view, seen[i], written);
  }
  base.value = value_of(in_layout(written, base.strides));
  ++base.generation;
  base.written_by = op.name;
  const TensorImpl &view = *tensor.impl(), &now = *value.impl();
  if (!same_layout(now.dims, now.strides, strides_like({view.dtype, view.dims, view.strides}, now.dims))) return;
  self.generation = base.generation;  // otherwise the view is recomputed at its next use
  self.value = value_of(value);
  self.frame = base.frame;
}

void Recorder::infer(const OpCall& call, std::vector<TensorMeta>* outputs) const {
  const HintScope hints(*this);
  if (call.op->form == OpForm::view) {
    TensorImpl view;
    throw_if_error(call.op->view(call, &view));
    outputs->assign(1, {view.dtype, view.dims, view.strides});
  } else if (options_.check_support && call.op->form != OpForm::builtin) {
    DeviceState* device = value_or_throw(tenon::device_of(call));
    const OnlyAsks asking;
    *outputs = std::move(value_or_throw(prepare(call, device, Reach::setting))->outputs);
  } else {
    throw_if_error(infer_outputs(call, outputs));
  }
}

bool Recorder::compute_now(const OpCall& call, std::span<const TensorMeta> outputs) const {
  const auto unknown = [](const Tensor* tensor) { return tensor != nullptr && tensor->defined() && is_value(*tensor); };
  if (std::any_of(call.inputs.begin(), call.inputs.end(), unknown)) return false;
  for (const Tensor& output : call.outputs) {
    if (unknown(&output)) return false;
  }
  if (call.patches != nullptr) return false;
  if (call.op->form == OpForm::view) return true;
  // Integer ops may compute directly on a dequantised constant (passes/quantised.cpp), so it is not folded.
  if (call.op->id == static_cast<uint16_t>(OpId::dequantize_linear)) return false;
  int64_t made = 0;
  for (const TensorMeta& meta : outputs) made += element_count(meta.dims);
  const bool factory =
      std::all_of(call.inputs.begin(), call.inputs.end(), [](const Tensor* input) { return input == nullptr; });
  return factory ? made <= kSmallFactory : worth_folding(made, input_elements(call));
}

Node Recorder::node_of(const OpCall& call) {
  Node node;
  node.op = call.op;
  for (const Tensor* input : call.inputs) node.inputs.push_back(input == nullptr ? 0 : value_of(*input));
  node.scalars.assign(call.scalars.begin(), call.scalars.end());
  node.attributes = attribute_words(call);
  node.patches = patches_of(call);
  node.epilogues.assign(call.epilogues.begin(), call.epilogues.end());
  node.precision = call.precision;
  node.label = label_;
  const bool anywhere = std::all_of(node.inputs.begin(), node.inputs.end(), [](ValueId id) { return id == 0; });
  if (call.device != nullptr) {
    node.device = call.device;
  } else if (anywhere) {
    node.device = value_or_throw(tenon::device_of(call));
  }
  if (call.op->id == static_cast<uint16_t>(OpId::copy_from)) {  // the only op that needs its output as an argument
    node.op = &op_row(OpId::to);
    node.device = call.outputs[0].impl()->device;
  }
  return node;
}

void Recorder::record(const OpCall& call, std::span<const TensorMeta> outputs) {
  for (const Tensor& output : call.outputs) {
    if (!output.defined()) continue;
    const bool outside = !is_value(output) || recorded(output).base->outside;
    if (outside || recorded(output).base->frame != frames_[at_].id) {
      throw Error(Subject{call.op->name}, Code::unsupported,
                  fmt::format("a tensor of shape {} from outside {} cannot be written in it.", output.impl()->dims,
                              frames_[at_].name),
                  "Return the new elements as a result, and write them outside.");
    }
  }
  const NodeId id = graph_->append(node_of(call), call.outputs.size());
  const std::vector<ValueId> results = graph_->node(id).results;
  graph_->arena().context({});  // guards from now on are not of this op
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    check_hints(*call.op, results[i], outputs[i]);
    if (call.outputs[i].defined()) {
      require_sizes(*call.op, call.outputs[i], results[i]);
      // with the strides of a new result, because the node does not see the overwritten tensor
      TensorMeta made = outputs[i];
      made.strides = result_strides(call, made.dims);
      write(call.outputs[i], new_tensor(results[i], made, all_row_major(call)), *call.op);
    } else if (call.op->form == OpForm::view) {
      call.outputs[i] = view_of(call, results[i], outputs[i]);
    } else {
      call.outputs[i] = new_tensor(results[i], outputs[i], all_row_major(call));
    }
  }
}

void Recorder::apply(const OpCall& call) {
  if (control::is_control(*call.op)) return record_regions(call);
  if (call.op->form == OpForm::composite) return compose(call, *this);
  check_values(call);
  std::vector<TensorMeta> outputs;
  infer(call, &outputs);
  if (compute_now(call, outputs)) {
    if (holds_sizes(call)) return compute_sizes(call);
    InterpreterScope scope(known_);
    known_.apply(call);
    return;
  }
  if (options_.lacks && call.op->decompose != nullptr && call.epilogues.empty() && options_.lacks(*call.op)) {
    const InterpreterScope scope(*this);
    return call.op->decompose(call);
  }
  record(call, outputs);
}

Graph Recorder::finish(std::span<const Tensor> outputs) {
  std::vector<ValueId> ids;
  for (size_t i = 0; i < outputs.size(); ++i) {
    check_value("finish", "output", i, outputs[i]);
    ids.push_back(value_of(outputs[i]));
  }
  graph_->set_outputs(std::move(ids));
  remove_dead_code_everywhere(graph_.get());
  Graph done = std::move(*graph_);
  recording_->finished.store(true, std::memory_order_relaxed);
  begin();
  return done;
}

}  // namespace tenon::graph
