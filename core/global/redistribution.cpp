#include "core/global/redistribution.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>

#include "core/device/call_context.h"
#include "core/device/device_state.h"
#include "core/global/communicator.h"
#include "core/global/lists.h"
#include "core/ops/ops.h"

namespace tenon::global {
namespace {

using Ranks = std::vector<int32_t>;  // numbers in the launch, ascending

Ranks ranks_of_both(const Placement& from, const Placement& to) {
  Ranks all(from.ranks().begin(), from.ranks().end());
  all.insert(all.end(), to.ranks().begin(), to.ranks().end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// The communicator of `ranks` for moves from one placement to the other; null on other ranks. Every rank must call it
// with the same arguments. The first call makes the communicators of both directions.
Communicator* link(const Placement& from, const Placement& to, const Ranks& ranks) {
  using Key = std::pair<std::string, std::string>;
  static std::mutex mutex;
  static auto* links = new std::map<Key, std::shared_ptr<Communicator>>;
  const std::lock_guard lock(mutex);
  const Key there{from.to_string(), to.to_string()};
  if (const auto found = links->find(there); found != links->end()) return found->second.get();
  Communicator& world = *value_or_throw(Communicator::world());
  const int32_t color = std::binary_search(ranks.begin(), ranks.end(), world.rank()) ? 0 : -1;
  std::shared_ptr<Communicator> one = value_or_throw(world.split(color, world.rank()));
  std::shared_ptr<Communicator> other = value_or_throw(world.split(color, world.rank()));
  links->emplace(Key{there.second, there.first}, std::move(other));
  return links->emplace(there, std::move(one)).first->second.get();
}

// Which ranks hold which elements. There are no partial sums.
class Holders {
 public:
  Holders(const Dims& dims, const Layout& layout) : dims_(dims), layout_(layout) {}

  Box box(int32_t position) const {
    const Placement& placement = layout_.placement;
    return box_of(dims_, layout_.sbp, placement.grid(), placement.coordinates(position));
  }
  // The positions that hold the same elements as `position`, itself included.
  std::vector<int32_t> alike(int32_t position) const {
    const Placement& placement = layout_.placement;
    const Dims own = placement.coordinates(position);
    std::vector<int32_t> all;
    for (int32_t other = 0; other < placement.size(); ++other) {
      const Dims at = placement.coordinates(other);
      bool same = true;
      for (int32_t axis = 0; axis < own.rank(); ++axis) {
        same = same && (!layout_.sbp[axis].is_split() || at[axis] == own[axis]);
      }
      if (same) all.push_back(other);
    }
    return all;
  }

 private:
  const Dims& dims_;
  const Layout& layout_;
};

// If several ranks hold an element, a rank that needs it and already holds it keeps its own; the other ranks get it
// from the holders in turn.
class Redistribution {
 public:
  // Runs on the ranks of both placements, `ranks`. `link`: null if there is only one rank.
  Redistribution(const Dims& dims, const Layout& from, const Layout& to, const Ranks& ranks, Communicator* link)
      : from_(from), to_(to), source_(dims, from), target_(dims, to), ranks_(ranks), link_(link) {}

  Tensor run(const Tensor& local, DType dtype, Needed needed) const {
    const int32_t own = from_.placement.here() ? rank_at(from_.placement) : rank_at(to_.placement);
    const Device road = this->road(dtype);
    std::vector<int64_t> sent(ranks_.size()), got(ranks_.size());
    TensorList parts;
    std::vector<Box> pieces;  // indexed by rank
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (const auto piece = piece_of(own, ranks_[i])) {
        parts.push_back(cut(local, source_.box(from_.placement.position()), *piece));
        sent[i] = element_count(piece->dims);
      }
      if (const auto piece = piece_of(ranks_[i], own)) {
        pieces.push_back(*piece);
        got[i] = element_count(piece->dims);
      }
    }
    const Tensor send = parts.empty() ? Tensor::empty({0}, dtype, road) : packed(parts, road);
    Tensor list = send;
    if (link_ != nullptr) {
      const int64_t received = std::accumulate(got.begin(), got.end(), int64_t{0});
      list = exchange(send, {link_, received, {Collective::all_to_all, Reduction::sum, sent, got}, true},
                      road.state()->synchronous ? needed : Needed::later);
    }
    return to_.placement.here() ? assembled(list, pieces) : Tensor();
  }

 private:
  static int32_t rank_at(const Placement& here) { return here.ranks()[static_cast<size_t>(here.position())]; }

  // The device that elements are sent from and received on.
  Device road(DType dtype) const {
    const Placement &from = from_.placement, &to = to_.placement;
    if (link_ == nullptr || from.device_type() != to.device_type()) return Device::host();
    const Device own = from.here() ? from.device() : to.device();
    return link_->carries(own, dtype, false) ? own : Device::host();
  }

  static int32_t position_of(const Layout& layout, int32_t rank) {
    const auto ranks = layout.placement.ranks();
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() ? -1 : static_cast<int32_t>(found - ranks.begin());
  }

  // For partial sums, all ranks but the first along the axis get zeros.
  bool takes_part(int32_t position) const {
    const Dims at = to_.placement.coordinates(position);
    for (int32_t axis = 0; axis < at.rank(); ++axis) {
      if (to_.sbp[axis].is_partial() && at[axis] != 0) return false;
    }
    return true;
  }

  // The elements that rank `sender` sends to rank `receiver`.
  std::optional<Box> piece_of(int32_t sender, int32_t receiver) const {
    const int32_t source = position_of(from_, sender), target = position_of(to_, receiver);
    if (source < 0 || target < 0 || !takes_part(target)) return std::nullopt;
    const std::optional<Box> piece = overlap(source_.box(source), target_.box(target));
    if (!piece) return std::nullopt;
    const std::vector<int32_t> holders = source_.alike(source);
    const int32_t own = position_of(from_, receiver);
    const bool has_it = own >= 0 && std::find(holders.begin(), holders.end(), own) != holders.end();
    const int32_t chosen = has_it ? own : holders[static_cast<size_t>(target) % holders.size()];
    return chosen == source ? piece : std::nullopt;
  }

  // The elements `piece`, cut from a tensor that holds the elements `whole`.
  static Tensor cut(const Tensor& tensor, const Box& whole, const Box& piece) {
    Tensor part = tensor;
    for (int32_t axis = 0; axis < piece.dims.rank(); ++axis) {
      part = part_along(part, axis, {piece.begin[axis] - whole.begin[axis], piece.dims[axis]});
    }
    return part;
  }

  Tensor assembled(const Tensor& list, const std::vector<Box>& pieces) const {
    const Box own = target_.box(to_.placement.position());
    if (pieces.size() == 1 && pieces[0] == own) {
      return where(tenon::reshape(list, own.dims), to_.placement.device());
    }
    Tensor result = nothing(own.dims, list.dtype(), list.device());
    int64_t at = 0;
    for (const Box& piece : pieces) {
      const int64_t count = element_count(piece.dims);
      Tensor part = cut(result, own, piece);
      tenon::copy_(part, tenon::reshape(tenon::slice(list, 0, at, at + count), piece.dims));
      at += count;
    }
    return where(result, to_.placement.device());
  }

  const Layout &from_, &to_;
  Holders source_, target_;
  const Ranks& ranks_;
  Communicator* link_;
};

}  // namespace

Tensor redistribute(const Tensor& local, DType dtype, const Dims& dims, const Layout& from, const Layout& to,
                    Needed needed) {
  if (call_context.seen_moves != nullptr) call_context.seen_moves->note(from.placement, to.placement);
  const Ranks ranks = ranks_of_both(from.placement, to.placement);
  Communicator* between = ranks.size() > 1 ? link(from.placement, to.placement, ranks) : nullptr;
  if (!from.placement.here() && !to.placement.here()) return {};
  return Redistribution(dims, from, to, ranks, between).run(local, dtype, needed);
}

SeenMoves::SeenMoves() : previous_(std::exchange(call_context.seen_moves, this)) {}
SeenMoves::~SeenMoves() { call_context.seen_moves = previous_; }

void SeenMoves::note(const Placement& from, const Placement& to) {
  if (std::find(pairs_.begin(), pairs_.end(), std::pair(from, to)) == pairs_.end()) pairs_.emplace_back(from, to);
  if (previous_ != nullptr) previous_->note(from, to);
}

}  // namespace tenon::global
