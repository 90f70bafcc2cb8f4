#include "core/global/pipeline.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/autograd.h"
#include "core/global/global.h"
#include "core/global/global_program.h"
#include "core/global/interpreter.h"
#include "core/global/lists.h"
#include "core/global/redistribution.h"
#include "core/global/value.h"
#include "core/ops/op_call.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::global {
namespace {

// The order of the placements in a pipeline.
class Stages {
 public:
  explicit Stages(const std::vector<std::pair<Placement, Placement>>& moves) {
    for (const auto& [from, to] : moves) {
      for (const Placement& each : {from, to}) {
        if (index_of(each) == placements_.size()) placements_.push_back(each);
      }
    }
    leads_.assign(placements_.size(), std::vector<bool>(placements_.size()));
    for (const auto& [from, to] : moves) leads_[index_of(from)][index_of(to)] = true;
    for (size_t a = 0; a < placements_.size(); ++a) {
      for (size_t b = 0; b < placements_.size(); ++b) {
        if (share_a_rank(placements_[a], placements_[b])) leads_[a][b] = true;
      }
    }
    // Finds whether a path leads from one to another (Warshall, 1962).
    for (size_t by = 0; by < placements_.size(); ++by) {
      for (size_t a = 0; a < placements_.size(); ++a) {
        for (size_t b = 0; b < placements_.size(); ++b) leads_[a][b] = leads_[a][b] || (leads_[a][by] && leads_[by][b]);
      }
    }
  }

  // The number of stages that follow the stage of `rank`, one after another.
  int64_t behind(int32_t rank) const {
    std::vector<int64_t> known(placements_.size(), -1);
    for (size_t i = 0; i < placements_.size(); ++i) {
      if (has(placements_[i], rank)) return longest(i, &known);
    }
    return 0;
  }

 private:
  size_t index_of(const Placement& placement) const {
    return static_cast<size_t>(std::find(placements_.begin(), placements_.end(), placement) - placements_.begin());
  }

  static bool has(const Placement& placement, int32_t rank) {
    const std::span<const int32_t> ranks = placement.ranks();
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }
  static bool share_a_rank(const Placement& a, const Placement& b) {
    return std::any_of(a.ranks().begin(), a.ranks().end(), [&](int32_t rank) { return has(b, rank); });
  }

  // The longest path that begins at `from`. `known` caches results; -1: unknown.
  int64_t longest(size_t from, std::vector<int64_t>* known) const {
    int64_t& most = (*known)[from];
    if (most >= 0) return most;
    most = 0;
    for (size_t to = 0; to < placements_.size(); ++to) {
      if (leads_[from][to] && !leads_[to][from]) most = std::max(most, 1 + longest(to, known));
    }
    return most;
  }

  std::vector<Placement> placements_;
  std::vector<std::vector<bool>> leads_;
};

// The number of ranks that split the rows, one entry per axis of the grid; empty: each rank with rows has all of them.
using Dealing = std::vector<int64_t>;

Dealing dealing_of(const Tensor& tensor) {
  Dealing dealing;
  if (!is_global(tensor)) return dealing;
  const Layout layout = layout_of(tensor);
  for (int32_t axis = 0; axis < layout.sbp.rank(); ++axis) {
    const int64_t ranks = layout.placement.grid()[axis];
    if (layout.sbp[axis] == Sbp::split(0) && ranks > 1) dealing.push_back(ranks);
  }
  return dealing;
}

// The rows of one part of a batch: of each rank's rows, 1 / `count`.
struct Part {
  Dealing dealing;
  int64_t count = 1, index = 0;

  std::vector<Range> ranges(int64_t rows) const {
    std::vector<Range> all{{0, rows}};
    for (const int64_t ranks : dealing) {
      std::vector<Range> dealt;
      for (const Range& each : all) {
        for (int64_t i = 0; i < ranks; ++i) dealt.push_back(within(each, ranks, i));
      }
      all = std::move(dealt);
    }
    for (Range& each : all) each = within(each, count, index);
    return all;
  }
  int64_t length(int64_t rows) const {
    int64_t length = 0;
    for (const Range& each : ranges(rows)) length += each.length;
    return length;
  }

 private:
  static Range within(Range range, int64_t parts, int64_t index) {
    const Range part = part_of(range.length, parts, index);
    return {range.begin + part.begin, part.length};
  }
};

Tensor rows_at(const Tensor& tensor, const std::vector<Range>& ranges) {
  TensorList rows;
  for (const Range& each : ranges) rows.push_back(part_along(tensor, 0, each));
  return rows.size() == 1 ? rows[0] : tenon::concat(rows, 0);
}

// The rows of a part of a global tensor. Each rank's share is again divided as by part_of: lengths that differ by at
// most one are cut into lengths that differ by at most one, and the longer ones keep their positions.
class Rows final : public Function {
 public:
  explicit Rows(const Part& part) : part_(part) {}
  std::string name() const override { return "micro_batches"; }

