#include "core/autograd/views.h"

#include <cstring>

#include "core/autograd/backward.h"
#include "core/autograd/op_node.h"
#include "core/autograd/rows.h"
#include "core/ops/attributes.h"
#include "core/ops/op_rows.h"
#include "core/ops/ops.h"
#include "core/ops/sizes.h"
#include "core/ops/sym_call.h"

namespace tenon::autograd {
namespace {

using Steps = std::vector<const ViewStep*>;

// The steps from the base to the view, in order. Reads sizes as numbers.
Steps steps_to(const ViewStep* last) {
  Steps steps;
  for (const ViewStep* step = last; step != nullptr; step = step->before.get()) {
    for (const SymDim size : step->open) bound(size, "a write through a view");
    steps.insert(steps.begin(), step);
  }
  return steps;
}

InputShape shape_of(const TensorMeta& meta, DeviceState* device) { return {meta.dims, meta.dtype, device, {}}; }

// Applies the view of one step to `tensor`, whose strides may differ from the base's.
Tensor viewed(const ViewStep& step, const Tensor& tensor) {
  const OpId id = static_cast<OpId>(step.op->id);
  if (id == OpId::reshape || id == OpId::view) {
    return tenon::reshape(tensor, reinterpret_cast<const ShapeAttributes*>(step.attributes.get())->dims.dims());
  }
  Tensor result;
  const Tensor* inputs[] = {&tensor};
  OpCall call;
  call.op = step.op;
  call.inputs = inputs;
  call.attributes = step.attributes.get();
  call.outputs = {&result, 1};
  submit(call);
  return result;
}

Tensor viewed(const Steps& steps, Tensor tensor) {
  for (const ViewStep* step : steps) tensor = viewed(*step, tensor);
  return tensor;
}

// A base of zeros with the elements of `view`, the last of `steps`, in their positions.
Tensor spread(const Steps& steps, Tensor view, DeviceState* device) {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const NodeRef node(OpNode::make_view(*(*step)->op, gradient_row((*step)->op->id), (*step)->attributes.get(),
                                         shape_of((*step)->input, device), Edge()));
    Tensor spread_once;
    node->run({&view, 1}, 1, {&spread_once, 1});
    view = spread_once;
  }
  return view;
}

// The node of a base that was written through a view: edge 0 leads to the old base, edge 1 to the written elements.
class WriteNode final : public Node {
 public:
  WriteNode(std::shared_ptr<const ViewStep> last, Edge base, Edge written) : last_(std::move(last)) {
    edges_[0] = std::move(base);
    edges_[1] = std::move(written);
    number_after_edges();
  }
  std::string_view name() const override { return "a write through a view"; }
  size_t result_count() const override { return 1; }
  std::span<const Edge> edges() const override { return edges_; }

  void run(std::span<const Tensor> of_results, uint64_t wanted, std::span<Tensor> of_inputs) override {
    const Steps steps = steps_to(last_.get());
    const Tensor part = viewed(steps, of_results[0]);
    if ((wanted & 1) != 0) {
      const Tensor region = spread(steps, tenon::ones_like(part.detach()), part.impl()->device);
      of_inputs[0] = tenon::where(tenon::ne(region, 0), 0, of_results[0]);
    }
    if ((wanted & 2) != 0) of_inputs[1] = part;
  }

 private:
  void destroy() override { delete this; }

  std::shared_ptr<const ViewStep> last_;
  Edge edges_[2];
};

std::shared_ptr<const ViewStep> step_of(const OpCall& call, std::shared_ptr<const ViewStep> before) {
  auto step = std::make_shared<ViewStep>();
  step->before = std::move(before);
  step->op = call.op;
  step->attributes = std::make_unique<std::byte[]>(call.op->attribute_bytes);
  if (call.op->attribute_bytes != 0) std::memcpy(step->attributes.get(), call.attributes, call.op->attribute_bytes);
  const Tensor& input = *call.inputs[0];
  step->input = {input.dtype(), input.impl()->dims, input.impl()->strides};
  if (is_open(input)) {
    const SymDims dims = sizes(input);
    step->open.assign(dims.begin(), dims.end());
  }
  if (call.patches != nullptr) {
    for (const Patch& patch : call.patches->list) step->open.push_back(patch.size);
  }
  return step;
}

}  // namespace

void note_view(const OpCall& call, History* result) {
  const Tensor& input = *call.inputs[0];
  const History* of_input = history_of(input);
  auto view = std::make_unique<ViewOf>();
  view->base = of_input->view != nullptr ? of_input->view->base : input;
  view->last = step_of(call, of_input->view != nullptr ? of_input->view->last : nullptr);
  view->generation = history_of(view->base)->generation.load();
  result->view = std::move(view);
}

void follow_base(History* view) {
  ViewOf& of = *view->view;
  const History& base = *history_of(of.base);
  if (of.generation.load(std::memory_order_acquire) == base.generation.load(std::memory_order_relaxed)) return;
  static std::mutex mutex;  // several threads may read the same view
  const std::lock_guard lock(mutex);
  if (of.generation.load(std::memory_order_relaxed) == base.generation.load(std::memory_order_relaxed)) return;
  Edge edge = base.edge;
  if (edge.node) {
    for (const ViewStep* step : steps_to(of.last.get())) {
      edge = {NodeRef(OpNode::make_view(*step->op, gradient_row(step->op->id), step->attributes.get(),
                                        shape_of(step->input, of.base.impl()->device), edge)),
              0};
    }
  }
  move_edge(view, std::move(edge));
  of.generation.store(base.generation.load(std::memory_order_relaxed), std::memory_order_release);
}

void rebase(History* view, const Edge& written) {
  History& base = *history_of(view->view->base);
  move_edge(&base, {NodeRef(new WriteNode(view->view->last, base.edge, written)), 0});
  ++base.generation;
}

}  // namespace tenon::autograd
