#include "core/autograd/interpreter.h"

#include <algorithm>

#include "core/autograd/anomaly.h"
#include "core/autograd/history.h"
#include "core/autograd/inline_list.h"
#include "core/autograd/op_node.h"
#include "core/autograd/rows.h"
#include "core/autograd/views.h"
#include "core/ops/control.h"
#include "core/ops/decompose/decompose.h"
#include "core/ops/functors/apply.h"
#include "core/ops/sizes.h"
#include "core/ops/sym_call.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::autograd {
namespace {

using Edges = InlineList<Edge, 4>;

bool wants(const Edge& edge) { return static_cast<bool>(edge.node); }

std::string_view name_of(const OpCall& call, bool in_place) {
  return in_place && !call.op->in_place.op.empty() ? call.op->in_place.op : call.op->name;
}

// True if the op makes or writes a floating tensor: only such tensors pass gradients on.
bool gives_floats(const OpCall& call) {
  return std::any_of(call.outputs.begin(), call.outputs.end(),
                     [](const Tensor& output) { return output.defined() && is_floating(output.dtype()); });
}

[[noreturn, gnu::cold]] void refuse_none(const OpCall& call, const GradientRow& row) {
  throw Error(Subject{call.op->name}, Code::unsupported,
              fmt::format("an argument requires a gradient, which this op does not have: {}.", row.none),
              "Call the op on detach() of the argument, or inside a NoGrad scope.");
}

[[noreturn, gnu::cold]] void refuse_write(const OpCall& call, std::string_view what, std::string_view remedy) {
  throw Error(Subject{name_of(call, true)}, Code::invalid_argument, std::string(what), std::string(remedy));
}

// Throws if writing the given `output` would make the gradients of other tensors wrong. `flows`: an argument wants a
// gradient.
void check_write(const OpCall& call, const Tensor& output, bool flows) {
  const History* history = history_of(output);
  const bool tracked = history != nullptr && wants(history->edge);
  if (tracked && history->leaf) {
    refuse_write(call, "the tensor to write is a leaf that requires a gradient, so its elements may not change.",
                 "Write inside a NoGrad scope.");
  }
  if (history != nullptr && history->view != nullptr) {
    const History& base = *history_of(history->view->base);
    if (base.leaf && wants(base.edge)) {
      refuse_write(call, "the tensor to write is a view of a leaf that requires a gradient.",
                   "Write inside a NoGrad scope.");
    }
    return;
  }
  const SharedStorage storage = output.impl()->storage;
  if (!tracked && flows && storage != nullptr && storage.tensor_count() > 1) {
    refuse_write(
        call,
        "an argument requires a gradient, and other tensors share the memory that is written, so their gradients "
        "would be wrong: the tensor is a view that was made where no gradient was wanted.",
        "Build the tensor by concat, pad or where, or ask its base for a gradient before the view is made.");
  }
}

// Replaces the history of `output`, which was written, by one that leads to `edge`.
void replace_history(const Tensor& output, const Edge& edge) {
  History& history = need_history(output);
  if (history.view != nullptr) return rebase(&history, edge);
  move_edge(&history, edge);
  history.leaf = false;
  ++history.generation;
}

void give_histories(const OpCall& call, uint64_t given, const NodeRef& node) {
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const Tensor& output = call.outputs[k];
    const Edge edge = node && is_floating(output.dtype()) ? Edge{node, static_cast<uint32_t>(k)} : Edge();
    if ((given >> k & 1) != 0) {
      if (wants(edge) || history_of(output) != nullptr) replace_history(output, edge);
    } else if (wants(edge)) {
      History& history = need_history(output);
      history.edge = edge;
      if (call.op->form == OpForm::view) note_view(call, &history);
    }
  }
}

}  // namespace

std::string GradientInterpreter::name() const { return "gradients over " + below_.name(); }

bool GradientInterpreter::keeps(const OpInfo& op) const {
  return below_.keeps(op) || (!control::is_control(op) && gradient_row(op.id).function != nullptr);
}

void GradientInterpreter::apply(const OpCall& call) {
  for (const Tensor* input : call.inputs) {
    if (input != nullptr && input->impl()->gradient != nullptr) [[unlikely]]
      return apply_tracked(call);
  }
  for (const Tensor& output : call.outputs) {
    if (output.impl() != nullptr && output.impl()->gradient != nullptr) [[unlikely]]
      return apply_tracked(call);
  }
  below_.apply(call);
}

// Control flow that is kept as a record: an interpreter below records it.
void GradientInterpreter::apply_control(const OpCall& call, bool flows) {
  if (!flows) return below_.apply(call);
  throw Error(Subject{call.op->name}, Code::unsupported,
              fmt::format("an argument requires a gradient, which a recorded {} does not have yet.", call.op->name),
              "Call the function without compile, or inside a NoGrad scope.");
}

void GradientInterpreter::apply_tracked(const OpCall& call) {
  Edges edges;
  edges.set_size(call.inputs.size());
  bool flows = false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    edges[i] = edge_of(*call.inputs[i]);
    flows = flows || wants(edges[i]);
  }
  if (control::is_control(*call.op)) return apply_control(call, flows);
  if (!call.epilogues.empty() && flows) {
    const InterpreterScope scope(*this);
    return ops::decompose(call);
  }
  const GradientRow& row = gradient_row(call.op->id);
  if (call.op->form == OpForm::composite && flows && row.function == nullptr) return compose(call, *this);
  uint64_t given = 0;
  for (size_t k = 0; k < call.outputs.size(); ++k) given |= uint64_t{call.outputs[k].defined()} << k;
  if (given != 0 && row.function == nullptr && flows && gives_floats(call)) refuse_none(call, row);
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    if ((given >> k & 1) != 0) check_write(call, call.outputs[k], flows);
  }
  const bool differentiable = flows && row.function != nullptr;
  NodeRef node;
  {
    const InterpreterScope scope(below_);
    if (differentiable) node = NodeRef(OpNode::make(call, row, edges.items()));
    below_.apply(call);
  }
  if (!flows && given == 0) return;
  if (flows && row.function == nullptr && gives_floats(call)) refuse_none(call, row);
  if (node) {
    static_cast<OpNode*>(node.get())->take_results(call);
    if (call_context.anomaly_notes != nullptr) [[unlikely]]
      note_call(*node.get());
  }
  give_histories(call, given, node);
}

GradientInterpreter& eager_gradients() {
  static GradientInterpreter interpreter(eager_interpreter());
  return interpreter;
}

Interpreter& interpreter_below() {
  Interpreter& current = current_interpreter();
  const auto* gradients = dynamic_cast<GradientInterpreter*>(&current);
  return gradients == nullptr ? current : gradients->below();
}

bool remembers() { return dynamic_cast<GradientInterpreter*>(&current_interpreter()) != nullptr; }

void watch_process() {
  Interpreter* before = &eager_interpreter();
  process_interpreter.compare_exchange_strong(before, &eager_gradients());
}

}  // namespace tenon::autograd

bool tenon::functors::wants_gradient(const Tensor& x) { return x.requires_grad() && autograd::remembers(); }
