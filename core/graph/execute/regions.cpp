#include "core/graph/execute/regions.h"

#include <algorithm>
#include <utility>

#include "core/graph/execute/schedule.h"
#include "core/graph/execute/steps.h"
#include "core/graph/regions/eager.h"
#include "core/graph/regions/regions.h"
#include "core/ops/ops.h"
#include "core/tensor/factory.h"

namespace tenon::graph {
namespace {

using control::Kind;

// The results of `region` that are not its inputs.
std::vector<ValueId> made_results(const Graph& region, std::vector<uint32_t>* passed) {
  std::vector<ValueId> made;
  for (ValueId output : region.outputs()) {
    const auto found = std::find(region.inputs().begin(), region.inputs().end(), output);
    const bool is_input = found != region.inputs().end();
    passed->push_back(is_input ? static_cast<uint32_t>(found - region.inputs().begin()) : PreparedRegion::kMade);
    if (!is_input) made.push_back(output);
  }
  return made;
}

// True if an interpreter must see the ops on `tensor`.
bool watched(const Tensor& tensor) {
  return tensor.impl()->storage == nullptr || (tensor.impl()->gradient != nullptr && tensor.requires_grad());
}

// One run of a region step.
class RegionRun {
 public:
  RegionRun(const RegionStep& step, std::span<const Tensor* const> inputs) : step_(step) {
    for (const Tensor* input : inputs) operands_.push_back(*input);
  }

  TensorList run() {
    if (std::any_of(operands_.begin(), operands_.end(), watched)) return through_interpreter();
    TensorList results = of_kind();
    for (size_t i = 0; i < results.size(); ++i) own(&results, i);
    return results;
  }

 private:
  TensorList of_kind() {
    if (step_.kind == Kind::while_loop) return run_loop();
    if (step_.kind == Kind::scan) return run_scan();
    if (step_.kind == Kind::fused) return run_region(0, operands_);
    const TensorList arguments(operands_.begin() + 1, operands_.end());
    return run_region(control::holds(Kind::cond, operands_[0]) ? 0 : 1, arguments);
  }

  // The invariants of a loop are not part of the state that the functions get.
  TensorList through_interpreter() {
    const size_t own = step_.kind == Kind::while_loop ? step_.carried : operands_.size();
    const TensorList given(operands_.begin(), operands_.begin() + static_cast<ptrdiff_t>(own));
    std::vector<control::Body> bodies;
    for (size_t k = 0; k < std::max<size_t>(step_.regions.size(), 1); ++k) {
      bodies.push_back([this, k, own](TensorList inputs) {
        inputs.insert(inputs.end(), operands_.begin() + static_cast<ptrdiff_t>(own), operands_.end());
        return run_region(k, inputs);
      });
    }
    return control::apply(step_.kind, step_.attributes, bodies, given);
  }

  TensorList run_region(size_t k, const TensorList& inputs, std::span<const Tensor> bound = {}) const {
    const PreparedRegion& region = step_.late != nullptr ? step_.late->prepared() : step_.regions[k];
    std::vector<Tensor> targets;
    for (size_t i = 0; i < bound.size(); ++i) {
      if (region.passed[i] == PreparedRegion::kMade) targets.push_back(bound[i]);
    }
    TensorList made = graph::run(region.program, inputs, targets);
    TensorList results;
    size_t next = 0;
    for (const uint32_t passed : region.passed) {
      results.push_back(passed == PreparedRegion::kMade ? std::move(made[next++]) : inputs[passed]);
    }
    return results;
  }

  // The results of a step are moved into the inputs of the next, so they are freed after it.
  TensorList run_loop() const {
    const control::Attributes& numbers = step_.attributes;
    TensorList now = operands_;
    for (int64_t step = 0; numbers.limited == 0 || step < numbers.most; ++step) {
      control::check_cancelled(Kind::while_loop);
      if (!control::holds(Kind::while_loop, run_region(0, now)[0])) break;
      TensorList next = run_region(1, now);
      std::move(next.begin(), next.end(), now.begin());
    }
    now.resize(step_.carried);
    return now;
  }

