#include "core/autograd/autograd.h"

#include "core/autograd/anomaly.h"
#include "core/autograd/engine.h"
#include "core/autograd/history.h"
#include "core/autograd/interpreter.h"
#include "core/autograd/leaf.h"
#include "core/autograd/saved.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

using autograd::Capture;
using autograd::edge_of;
using autograd::EngineOptions;
using autograd::history_of;
using autograd::need_history;
using autograd::Root;

template <class... Parts>
[[noreturn]] void refuse(std::string_view op, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  throw Error(Subject{op}, Code::invalid_argument, fmt::format(text, parts...));
}

void require_no_inference(std::string_view op) {
  if (call_context.inference) refuse(op, "an InferenceMode scope is open, in which nothing has a gradient.");
}

const autograd::Edge& require_edge(std::string_view op, std::string_view what, size_t i, const Tensor& tensor) {
  if (!tensor.defined()) refuse(op, "{} {} is an undefined tensor.", what, i);
  const autograd::Edge& edge = edge_of(tensor);
  if (!edge.node) refuse(op, "{} {} of shape {} wants no gradient.", what, i, tensor.dims());
  return edge;
}

// The given weight of output `i`, checked, or the number 1.
Tensor weight_of(std::string_view op, size_t i, const Tensor& output, const Tensor& given) {
  if (!given.defined()) {
    if (output.elements() != 1) {
      refuse(op, "output {} of shape {} has {} elements; only an output of one element may omit its gradient.", i,
             output.dims(), output.elements());
    }
    return tenon::ones_like(autograd::without_history(output));
  }
  if (!(given.dims() == output.dims()) || given.dtype() != output.dtype()) {
    refuse(op, "the gradient given for output {} is {} {}; the output is {} {}.", i, dtype_name(given.dtype()),
           given.dims(), dtype_name(output.dtype()), output.dims());
  }
  return given;
}

std::vector<Root> roots_of(std::string_view op, const TensorList& outputs, const TensorList& gradients) {
  require_no_inference(op);
  if (!gradients.empty() && gradients.size() != outputs.size()) {
    refuse(op, "{} gradients are given for {} outputs.", gradients.size(), outputs.size());
  }
  std::vector<Root> roots;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const autograd::Edge& edge = require_edge(op, "output", i, outputs[i]);
    roots.push_back({edge, weight_of(op, i, outputs[i], gradients.empty() ? Tensor() : gradients[i])});
  }
  return roots;
}

template <class Function>
HookHandle handle_to(const std::shared_ptr<autograd::HookList<Function>>& hooks, Function hook) {
  const uint64_t number = hooks->add(std::move(hook));
  return HookHandle([list = std::weak_ptr(hooks), number] {
    if (const auto alive = list.lock()) alive->remove(number);
  });
}

}  // namespace

void backward(const TensorList& outputs, const TensorList& gradients, const BackwardOptions& options) {
  const std::vector<Root> roots = roots_of("backward", outputs, gradients);
  run_backward(roots, {}, {options.retain_graph || options.create_graph, options.create_graph, false});
}

TensorList grad(const TensorList& outputs, const TensorList& inputs, const TensorList& gradients,
                const GradOptions& options) {
  std::vector<Capture> captures;
  for (size_t i = 0; i < inputs.size(); ++i)
    captures.push_back({require_edge("grad", "input", i, inputs[i]), Tensor()});
  const std::vector<Root> roots = roots_of("grad", outputs, gradients);
  run_backward(roots, captures, {options.retain_graph || options.create_graph, options.create_graph, true});
  TensorList results;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!captures[i].gradient.defined() && !options.allow_unused) {
      refuse("grad",
             "the outputs do not depend on input {} of shape {}; allow_unused gives an undefined tensor for it.", i,
             inputs[i].dims());
    }
    results.push_back(captures[i].gradient);
  }
  return results;
}

HookHandle register_hook(const Tensor& tensor, std::function<Tensor(const Tensor&)> hook) {
  const autograd::Edge& edge = require_edge("register_hook", "argument", 0, tensor);
  return handle_to(edge.node->need_extras().hooks, autograd::Hook{edge.index, std::move(hook)});
}

HookHandle register_hook_after_accumulation(const Tensor& leaf, std::function<void()> hook) {
  require_edge("register_hook_after_accumulation", "argument", 0, leaf);
  if (!leaf.is_leaf()) refuse("register_hook_after_accumulation", "the tensor of shape {} is not a leaf.", leaf.dims());
  const std::shared_ptr<autograd::GradientSlot>& slot = history_of(leaf)->slot;
  const std::shared_ptr<autograd::HookList<std::function<void()>>> hooks(slot, &slot->after_accumulation);
  return handle_to(hooks, std::move(hook));
}

