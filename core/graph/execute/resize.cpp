#include "core/graph/execute/resize.h"

#include <algorithm>
#include <utility>

#include "core/graph/execute/part_write.h"
#include "core/graph/execute/regions.h"
#include "core/graph/execute/rungs.h"
#include "core/graph/execute/schedule.h"
#include "core/graph/execute/steps.h"
#include "core/graph/fusion.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/segment_launch.h"
#include "core/ops/scalar_patch.h"

namespace tenon::graph {
namespace {

bool same(const TensorMeta& a, const TensorMeta& b) {
  return a.dtype == b.dtype && a.dims == b.dims && a.strides == b.strides;
}

class Resizing {
 public:
  Resizing(const Graph& graph, symbolic::Values* sizes, const Executable& like, bool packed)
      : graph_(graph), sizes_(sizes), like_(like), packed_(packed), roots_(like.schedule->roots) {}

  // Returns false if the sizes need other steps.
  bool run() {
    made_.values = like_.values;
    made_.inputs = like_.inputs;
    made_.outputs = like_.outputs;
    made_.over = like_.over;
    made_.labels = like_.labels;
    made_.steps.reserve(like_.steps.size());
    changed_.assign(made_.values.size(), false);
    for (uint32_t id : made_.inputs) {
      const Dims dims = value_or_throw(sizes_->of("input", graph_[id].dims));
      give(id, {graph_[id].dtype, dims, contiguous_strides(dims)});
    }
    for (const Step& step : like_.steps) {
      if (!take(step)) return false;
    }
    if (!std::all_of(made_.outputs.begin(), made_.outputs.end(), [&](uint32_t id) { return is_whole(id); }))
      return false;
    made_.schedule = make_schedule(made_, std::move(roots_));
    return true;
  }

  Executable made() { return std::move(made_); }

 private:
  void give(uint32_t id, const TensorMeta& meta) {
    TensorMeta& known = made_.values[id].meta;
    if (same(known, meta)) return;
    known = meta;
    changed_[id] = true;
  }

  bool take(const Step& step) {
    if (step.regions != nullptr && step.fused == nullptr) return false;  // regions may read any size
    made_.steps.push_back(step);
    Step& next = made_.steps.back();
    bool changes = step.fused != nullptr ||
                   std::any_of(step.inputs.begin(), step.inputs.end(), [&](uint32_t id) { return changed_[id]; });
    if (step.node != kNoNode) {
      const Node& node = graph_.node(step.node);
      // The attributes of the node may depend on the sizes.
      if (step.derived && !step.dense_copy && !node.patches.empty()) return false;
      for (size_t i = 0; !step.derived && i < node.patches.size(); ++i) {
        if (node.patches[i].word >= kScalarPatch) return false;  // a scalar, which is part of the prepared launch
        const auto value = static_cast<uint64_t>(value_or_throw(sizes_->of(node.patches[i].size)));
        uint64_t& word = next.attributes[node.patches[i].word];
        changes = changes || word != value;
        word = value;
      }
    }
    return !changes || work_out(&next);
  }

  bool work_out(Step* step) {
    if (step->island != nullptr) return false;
    if (step->fused != nullptr) return fuse(step);
    if (is_view(*step)) return look(step);
    if (computes(*step) && step->prepared == nullptr) return false;
    if (step->dense_copy) return copy(step);
    if (step->derived) return false;
    std::vector<TensorMeta> metas;
    throw_if_error(infer_outputs(StepCall(made_, *step).call(), &metas));
    if (!fits(*step, metas)) return false;
    return computes(*step) ? launch(step) : write(step, metas);
  }

  // True if the rule over numbers agrees with the rule over expressions.
  bool fits(const Step& step, const std::vector<TensorMeta>& metas) const {
    for (size_t i = 0; i < metas.size(); ++i) {
      const Dims expected = value_or_throw(sizes_->of(step.op->name, graph_[step.outputs[i]].dims));
      if (!(expected == metas[i].dims)) return false;
    }
    return true;
  }

  bool look(Step* step) {
    TensorImpl view;
    if (!step->op->view(StepCall(made_, *step).call(), &view).ok()) return false;
    const uint32_t source = step->inputs[0], result = step->outputs[0];
    give(result, {view.dtype, view.dims, view.strides});
    if (roots_.root(result) != result) roots_.set(result, source, view.offset);
    return true;
  }

  bool copy(Step* step) {
    const TensorMeta& from = made_.values[step->inputs[0]].meta;
    const TensorMeta& before = made_.values[step->outputs[0]].meta;
    if (!is_contiguous(before.dims, before.strides)) return false;
    give(step->outputs[0], {before.dtype, from.dims, contiguous_strides(from.dims)});
    return launch(step);
  }

  // Uses a kernel for the new sizes, if the device has compiled one.
  bool fuse(Step* step) {
    const Node& node = graph_.node(step->node);
    std::string why_not;
    const auto awaited = std::make_shared<AwaitedKernels>();
    step->fused = step->fused->of->launch(*node.regions[0], sizes_, awaited, &why_not);
    if (step->fused == nullptr || awaited->asked.load() != 0) return false;
    step->regions = prepare_regions(graph_, node, sizes_, {});
    const std::optional<Dims> strides = channels_last_of(made_, *step);
    for (uint32_t input : step->inputs) {
      const TensorMeta& meta = made_.values[input].meta;
      if (!strides && !is_contiguous(meta.dims, meta.strides)) return false;
    }
    for (size_t i = 0; i < step->outputs.size(); ++i) {
      TensorMeta meta = step->regions->results[i];
      if (strides) meta.strides = *strides;
      give(step->outputs[i], meta);
    }
    return true;
  }

  // Accepts a new launch only if it has the same needs as the old one: no copies, no decomposition, the same kind of
  // addresses.
  bool launch(Step* step) {
    const std::shared_ptr<const Prepared> prepared = prepare_launch(made_, *step, packed_);
    if (!fits_segment(*prepared).ok() || prepared->placed || step->prepared->placed) return false;
    const std::vector<TensorMeta>& metas = prepared->written();
    for (size_t i = 0; i < metas.size(); ++i) give(step->outputs[i], metas[i]);
    step->prepared = prepared;
    return true;
  }

  // Resizes a step without a primitive of its own.
  bool write(Step* step, const std::vector<TensorMeta>& metas) {
    for (size_t i = 0; i < metas.size(); ++i) give(step->outputs[i], metas[i]);
    if (step->part == nullptr) return true;
    const uint32_t seen = step->part->part.outputs[0];
    step->part = nullptr;
    step->prepared = nullptr;
    prepare_part_write(&made_, seen);
    return made_.steps.back().part != nullptr;
  }

  // True if a value fills its root in row-major order.
  bool is_whole(uint32_t id) const {
    const TensorMeta &meta = made_.values[id].meta, &root = made_.values[roots_.root(id)].meta;
    return is_contiguous(meta.dims, meta.strides) && roots_[id].offset == 0 &&
           element_count(meta.dims) == element_count(root.dims);
  }

  const Graph& graph_;
  symbolic::Values* sizes_;
  const Executable& like_;
  const bool packed_;
  Roots roots_;
  Executable made_;
  std::vector<bool> changed_;  // indexed by value
};

}  // namespace

std::optional<Executable> resize(const Graph& graph, symbolic::Values* sizes, const Executable& like, bool packed) {
  if (like.schedule == nullptr) return std::nullopt;
  try {
    Resizing resizing(graph, sizes, like, packed);
    if (resizing.run()) return resizing.made();
  } catch (const Error&) {
  }
  return std::nullopt;
}

}  // namespace tenon::graph