  // Each step writes its part of the stacked results directly.
  TensorList run_scan() const {
    const int64_t steps = control::steps_of(step_.attributes, operands_);
    const size_t carried = step_.carried;
    TensorList carry(operands_.begin(), operands_.begin() + static_cast<ptrdiff_t>(carried));
    TensorList stacked, bound(step_.results.size());
    for (size_t i = carried; i < step_.results.size(); ++i) {
      const TensorMeta& meta = step_.results[i];
      stacked.push_back(value_or_throw(make_tensor(step_.devices[i], meta.dtype, meta.dims)));
    }
    for (int64_t step = 0; step < steps; ++step) {
      control::check_cancelled(Kind::scan);
      for (size_t i = carried; i < bound.size(); ++i) bound[i] = select(stacked[i - carried], 0, step);
      carry = run_region(0, control::step_operands(step_.attributes, std::move(carry), operands_, step), bound);
      for (size_t i = carried; i < bound.size(); ++i) {
        if (step_.regions[0].passed[i] != PreparedRegion::kMade) copy_(bound[i], carry[i]);
      }
      carry.resize(carried);
    }
    carry.insert(carry.end(), stacked.begin(), stacked.end());
    return carry;
  }

  // Makes result `i` a copy if it shares memory with an operand or an earlier result.
  void own(TensorList* results, size_t i) const {
    Tensor& result = (*results)[i];
    const auto shares = [&](const Tensor& other) { return other.impl()->storage == result.impl()->storage; };
    const bool given = std::any_of(operands_.begin(), operands_.end(), shares);
    const auto before = results->begin() + static_cast<ptrdiff_t>(i);
    if (given || std::any_of(results->begin(), before, shares)) result = clone(result);
  }

  const RegionStep& step_;
  TensorList operands_;
};

}  // namespace

LateRegion::LateRegion(std::shared_ptr<const Graph> region, symbolic::Values* sizes) : region_(std::move(region)) {
  for (uint32_t i = 0; i < region_->arena().symbols().size(); ++i) {
    const Result<int64_t> value = sizes->of(region_->arena().symbol_at(i));
    sizes_.push_back(value.ok() ? std::optional(value.value()) : std::nullopt);
  }
}

const PreparedRegion& LateRegion::prepared() {
  const std::lock_guard lock(mutex_);
  if (prepared_) return *prepared_;
  symbolic::Values sizes(region_->arena());
  for (uint32_t i = 0; i < sizes_.size(); ++i) {
    if (sizes_[i]) throw_if_error(sizes.bind(i, *sizes_[i]));
  }
  PrepareOptions options;
  options.scheduled = options.whole_graphs = false;  // an interpreter must see each op
  PreparedRegion made;
  const std::vector<ValueId> outputs = made_results(*region_, &made.passed);
  made.program = prepare_outputs(*region_, outputs, &sizes, options);
  prepared_.emplace(std::move(made));
  return *prepared_;
}

std::shared_ptr<const RegionStep> prepare_regions(const Graph& graph, const Node& node, symbolic::Values* sizes,
                                                  const PrepareOptions& options) {
  auto made = std::make_shared<RegionStep>();
  made->kind = control::row_of(*node.op).kind;
  made->attributes = node.attributes_as<control::Attributes>();
  made->carried = carried_count(node);
  PrepareOptions inside = options;
  inside.like = nullptr;
  inside.over.clear();  // `over` refers to results and inputs of the whole program
  if (made->kind == Kind::fused) made->late = std::make_shared<LateRegion>(node.regions[0], sizes);
  for (const std::shared_ptr<Graph>& region : node.regions) {
    if (made->late != nullptr) break;
    PreparedRegion& prepared = made->regions.emplace_back();
    const std::vector<ValueId> outputs = made_results(*region, &prepared.passed);
    prepared.program = prepare_outputs(*region, outputs, sizes, inside);
  }
  for (ValueId result : node.results) {
    const Dims dims = value_or_throw(sizes->of(node.op->name, graph[result].dims));
    made->results.push_back({graph[result].dtype, dims, contiguous_strides(dims)});
    made->devices.push_back(graph[result].device);
  }
  return made;
}

void add_constants(const RegionStep& step, std::vector<Storage*>* storages) {
  for (const PreparedRegion& region : step.regions) {
    const std::vector<Storage*>& own = region.program.schedule->constant_storages;
    storages->insert(storages->end(), own.begin(), own.end());
    for (uint32_t output : region.program.outputs) {
      const Tensor& constant = region.program.values[output].constant;
      if (constant.defined()) storages->push_back(constant.impl()->storage.at_hand());
    }
  }
}

TensorList run_regions(const RegionStep& step, std::span<const Tensor* const> inputs) {
  return RegionRun(step, inputs).run();
}

}  // namespace tenon::graph
