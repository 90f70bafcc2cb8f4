#include "core/graph/execute/roots.h"

namespace tenon::graph {
namespace {

// The location of the result of `view`, a view of a value at `source`. If it cannot be computed, the result is its own
// root.
RootView view_of_root(const StepCall& view, const RootView& source, uint32_t result) {
  TensorImpl impl;
  const Status status = view.call().op->view(view.call(), &impl);
  if (!status.ok() || impl.dtype != view.call().inputs[0]->dtype()) return {result, 0};
  return {source.root, source.offset + impl.offset};
}

}  // namespace

void Roots::follow(const Executable& program) {
  for (auto id = static_cast<uint32_t>(roots_.size()); id < program.values.size(); ++id) roots_.push_back({id, 0});
  for (; steps_ < program.steps.size(); ++steps_) {
    const Step& step = program.steps[steps_];
    if (!is_view(step)) continue;
    const uint32_t source = step.inputs[0], result = step.outputs[0];
    roots_[result] = view_of_root(StepCall(program, step), roots_[source], result);
  }
}

}  // namespace tenon::graph