SavedTensorHooks::SavedTensorHooks(std::function<std::function<Tensor()>(const Tensor&)> pack)
    : hook_(new autograd::PackHook{std::move(pack)}), before_(std::exchange(call_context.pack_hook, hook_.get())) {}
SavedTensorHooks::~SavedTensorHooks() { call_context.pack_hook = before_; }

DetectAnomaly::DetectAnomaly(std::function<std::string()> where)
    : where_(std::move(where)), before_(std::exchange(call_context.anomaly_notes, &where_)) {}
DetectAnomaly::~DetectAnomaly() { call_context.anomaly_notes = before_; }

NoGrad::NoGrad() : scope_(std::make_unique<InterpreterScope>(autograd::interpreter_below())) {}
NoGrad::~NoGrad() = default;

InferenceMode::InferenceMode() : before_(std::exchange(call_context.inference, true)) {}
InferenceMode::~InferenceMode() { call_context.inference = before_; }

bool autograd::is_inferring() { return call_context.inference; }

bool Tensor::requires_grad() const {
  (void)at("requires_grad");
  return static_cast<bool>(edge_of(*this).node);
}

bool Tensor::is_leaf() const {
  (void)at("is_leaf");
  return !edge_of(*this).node || history_of(*this)->leaf;
}

const Tensor& Tensor::requires_grad_(bool wanted) const {
  (void)at("requires_grad_");
  if (wanted) require_no_inference("requires_grad_");
  if (wanted && !is_floating(dtype())) {
    refuse("requires_grad_", "a tensor of {} has no gradient; only floating dtypes have one.", dtype_name(dtype()));
  }
  if (requires_grad() == wanted) return *this;
  if (!is_leaf())
    refuse("requires_grad_", "a tensor of shape {} was made by an op, so it is not a leaf; use detach().", dims());
  if (wanted) autograd::watch_process();
  autograd::History& history = need_history(*this);
  if (history.slot == nullptr) history.slot = std::make_shared<autograd::GradientSlot>();
  history.leaf = wanted;
  history.edge = wanted ? autograd::Edge{autograd::NodeRef(new autograd::LeafNode(history.slot)), 0} : autograd::Edge();
  return *this;
}

Tensor Tensor::grad() const {
  (void)at("grad");
  const autograd::History* history = history_of(*this);
  if (history == nullptr || history->slot == nullptr) return {};
  autograd::note_use(history->slot, autograd::SlotUse::read);
  const std::lock_guard lock(history->slot->mutex);
  return history->slot->gradient;
}

void Tensor::set_grad(const Tensor& gradient) const {
  (void)at("set_grad");
  autograd::History* history = history_of(*this);
  if (history == nullptr || history->slot == nullptr) {
    refuse("set_grad", "the tensor of shape {} keeps no gradient: it is not a leaf that requires a gradient.", dims());
  }
  if (gradient.defined() &&
      (!(gradient.dims() == dims()) || gradient.dtype() != dtype() || gradient.impl()->device != impl_->device)) {
    refuse("set_grad", "a gradient of {} {} does not belong to a tensor of {} {} or is on another device.",
           dtype_name(gradient.dtype()), gradient.dims(), dtype_name(dtype()), dims());
  }
  autograd::note_use(history->slot, autograd::SlotUse::replace);
  const std::lock_guard lock(history->slot->mutex);
  history->slot->gradient = gradient;
}

void Tensor::retain_grad() const {
  (void)at("retain_grad");
  const autograd::Edge& edge = require_edge("retain_grad", "argument", 0, *this);
  autograd::History& history = *history_of(*this);
  if (history.leaf || history.retains) return;
  history.retains = true;
  history.slot = std::make_shared<autograd::GradientSlot>();
  autograd::NodeExtras& extras = edge.node->need_extras();
  const std::lock_guard lock(extras.mutex);
  extras.kept.emplace_back(edge.index, history.slot);
}

Tensor Tensor::detach() const {
  (void)at("detach");
  return autograd::without_history(*this);
}

void Tensor::backward() const { tenon::backward({*this}); }
void Tensor::backward(const Tensor& gradient) const { tenon::backward({*this}, {gradient}); }

}  // namespace tenon
