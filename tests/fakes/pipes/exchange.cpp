// The end of an exchange: every rank has sent its part, and each rank combines the parts itself, in rank order.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "primitives/dtype/dtype.h"
#include "primitives/reference/element.h"
#include "primitives/text/format.h"
#include "tests/fakes/pipes/pipes.h"

namespace tenon::fakes {
namespace {

char* dst_of(const ep_exchange& exchange) { return reinterpret_cast<char*>(static_cast<uintptr_t>(exchange.desc.dst)); }

template <class T>
T combine(int32_t reduction, T a, T b) {
  switch (reduction) {
    case EP_REDUCE_sum: return static_cast<T>(a + b);
    case EP_REDUCE_prod: return static_cast<T>(a * b);
    case EP_REDUCE_max:
    case EP_REDUCE_any: return a > b || a != a ? a : b;
    default: return a < b || a != a ? a : b;
  }
}

// A faster version of the sums below.
void add_floats(const ep_exchange& exchange, int64_t begin, int64_t count) {
  const auto at = static_cast<size_t>(begin) * sizeof(float);
  std::vector<float> sums(static_cast<size_t>(count)), more(sums.size());
  for (size_t rank = 0; rank < exchange.parts.size() && count > 0; ++rank) {
    std::memcpy(more.data(), exchange.parts[rank].data() + at, sums.size() * sizeof(float));
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = rank == 0 ? more[i] : sums[i] + more[i];
  }
  if (count > 0) std::memcpy(dst_of(exchange), sums.data(), sums.size() * sizeof(float));
}

// dst[i] = the reduction of element `begin` + i of all parts, rounded after each rank as hardware does.
void reduce(const ep_exchange& exchange, int64_t begin, int64_t count) {
  const auto dtype = static_cast<DType>(exchange.desc.dtype);
  if (exchange.plugin->breaks == "drops_element" && count > 0) --count;
  if (dtype == DType::f32 && exchange.desc.reduction == EP_REDUCE_sum) return add_floats(exchange, begin, count);
  reference::with_compute_type(dtype, [&](auto of_type) {
    using T = decltype(of_type);
    for (int64_t i = 0; i < count; ++i) {
      T value = reference::load<T>(dtype, exchange.parts.front().data(), begin + i);
      for (size_t rank = 1; rank < exchange.parts.size(); ++rank) {
        value =
            combine(exchange.desc.reduction, value, reference::load<T>(dtype, exchange.parts[rank].data(), begin + i));
        reference::store<T>(dtype, dst_of(exchange), i, value);
        value = reference::load<T>(dtype, dst_of(exchange), i);
      }
      reference::store<T>(dtype, dst_of(exchange), i, value);
    }
  });
}

void gather(const ep_exchange& exchange) {
  char* at = dst_of(exchange);
  const bool backwards = exchange.plugin->breaks == "gathers_backwards";
  for (size_t i = 0; i < exchange.parts.size(); ++i) {
    const std::string& part = exchange.parts[backwards ? exchange.parts.size() - 1 - i : i];
    if (!part.empty()) std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
}

bool needs(const ep_exchange& exchange, int32_t rank) {
  return exchange.desc.kind != EP_COLLECTIVE_broadcast || rank == exchange.desc.peer;
}

void advance_receive(ep_exchange& exchange) {
  Wires& wires = exchange.plugin->wires;
  // Receives of one communicator are matched in their order.
  std::vector<ep_exchange*> order(exchange.plugin->receives.begin(), exchange.plugin->receives.end());
  if (exchange.plugin->breaks == "last_comes_first") std::reverse(order.begin(), order.end());
  for (const ep_exchange* earlier : order) {
    if (earlier == &exchange) break;
    const bool same_peer = earlier->desc.peer == exchange.desc.peer || earlier->desc.peer == EP_RANK_ANY ||
                           exchange.desc.peer == EP_RANK_ANY;
    if (earlier->id == exchange.id && same_peer) return;
  }
  bool any_alive = false;
  for (int32_t rank = 0; rank < static_cast<int32_t>(exchange.all.size()); ++rank) {
    if (rank == exchange.rank || (exchange.desc.peer != EP_RANK_ANY && exchange.desc.peer != rank)) continue;
    const int32_t from = exchange.all[static_cast<size_t>(rank)];
    std::string bytes;
    if (wires.take(from, exchange.id, 0, &bytes)) {
      const size_t room = static_cast<size_t>(exchange.desc.count) * bytes_of(exchange.desc.dtype);
      if (!bytes.empty()) std::memcpy(dst_of(exchange), bytes.data(), std::min(room, bytes.size()));
      exchange.ended = true;
      return;
    }
    any_alive = any_alive || !wires.is_lost(from);
  }
  if (any_alive) return;
  exchange.ended = exchange.lost = true;
  exchange.failure = exchange.desc.peer == EP_RANK_ANY
                         ? "Every other rank is gone."
                         : fmt::format("Rank {} is gone.", exchange.all[static_cast<size_t>(exchange.desc.peer)]);
}

}  // namespace

size_t bytes_of(int32_t dtype) { return static_cast<size_t>(dtype_size(static_cast<DType>(dtype))); }

void finish(ep_exchange& exchange) {
  const ep_collective_desc& desc = exchange.desc;
  const size_t own = static_cast<size_t>(exchange.rank);
  switch (desc.kind) {
    case EP_COLLECTIVE_all_reduce: reduce(exchange, 0, desc.count); break;
    case EP_COLLECTIVE_reduce_scatter: {
      const auto begin = exchange.src_counts.begin();
      reduce(exchange, std::accumulate(begin, begin + exchange.rank, int64_t{0}), exchange.src_counts[own]);
      break;
    }
    case EP_COLLECTIVE_broadcast:
      if (desc.peer != exchange.rank) gather(exchange);
      break;
    default: gather(exchange);
  }
  if (exchange.plugin->breaks == "writes_beyond" && desc.kind == EP_COLLECTIVE_all_reduce) {
    dst_of(exchange)[static_cast<size_t>(desc.count) * bytes_of(desc.dtype)] ^= 1;
  }
  exchange.parts.clear();
}

void advance(ep_exchange& exchange) {
  if (exchange.ended || std::chrono::steady_clock::now() < exchange.not_before) return;
  if (exchange.desc.kind == EP_COLLECTIVE_receive) {
    advance_receive(exchange);
    if (exchange.ended) std::erase(exchange.plugin->receives, &exchange);
    return;
  }
  bool whole = true;
  for (int32_t rank = 0; rank < static_cast<int32_t>(exchange.all.size()); ++rank) {
    const auto at = static_cast<size_t>(rank);
    if (exchange.come[at] || !needs(exchange, rank)) continue;
    const int32_t from = exchange.all[at];
    if (exchange.plugin->wires.take(from, exchange.id, exchange.number, &exchange.parts[at])) {
      exchange.come[at] = true;
    } else if (exchange.plugin->wires.is_lost(from)) {
      exchange.ended = exchange.lost = true;
      exchange.failure = fmt::format("Rank {} is gone.", from);
      return;
    } else {
      whole = false;
    }
  }
  // An exchange ends only when all its messages are sent: a rank that computes afterwards would not send them.
  if (!whole || exchange.plugin->wires.has_unsent()) return;
  finish(exchange);
  exchange.ended = true;
}

}  // namespace tenon::fakes
