#include "core/global/boxing.h"

#include <numeric>
#include <utility>
#include <vector>

#include "core/device/deterministic.h"
#include "core/device/device_state.h"
#include "core/global/communicator.h"
#include "core/global/exchange.h"
#include "core/global/global_program.h"
#include "core/global/lists.h"
#include "core/global/moves.h"
#include "core/global/redistribution.h"
#include "core/ops/op_call.h"
#include "core/ops/ops.h"

namespace tenon::global {
namespace {

// The cost of one message in bytes: 20 us at 5 GB/s. All ranks use the same number, so that all choose alike.
constexpr double kMessageBytes = 1e5;

// The ranks along one axis of the grid, between which elements move.
class Line {
 public:
  Line(const Placement& placement, int32_t axis, Needed needed)
      : communicator_(*placement.line(axis)),
        device_(placement.device()),
        needed_(device_.state()->synchronous ? needed : Needed::later),
        ranks_(communicator_.size()),
        index_(communicator_.rank()) {}

  // The part after the move. `local` is the part before; `dims` are its dims without the split.
  Tensor move(const Tensor& local, const Dims& dims, Sbp from, Sbp to) const {
    switch (collective_of(from, to)) {
      case Collective::none: break;
      case Collective::all_reduce: return all_reduce(local);
      case Collective::all_gather: return all_gather(local, dims, from);
      case Collective::reduce_scatter: return reduce_scatter(local, dims, to);
      case Collective::all_to_all: return all_to_all(local, dims, from, to);
    }
    if (from == to) return local;
    if (from.is_split()) return filled_up(local, dims, from);
    return to.is_split() ? part_along(local, to.axis(), part(dims, to)) : on_one(local);
  }

 private:
  Range part(const Dims& dims, Sbp split, int64_t index) const { return part_of(dims[split.axis()], ranks_, index); }
  Range part(const Dims& dims, Sbp split) const { return part(dims, split, index_); }
  // The number of elements of `dims` per position along `axis`.
  static int64_t across(const Dims& dims, int32_t axis) {
    Dims rest = dims;
    rest[axis] = 1;
    return element_count(rest);
  }
  std::vector<int64_t> counts(const Dims& dims, Sbp split) const {
    std::vector<int64_t> counts;
    for (int64_t i = 0; i < ranks_; ++i) counts.push_back(part(dims, split, i).length * across(dims, split.axis()));
    return counts;
  }
  // The device that elements are sent from and received on: the ranks' devices if the communicator takes their memory,
  // else the host.
  Device road(DType dtype, bool sums) const {
    return communicator_.carries(device_, dtype, sums) ? device_ : Device::host();
  }

  // Joins the pieces of a list, each with its own dims, along `axis`.
  Tensor side_by_side(const Tensor& list, const std::vector<Dims>& pieces, int32_t axis) const {
    TensorList parts;
    int64_t at = 0;
    for (const Dims& piece : pieces) {
      const int64_t count = element_count(piece);
      parts.push_back(tenon::reshape(tenon::slice(list, 0, at, at + count), piece));
      at += count;
    }
    return where(parts.size() == 1 ? parts[0] : tenon::concat(parts, axis), device_);
  }

  Tensor on_one(const Tensor& local) const {
    return index_ == 0 ? local : nothing(local.dims(), local.dtype(), device_);
  }

  Tensor filled_up(const Tensor& local, const Dims& dims, Sbp from) const {
    Tensor all = nothing(dims, local.dtype(), device_);
    Tensor own = part_along(all, from.axis(), part(dims, from));
    tenon::copy_(own, local);
    return all;
  }

  Tensor all_gather(const Tensor& local, const Dims& dims, Sbp from) const {
    const Device road = this->road(local.dtype(), false);
    const Tensor all = exchange(
        flat(dense_on(local, road)),
        {&communicator_, element_count(dims), {Collective::all_gather, Reduction::sum, counts(dims, from)}}, needed_);
    std::vector<Dims> pieces;
    for (int64_t i = 0; i < ranks_; ++i) {
      pieces.push_back(dims);
      pieces.back()[from.axis()] = part(dims, from, i).length;
    }
    return side_by_side(all, pieces, from.axis());
  }

  Tensor all_reduce(const Tensor& local) const {
    if (are_deterministic_algorithms_enabled()) {
      const Dims list{local.elements()};
      const Tensor mine = reduce_scatter(flat(local), list, Sbp::split(0));
      return tenon::reshape(all_gather(mine, list, Sbp::split(0)), local.dims());
    }
    const Device road = this->road(local.dtype(), true);
    const Tensor sum =
        exchange(flat(dense_on(local, road)), {&communicator_, local.elements(), {Collective::all_reduce}}, needed_);
    return where(tenon::reshape(sum, local.dims()), device_);
  }