  TensorList forward(const TensorList& inputs) override {
    refresh(inputs[0]);
    const GlobalValue& value = *value_of(inputs[0]);
    whole_ = inputs[0].dims();
    layout_ = value.layout;
    Dims dims = whole_;
    dims[0] = part_.length(whole_[0]);
    if (!dealing_of(inputs[0]).empty()) part_.dealing.clear();  // each rank has only its own rows
    Tensor own;
    if (layout_.placement.here()) {
      const InterpreterScope scope(parts_interpreter());
      own = rows_at(value.local, part_.ranges(value.local.dims()[0]));
    }
    const Tensor rows = make_global(inputs[0].dtype(), dims, layout_, own);
    value_of(rows)->copied = value.copied;
    value_of(rows)->writes = value.writes;
    return {rows};
  }

  TensorList backward(const TensorList& gradients) override {
    const Layout to = without_partial(layout_);
    const Tensor gradient = to_global(gradients[0], to.placement, to.sbp);
    Tensor own;
    if (to.placement.here()) {
      const InterpreterScope scope(parts_interpreter());
      const Dims dims = local_dims(whole_, to);
      own = tenon::zeros(dims, gradient.dtype(), to.placement.device());
      int64_t at = 0;
      for (const Range& each : part_.ranges(dims[0])) {
        tenon::copy_(part_along(own, 0, each), part_along(value_of(gradient)->local, 0, {at, each.length}));
        at += each.length;
      }
    }
    return {make_global(gradient.dtype(), whole_, to, own)};
  }

 private:
  Part part_;
  Dims whole_;
  Layout layout_;
};

Tensor rows_of(const Tensor& tensor, const Part& part) {
  if (!is_global(tensor)) return rows_at(tensor, part.ranges(tensor.dims()[0]));
  return call_function(std::make_shared<Rows>(part), {tensor})[0];
}

// How the rows of the batch are divided among ranks.
Dealing checked(int64_t count, const TensorList& batch) {
  const auto refuse = [](std::string text) {
    throw Error(Subject{"micro_batches"}, Code::invalid_argument, "" + text);
  };
  if (count < 1) refuse(fmt::format("the count is {}, and must be at least 1.", count));
  if (batch.empty()) refuse("the batch has no tensors.");
  size_t dealt = 0;  // the first tensor whose rows are split
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!batch[i].defined() || batch[i].rank() == 0) refuse(fmt::format("tensor {} of the batch has no rows.", i));
    const int64_t rows = batch[i].dims()[0];
    if (rows != batch[0].dims()[0]) {
      refuse(fmt::format("tensor {} of the batch has {} rows, and tensor 0 has {}.", i, rows, batch[0].dims()[0]));
    }
    const Dealing own = dealing_of(batch[i]), known = dealing_of(batch[dealt]);
    if (own.empty() || own == known) continue;
    if (!known.empty()) {
      refuse(fmt::format(
          "rows of tensor {} are on {}, but the rows of tensor {} are on {}; each part needs the same rows of both.", i,
          layout_of(batch[i]).to_string(), dealt, layout_of(batch[dealt]).to_string()));
    }
    dealt = i;
  }
  const Dealing dealing = dealing_of(batch[dealt]);
  const int64_t rows = batch[0].dims()[0];
  if (Part{dealing, count, count - 1}.length(rows) == 0) {
    refuse(fmt::format("{} rows{} cannot be divided into {} parts.", rows,
                       dealing.empty() ? "" : " on " + layout_of(batch[dealt]).to_string(), count));
  }
  return dealing;
}

}  // namespace

Tensor micro_batches(int64_t count, const TensorList& batch, const std::function<Tensor(const TensorList&)>& loss) {
  const Dealing dealing = checked(count, batch);
  const auto forward = [&](int64_t index) {
    const Part part{dealing, count, index};
    TensorList parts;
    for (const Tensor& tensor : batch) parts.push_back(rows_of(tensor, part));
    const Tensor value = loss(parts);
    if (!value.defined() || value.elements() != 1) {
      throw Error(
          Subject{"micro_batches"}, Code::invalid_argument,
          fmt::format("the loss has the shape {}, and must be a number.", value.defined() ? value.dims() : Dims{0}));
    }
    const int64_t rows = batch[0].dims()[0];
    return value * (static_cast<double>(part.length(rows)) / static_cast<double>(rows));
  };

  std::deque<Tensor> begun;  // losses whose backward has not run yet
  size_t most = 0;
  Tensor mean;
  for (int64_t index = 0; index < count; ++index) {
    const SeenMoves seen;  // later parts move like the first
    begun.push_back(forward(index));
    if (index == 0 && !seen.pairs().empty()) most = static_cast<size_t>(Stages(seen.pairs()).behind(rank()));
    const Tensor own = begun.back().detach();
    mean = mean.defined() ? mean + own : own;
    if (begun.size() <= most) continue;
    backward({begun.front()});
    begun.pop_front();
  }
  for (; !begun.empty(); begun.pop_front()) backward({begun.front()});
  return mean;
}

}  // namespace tenon::global