  Tensor reduce_scatter(const Tensor& local, const Dims& dims, Sbp to) const {
    TensorList parts;
    for (int64_t i = 0; i < ranks_; ++i) parts.push_back(part_along(local, to.axis(), part(dims, to, i)));
    const std::vector<int64_t> for_each = counts(dims, to);
    const int64_t own = for_each[static_cast<size_t>(index_)];
    Dims mine = dims;
    mine[to.axis()] = part(dims, to).length;
    const bool in_order = are_deterministic_algorithms_enabled();
    const Device road = this->road(local.dtype(), !in_order);
    const Tensor send = packed(parts, road);
    if (in_order) {
      const std::vector<int64_t> from_each(static_cast<size_t>(ranks_), own);
      const Tensor all = exchange(
          send, {&communicator_, own * ranks_, {Collective::all_to_all, Reduction::sum, for_each, from_each}}, needed_);
      Tensor sum = tenon::clone(tenon::slice(all, 0, 0, own));
      for (int64_t i = 1; i < ranks_; ++i) tenon::add_(sum, tenon::slice(all, 0, i * own, (i + 1) * own));
      return where(tenon::reshape(sum, mine), device_);
    }
    const Tensor sum =
        exchange(send, {&communicator_, own, {Collective::reduce_scatter, Reduction::sum, for_each}}, needed_);
    return where(tenon::reshape(sum, mine), device_);
  }

  Tensor all_to_all(const Tensor& local, const Dims& dims, Sbp from, Sbp to) const {
    TensorList parts;
    std::vector<int64_t> for_each, from_each;
    std::vector<Dims> pieces;
    for (int64_t i = 0; i < ranks_; ++i) {
      parts.push_back(part_along(local, to.axis(), part(dims, to, i)));
      for_each.push_back(parts.back().elements());
      pieces.push_back(dims);
      pieces.back()[from.axis()] = part(dims, from, i).length;
      pieces.back()[to.axis()] = part(dims, to).length;
      from_each.push_back(element_count(pieces.back()));
    }
    const Device road = this->road(local.dtype(), false);
    const Tensor send = packed(parts, road);
    const int64_t received = std::accumulate(from_each.begin(), from_each.end(), int64_t{0});
    const Tensor got = exchange(
        send, {&communicator_, received, {Collective::all_to_all, Reduction::sum, for_each, from_each}}, needed_);
    return side_by_side(got, pieces, from.axis());
  }

  Communicator& communicator_;
  Device device_;
  Needed needed_;
  int64_t ranks_, index_;
};

// The dims of a rank's part in the layout `at`, with the split along grid axis `without` undone.
Dims dims_without(const Dims& dims, const Layout& at, int32_t without) {
  Layout rest = at;
  rest.sbp[without] = Sbp::broadcast();
  const Placement& placement = at.placement;
  return box_of(dims, rest.sbp, placement.grid(), placement.coordinates(placement.position())).dims;
}

// Makes the moves along one axis of the grid.
void step(Tensor* local, const Dims& dims, Layout* at, int32_t axis, Sbp to, Needed needed) {
  const Sbp from = at->sbp[axis];
  if (from == to) return;
  if (at->placement.here() && at->placement.grid()[axis] > 1) {
    *local = Line(at->placement, axis, needed).move(*local, dims_without(dims, *at, axis), from, to);
  }
  at->sbp[axis] = to;
}

Tensor within(Tensor local, const Dims& dims, Layout at, const Layout& to, Needed needed) {
  for (const Move& move : moves_between(at.sbp, to.sbp)) step(&local, dims, &at, move.axis, move.to, needed);
  return local;
}

}  // namespace

Tensor box(const Tensor& local, DType dtype, const Dims& dims, const Layout& from, const Layout& to, Needed needed) {
  const InterpreterScope scope(parts_interpreter());
  if (from.placement == to.placement) return within(local, dims, from, to, needed);
  const Layout whole = without_partial(from);
  return redistribute(within(local, dims, from, whole, needed), dtype, dims, whole, to, needed);
}

double move_cost(Sbp from, Sbp to, double bytes, int64_t ranks) {
  if (from == to || ranks == 1) return 0;
  const auto n = static_cast<double>(ranks);
  const double once = bytes * (n - 1) / n;
  if (to.is_partial())
    return from.is_broadcast() ? 1 : once;  // nothing is sent, but each rank needs memory for the whole
  if (from.is_broadcast()) return 0;
  if (from.is_partial()) return kMessageBytes + (to.is_split() ? once : 2 * once);
  return kMessageBytes + (to.is_broadcast() ? once : once / n);
}

}  // namespace tenon::global
