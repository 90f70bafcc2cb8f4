#include "sdk/conformance/collectives/collectives.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <span>

#include "ep_api/collective_kinds.h"
#include "primitives/reference/element.h"
#include "primitives/text/format.h"
#include "sdk/conformance/test.h"

namespace tenon::conformance {
namespace {

constexpr size_t fence_bytes = 64;
constexpr uint8_t fence = 0xE7;

// Elements between two fences.
class Fenced {
 public:
  Fenced(DType dtype, int64_t count)
      : size_(static_cast<size_t>(dtype_size(dtype) * count)), bytes_(size_ + 2 * fence_bytes, fence) {}

  uint8_t* data() { return bytes_.data() + fence_bytes; }
  size_t size() const { return size_; }
  bool is_whole() const {
    const auto is_fence = [](uint8_t byte) { return byte == fence; };
    return std::all_of(bytes_.begin(), bytes_.begin() + fence_bytes, is_fence) &&
           std::all_of(bytes_.end() - fence_bytes, bytes_.end(), is_fence);
  }

 private:
  size_t size_;
  std::vector<uint8_t> bytes_;
};

// Element `index` of the data of rank `rank`: small integers, never 0 except for bool.
int value_of(DType dtype, int32_t rank, int64_t index) {
  const auto number = static_cast<int>((index * 7 + rank * 4) % 3);
  return dtype == DType::boolean ? number / 2 : 1 + number;
}

void set(DType dtype, uint8_t* at, int64_t index, int value) {
  reference::with_compute_type(dtype, [&](auto of_type) {
    using T = decltype(of_type);
    reference::store<T>(dtype, at, index, static_cast<T>(value));
  });
}

double get(DType dtype, const uint8_t* at, int64_t index) {
  return reference::with_compute_type(dtype, [&](auto of_type) {
    using T = decltype(of_type);
    return static_cast<double>(reference::load<T>(dtype, at, index));
  });
}

// Returns `value` as stored in `dtype`: bool stores every nonzero value as 1.
double as_held(DType dtype, double value) {
  Fenced one(dtype, 1);
  set(dtype, one.data(), 0, static_cast<int>(value));
  return get(dtype, one.data(), 0);
}

double reduced(const Ranks& ranks, DType dtype, int32_t reduction, int64_t index) {
  double value = as_held(dtype, value_of(dtype, 0, index));
  for (int32_t rank = 1; rank < ranks.size(); ++rank) {
    const double next = as_held(dtype, value_of(dtype, rank, index));
    if (reduction == EP_REDUCE_sum) value += next;
    if (reduction == EP_REDUCE_prod) value *= next;
    if (reduction == EP_REDUCE_max || reduction == EP_REDUCE_any) value = std::max(value, next);
    if (reduction == EP_REDUCE_min || reduction == EP_REDUCE_all) value = std::min(value, next);
  }
  return value;
}

// Counts that differ between ranks; rank 2 has 0 elements.
std::vector<int64_t> uneven(const Ranks& ranks, int64_t base) {
  std::vector<int64_t> counts;
  for (int32_t rank = 0; rank < ranks.size(); ++rank) counts.push_back(rank == 2 ? 0 : base + rank);
  return counts;
}

int64_t before(std::span<const int64_t> counts, int32_t rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, int64_t{0});
}
int64_t total(std::span<const int64_t> counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

Status compare(const ep_collective_desc& desc, Fenced& dst, const std::vector<double>& wanted) {
  const auto dtype = static_cast<DType>(desc.dtype);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double got = get(dtype, dst.data(), static_cast<int64_t>(i));
    if (got == wanted[i]) continue;
    return broken("J05", "element {} of {} of {} by reduction {} is {} and must be {}", i,
                  ep_collective_name(desc.kind), dtype_name(dtype), desc.reduction, got, wanted[i]);
  }
  if (dst.is_whole()) return {};
  return broken("J05", "{} of {} wrote outside of its {} elements", ep_collective_name(desc.kind), dtype_name(dtype),
                wanted.size());
}

Status run_and_compare(Ranks& ranks, ep_collective_desc desc, Fenced& src, Fenced& dst,
                       const std::vector<double>& wanted) {
  const auto dtype = static_cast<DType>(desc.dtype);
  const int64_t elements = static_cast<int64_t>(src.size()) / dtype_size(dtype);
  for (int64_t i = 0; i < elements; ++i) set(dtype, src.data(), i, value_of(dtype, ranks.rank(), i));
  const std::vector<uint8_t> kept(src.data(), src.data() + src.size());
  desc.src = reinterpret_cast<uintptr_t>(src.data());
  desc.dst = reinterpret_cast<uintptr_t>(dst.data());
  TENON_RETURN_IF_ERROR(ranks.run(ranks.world, desc));
  if (!std::equal(kept.begin(), kept.end(), src.data()) || !src.is_whole()) {
    return broken("J05", "{} of {} changed its source", ep_collective_name(desc.kind), dtype_name(dtype));
  }
  return compare(desc, dst, wanted);
}

Status all_reduces(Ranks& ranks, DType dtype, int32_t reduction, int64_t count) {
  ep_collective_desc desc = collective(EP_COLLECTIVE_all_reduce, dtype, nullptr, nullptr, count);
  desc.reduction = reduction;
  Fenced src(dtype, count), dst(dtype, count);
  std::vector<double> wanted;
  for (int64_t i = 0; i < count; ++i) wanted.push_back(reduced(ranks, dtype, reduction, i));
  TENON_RETURN_IF_ERROR(run_and_compare(ranks, desc, src, dst, wanted));
  desc.src = desc.dst = reinterpret_cast<uintptr_t>(src.data());
  TENON_RETURN_IF_ERROR(ranks.run(ranks.world, desc));
  return compare(desc, src, wanted);
}

Status reduce_scatters(Ranks& ranks, DType dtype, int32_t reduction, int64_t count) {
  const std::vector<int64_t> counts = uneven(ranks, count);
  ep_collective_desc desc = collective(EP_COLLECTIVE_reduce_scatter, dtype, nullptr, nullptr, 0);
  desc.reduction = reduction;
  desc.src_counts = counts.data();
  const int64_t own = counts[static_cast<size_t>(ranks.rank())];
  Fenced src(dtype, total(counts)), dst(dtype, own);
  std::vector<double> wanted;
  for (int64_t i = 0; i < own; ++i)
    wanted.push_back(reduced(ranks, dtype, reduction, before(counts, ranks.rank()) + i));
  return run_and_compare(ranks, desc, src, dst, wanted);
}

Status all_gathers(Ranks& ranks, DType dtype, int64_t count) {
  const std::vector<int64_t> counts = uneven(ranks, count);
  ep_collective_desc desc = collective(EP_COLLECTIVE_all_gather, dtype, nullptr, nullptr, 0);
  desc.dst_counts = counts.data();
  Fenced src(dtype, counts[static_cast<size_t>(ranks.rank())]), dst(dtype, total(counts));
  std::vector<double> wanted;
  for (int32_t rank = 0; rank < ranks.size(); ++rank) {
    for (int64_t i = 0; i < counts[static_cast<size_t>(rank)]; ++i)
      wanted.push_back(as_held(dtype, value_of(dtype, rank, i)));
  }
  return run_and_compare(ranks, desc, src, dst, wanted);
}

// Rank a sends rank b ((a + 2 b + 1) % 3) * count elements.
Status all_to_alls(Ranks& ranks, DType dtype, int64_t count) {
  const auto part = [count](int32_t from, int32_t to) { return (from + 2 * to + 1) % 3 * count; };
  const auto counts_of = [&](int32_t from) {
    std::vector<int64_t> counts;
    for (int32_t to = 0; to < ranks.size(); ++to) counts.push_back(part(from, to));
    return counts;
  };
  const std::vector<int64_t> src_counts = counts_of(ranks.rank());
  std::vector<int64_t> dst_counts;
  std::vector<double> wanted;
  for (int32_t from = 0; from < ranks.size(); ++from) {
    dst_counts.push_back(part(from, ranks.rank()));
    const int64_t begin = before(counts_of(from), ranks.rank());
    for (int64_t i = 0; i < dst_counts.back(); ++i) wanted.push_back(as_held(dtype, value_of(dtype, from, begin + i)));
  }
  ep_collective_desc desc = collective(EP_COLLECTIVE_all_to_all, dtype, nullptr, nullptr, 0);
  desc.src_counts = src_counts.data();
  desc.dst_counts = dst_counts.data();
  Fenced src(dtype, total(src_counts)), dst(dtype, total(dst_counts));
  return run_and_compare(ranks, desc, src, dst, wanted);
}

Status broadcasts(Ranks& ranks, DType dtype, int64_t count) {
  for (int32_t root = 0; root < ranks.size(); ++root) {
    ep_collective_desc desc = collective(EP_COLLECTIVE_broadcast, dtype, nullptr, nullptr, count);
    desc.peer = root;
    Fenced data(dtype, count);
    std::vector<double> wanted;
    for (int64_t i = 0; i < count; ++i) wanted.push_back(as_held(dtype, value_of(dtype, root, i)));
    for (int64_t i = 0; i < count; ++i) set(dtype, data.data(), i, value_of(dtype, ranks.rank(), i));
    (root == ranks.rank() ? desc.src : desc.dst) = reinterpret_cast<uintptr_t>(data.data());
    TENON_RETURN_IF_ERROR(ranks.run(ranks.world, desc));
    TENON_RETURN_IF_ERROR(compare(desc, data, wanted));
  }
  return {};
}

// A ring: each rank sends to the next one.
Status sends(Ranks& ranks, DType dtype, int64_t count) {
  if (ranks.size() == 1) return {};
  const int32_t next = (ranks.rank() + 1) % ranks.size(), last = (ranks.rank() + ranks.size() - 1) % ranks.size();
  Fenced src(dtype, count), dst(dtype, count);
  std::vector<double> wanted;
  for (int64_t i = 0; i < count; ++i) {
    set(dtype, src.data(), i, value_of(dtype, ranks.rank(), i));
    wanted.push_back(as_held(dtype, value_of(dtype, last, i)));
  }
  ep_collective_desc send = collective(EP_COLLECTIVE_send, dtype, src.data(), nullptr, count);
  send.peer = next;
  ep_collective_desc receive = collective(EP_COLLECTIVE_receive, dtype, nullptr, dst.data(), count);
  receive.peer = last;
  ep_exchange* sending = nullptr;
  TENON_RETURN_IF_ERROR(ranks.start(ranks.world, send, &sending));
  TENON_RETURN_IF_ERROR(ranks.run(ranks.world, receive));
  TENON_RETURN_IF_ERROR(ranks.finish(sending));
  return compare(receive, dst, wanted);
}

ep_collectives_info poisoned_info() {
  ep_collectives_info info{};
  std::memset(static_cast<void*>(&info), 0x5A, sizeof info);
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_COLLECTIVES_INFO;
  info.next = nullptr;
  return info;
}

Status describe(Ranks& ranks, ep_collectives_info* info) {
  *info = poisoned_info();
  return ranks.call("describe", ranks.ops.describe, ranks.ops.plugin, info);
}

std::string text_of(ep_string text) { return text.data == nullptr ? std::string() : std::string(text.data, text.size); }

Status load(Ranks& ranks) { return ranks.load(); }

Status described_alike(Ranks& ranks) {
  ep_collectives_info first{}, second{};
  TENON_RETURN_IF_ERROR(describe(ranks, &first));
  const std::string name = text_of(first.name);
  TENON_RETURN_IF_ERROR(describe(ranks, &second));
  const bool same = text_of(second.name) == name && text_of(first.name) == name && first.dtypes == second.dtypes &&
                    first.reduced_dtypes == second.reduced_dtypes && first.reductions == second.reductions &&
                    first.memory_handles == second.memory_handles && first.largest_count == second.largest_count;
  if (!same) return broken("J03", "it describes itself as '{}' and then as '{}'", name, text_of(second.name));
  return {};
}

Status join(Ranks& ranks) {
  TENON_RETURN_IF_ERROR(ranks.join());
  const ep_communicator_info& info = ranks.info;
  if (info.size < 1 || info.rank < 0 || info.rank >= info.size || info.node_size < 1 || info.node_rank < 0 ||
      info.node_rank >= info.node_size || info.node_size > info.size) {
    return broken("J04", "it says rank {} of {}, and {} of {} on this machine", info.rank, info.size, info.node_rank,
                  info.node_size);
  }
  return {};
}

Status joins_once(Ranks& ranks) {
  if (ranks.joins_by_ticket()) return skipped("it joins by tickets, and a process may join once for each ticket");
  ep_communicator* const untouched = ranks.world;
  ep_communicator* again = untouched;
  auto info = with_header<ep_communicator_info>(EP_STRUCT_COMMUNICATOR_INFO);
  const Status status = ranks.call("world_join", ranks.ops.world_join, ranks.ops.plugin, &again, &info);
  if (status.code() != Code::busy) {
    if (status.ok()) ranks.ops.communicator_destroy(again);
    return broken("J04", "the second world_join answered '{}', not 'busy'", code_name(status.code()));
  }
  if (again != untouched) return broken("J06", "world_join was refused and wrote its communicator");
  return {};
}

Status every_kind(Ranks& ranks) {
  ep_collectives_info info{};
  TENON_RETURN_IF_ERROR(describe(ranks, &info));
  for (int32_t id = 1; id < 64; ++id) {
    const auto dtype = static_cast<DType>(id);
    if ((info.dtypes >> id & 1) == 0 || dtype_size(dtype) == 0) continue;
    const bool is_bool = dtype == DType::boolean;
    for (const int64_t count : {0, 1, 17, 1001}) {
      TENON_RETURN_IF_ERROR(all_gathers(ranks, dtype, count));
      TENON_RETURN_IF_ERROR(all_to_alls(ranks, dtype, count));
      TENON_RETURN_IF_ERROR(broadcasts(ranks, dtype, count));
      TENON_RETURN_IF_ERROR(sends(ranks, dtype, count));
      for (int32_t reduction = 1; reduction < 64 && (info.reduced_dtypes >> id & 1) != 0; ++reduction) {
        const bool of_bool = reduction == EP_REDUCE_any || reduction == EP_REDUCE_all;
        if ((info.reductions >> reduction & 1) == 0 || of_bool != is_bool) continue;
        TENON_RETURN_IF_ERROR(all_reduces(ranks, dtype, reduction, count));
        TENON_RETURN_IF_ERROR(reduce_scatters(ranks, dtype, reduction, count));
      }
    }
  }
  return {};
}

Status refused_as(Ranks& ranks, const char* what, const ep_collective_desc& desc, Code wanted) {
  auto* const untouched = reinterpret_cast<ep_exchange*>(uintptr_t{0x5A5A});
  ep_exchange* exchange = untouched;
  const Status status = ranks.start_plainly(ranks.world, desc, &exchange);
  if (status.ok()) {
    ranks.ops.exchange_destroy(exchange);
    return broken("J07", "it takes {}", what);
  }
  if (exchange != untouched) return broken("J06", "exchange_start refused {} and wrote its exchange", what);
  if (status.code() == wanted) return {};
  return broken("J07", "it refuses {} with '{}', not '{}'", what, code_name(status.code()), code_name(wanted));
}

Status refusals(Ranks& ranks) {
  int32_t value = 0, result = 0;
  const ep_collective_desc sound = [&] {
    ep_collective_desc desc = collective(EP_COLLECTIVE_all_reduce, DType::i32, &value, &result, 1);
    desc.reduction = EP_REDUCE_sum;
    return desc;
  }();
  const auto with = [&](auto change) {
    ep_collective_desc desc = sound;
    change(desc);
    return desc;
  };
  TENON_RETURN_IF_ERROR(refused_as(ranks, "kind 99", with([](auto& desc) { desc.kind = 99; }), Code::unsupported));
  TENON_RETURN_IF_ERROR(refused_as(ranks, "dtype 0", with([](auto& desc) { desc.dtype = 0; }), Code::unsupported));
  TENON_RETURN_IF_ERROR(
      refused_as(ranks, "reduction 63", with([](auto& desc) { desc.reduction = 63; }), Code::unsupported));
  TENON_RETURN_IF_ERROR(refused_as(ranks, "an unknown flag", with([](auto& desc) { desc.flags = UINT64_C(1) << 40; }),
                                   Code::unsupported));
  TENON_RETURN_IF_ERROR(refused_as(ranks, "memory of a type that it does not name",
                                   with([](auto& desc) { desc.memory_type = 63; }), Code::unsupported));
  TENON_RETURN_IF_ERROR(
      refused_as(ranks, "the count -1", with([](auto& desc) { desc.count = -1; }), Code::invalid_argument));
  for (const int32_t peer : {-2, ranks.size(), ranks.rank()}) {
    TENON_RETURN_IF_ERROR(refused_as(ranks, "a send to the rank itself", with([&](auto& desc) {
                                       desc.kind = EP_COLLECTIVE_send;
                                       desc.reduction = 0;
                                       desc.peer = peer;
                                     }),
                                     Code::invalid_argument));
  }
  ranks.ops.exchange_destroy(nullptr);
  ranks.ops.communicator_destroy(nullptr);
  return {};
}

// Rank 0 starts to receive; rank 1 sends only after a message from rank 0.
Status pending(Ranks& ranks) {
  if (ranks.size() == 1) return skipped("it needs two ranks");
  int32_t go = 0, got = -1;
  if (ranks.rank() == 1) {
    TENON_RETURN_IF_ERROR(ranks.hear(0, &go));
    return ranks.tell(0, 41, ranks.world);
  }
  if (ranks.rank() != 0) return {};
  ep_collective_desc desc = collective(EP_COLLECTIVE_receive, DType::i32, nullptr, &got, 1);
  desc.peer = 1;
  ep_exchange* exchange = nullptr;
  TENON_RETURN_IF_ERROR(ranks.start(ranks.world, desc, &exchange));
  Status early;
  for (int asked = 0; asked < 8 && early.ok(); ++asked) {
    const Status status = ranks.call("exchange_wait", ranks.ops.exchange_wait, exchange, uint64_t{1'000'000});
    if (status.code() == Code::timeout) continue;
    early =
        broken("J08", "exchange_wait answered '{}' of a receive that nobody has answered", code_name(status.code()));
  }
  TENON_RETURN_IF_ERROR(ranks.tell(1, 1));
  const Status ended = ranks.call("exchange_wait", ranks.ops.exchange_wait, exchange, uint64_t{30'000'000'000});
  const Status again = ranks.call("exchange_wait", ranks.ops.exchange_wait, exchange, uint64_t{0});
  const Status brought = ranks.bring_back(exchange);
  ranks.ops.exchange_destroy(exchange);
  TENON_RETURN_IF_ERROR(early);
  TENON_RETURN_IF_ERROR(ended);
  TENON_RETURN_IF_ERROR(brought);
  if (!again.ok()) return broken("J08", "asked again, exchange_wait answered '{}'", code_name(again.code()));
  if (got == 41) return {};
  return broken("J05", "a receive gave {} and must give 41", got);
}

// Rank 0 starts a collective. The other ranks start it after exchange_start has returned on rank 0.
Status starts_at_once(Ranks& ranks) {
  if (ranks.size() == 1) return skipped("it needs two ranks");
  int32_t value = ranks.rank() + 1, sum = 0, go = 0;
  ep_collective_desc desc = collective(EP_COLLECTIVE_all_reduce, DType::i32, &value, &sum, 1);
  desc.reduction = EP_REDUCE_sum;
  if (ranks.rank() != 0) TENON_RETURN_IF_ERROR(ranks.hear(0, &go));
  ep_exchange* exchange = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  TENON_RETURN_IF_ERROR(ranks.start(ranks.world, desc, &exchange));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  for (int32_t rank = 1; ranks.rank() == 0 && rank < ranks.size(); ++rank) TENON_RETURN_IF_ERROR(ranks.tell(rank, 1));
  TENON_RETURN_IF_ERROR(ranks.finish(exchange));
  if (ranks.rank() == 0 && took.count() > 3) {
    return broken("J08", "exchange_start took {:.1f} s while no other rank had come", took.count());
  }
  const int32_t wanted = ranks.size() * (ranks.size() + 1) / 2;
  if (sum != wanted) return broken("J05", "the sum is {} and must be {}", sum, wanted);
  return {};
}

// Several exchanges in progress match in the order of their starts, even if the ranks wait for them in other orders.
Status keep_order(Ranks& ranks) {
  if (ranks.size() == 1) return skipped("it needs two ranks");
  constexpr int count = 6;
  int32_t values[count] = {}, got[count] = {};
  ep_exchange* under_way[count] = {};
  for (int i = 0; i < count && ranks.rank() < 2; ++i) {
    values[i] = 100 + i;
    ep_collective_desc desc = ranks.rank() == 0 ? collective(EP_COLLECTIVE_send, DType::i32, &values[i], nullptr, 1)
                                                : collective(EP_COLLECTIVE_receive, DType::i32, nullptr, &got[i], 1);
    desc.peer = 1 - ranks.rank();
    TENON_RETURN_IF_ERROR(ranks.start(ranks.world, desc, &under_way[i]));
  }
  for (int i = count - 1; i >= 0 && ranks.rank() < 2; --i) TENON_RETURN_IF_ERROR(ranks.finish(under_way[i]));
  for (int i = 0; i < count && ranks.rank() == 1; ++i) {
    if (got[i] != 100 + i) return broken("J09", "receive {} returned the data of send {}", i, got[i] - 100);
  }
  // Short messages, and long ones, which a plug-in may send in several steps.
  for (const int64_t length : {int64_t{1}, int64_t{20'001}}) {
    std::vector<int32_t> src[count], sums[count];
    for (int i = 0; i < count; ++i) {
      src[i].assign(static_cast<size_t>(length), (i + 1) * 1000 + ranks.rank());
      sums[i].assign(static_cast<size_t>(length), -1);
      ep_collective_desc desc = collective(EP_COLLECTIVE_all_reduce, DType::i32, src[i].data(), sums[i].data(), length);
      desc.reduction = EP_REDUCE_sum;
      TENON_RETURN_IF_ERROR(ranks.start(ranks.world, desc, &under_way[i]));
    }
    for (int i = 0; i < count; ++i) {
      TENON_RETURN_IF_ERROR(ranks.finish(under_way[ranks.rank() % 2 == 0 ? count - 1 - i : i]));
    }
    for (int i = 0; i < count; ++i) {
      const int32_t wanted = ranks.size() * (i + 1) * 1000 + ranks.size() * (ranks.size() - 1) / 2;
      const auto wrong = std::find_if(sums[i].begin(), sums[i].end(), [wanted](int32_t sum) { return sum != wanted; });
      if (wrong != sums[i].end())
        return broken("J09", "all_reduce {} of several gave {} and must give {}", i, *wrong, wanted);
    }
  }
  return {};
}

Status from_any_rank(Ranks& ranks) {
  if (ranks.joins_by_ticket()) return skipped("a communicator made with a ticket may lack receives from any rank");
  if (ranks.size() == 1) return skipped("it needs two ranks");
  if (ranks.rank() != 0) return ranks.tell(0, ranks.rank());
  int32_t sum = 0;
  for (int32_t rank = 1; rank < ranks.size(); ++rank) {
    int32_t said = 0;
    TENON_RETURN_IF_ERROR(ranks.hear(EP_RANK_ANY, &said));
    sum += said;
  }
  const int32_t wanted = ranks.size() * (ranks.size() - 1) / 2;
  if (sum == wanted) return {};
  return broken("J05", "the values received from any rank sum to {} and must sum to {}", sum, wanted);
}

Status split(Ranks& ranks, int32_t color, int32_t key, ep_communicator** out, ep_communicator_info* info) {
  *info = with_header<ep_communicator_info>(EP_STRUCT_COMMUNICATOR_INFO);
  return ranks.call("communicator_split", ranks.ops.communicator_split, ranks.world, color, key, out, info);
}

// Splits into all ranks in reverse order, then into all ranks but rank 0.
Status splits(Ranks& ranks) {
  if (ranks.joins_by_ticket()) return skipped("it joins by tickets");
  ep_communicator* part = nullptr;
  ep_communicator_info info{};
  TENON_RETURN_IF_ERROR(split(ranks, 3, -ranks.rank(), &part, &info));
  const int32_t wanted = ranks.size() - 1 - ranks.rank();
  Status found;
  if (info.size != ranks.size() || info.rank != wanted) {
    found = broken("J10", "the split by keys made rank {} of {}, and must make rank {} of {}", info.rank, info.size,
                   wanted, ranks.size());
  }
  ranks.ops.communicator_destroy(part);
  part = nullptr;
  TENON_RETURN_IF_ERROR(split(ranks, ranks.rank() == 0 ? -1 : 0, 0, &part, &info));
  const bool is_out = part == nullptr && info.size == 0;
  if (found.ok() && is_out != (ranks.rank() == 0))
    found = broken("J10", "not exactly the ranks with color -1 are left out");
  ranks.ops.communicator_destroy(part);
  return found;
}

// Rank 1 sends first in `part` and then in `world`; rank 0 receives first from `world`.
Status stay_apart(Ranks& ranks) {
  if (ranks.size() == 1) return skipped("it needs two ranks");
  ep_communicator* part = nullptr;
  TENON_RETURN_IF_ERROR(ranks.join_another(&part));
  int32_t of_world = 0, of_part = 0;
  Status found;
  if (ranks.rank() == 1) {
    int32_t seven = 7, nine = 9;
    ep_exchange *to_part = nullptr, *to_world = nullptr;
    ep_collective_desc desc = collective(EP_COLLECTIVE_send, DType::i32, &seven, nullptr, 1);
    TENON_RETURN_IF_ERROR(ranks.start(part, desc, &to_part));
    desc.src = reinterpret_cast<uintptr_t>(&nine);
    TENON_RETURN_IF_ERROR(ranks.start(ranks.world, desc, &to_world));
    TENON_RETURN_IF_ERROR(ranks.finish(to_part));
    TENON_RETURN_IF_ERROR(ranks.finish(to_world));
  }
  if (ranks.rank() == 0) {
    TENON_RETURN_IF_ERROR(ranks.hear(1, &of_world, ranks.world));
    TENON_RETURN_IF_ERROR(ranks.hear(1, &of_part, part));
    if (of_world != 9 || of_part != 7) found = broken("J10", "data sent in one communicator arrived in another");
  }
  ranks.ops.communicator_destroy(part);
  return found;
}

Status leaves_nothing(Ranks& ranks) {
  ranks.leave();
  if (ranks.host.bytes_held() != 0) {
    return broken("J11", "after shutdown it holds {} bytes of the host's memory", ranks.host.bytes_held());
  }
  if (ranks.host.errors_alive() != 0)
    return broken("J11", "after shutdown {} errors are still held", ranks.host.errors_alive());
  return {};
}

}  // namespace

const std::vector<CollectivesTest>& collectives_tests() {
  static const std::vector<CollectivesTest> tests = {
      {"file/loads", "J02", "the file loads, and its table is whole and of the host's version", load},
      {"describe/alike", "J03", "it describes itself the same each time", described_alike},
      {"world/joins", "J04", "the ranks have distinct numbers below their count", join},
      {"world/once", "J04", "a process can join only once", joins_once},
      {"exchanges/kinds", "J05", "each kind computes its result, for each element type and reduction", every_kind},
      {"exchanges/any_rank", "J05", "a receive from any rank takes any message", from_any_rank},
      {"exchanges/refusals", "J07", "an impossible call is refused with the right code", refusals},
      {"exchanges/pending", "J08", "a wait reports that nothing has arrived yet", pending},
      {"exchanges/at_once", "J08", "a start does not wait for other ranks", starts_at_once},
      {"exchanges/order", "J09", "pending exchanges match in the order of their starts", keep_order},
      {"communicators/split", "J10", "colors and keys determine a split", splits},
      {"communicators/apart", "J10", "communicators do not mix", stay_apart},
      {"teardown/leaves_nothing", "J11", "nothing is held after shutdown", leaves_nothing},
  };
  return tests;
}

// A rank that fails a test continues with the next one, since the other ranks do. It stops only if it has no table of
// functions.
int check_collectives(const std::string& path, const Settings& settings, double time_limit, bool verbose,
                      const Ranks::Companions& companions) {
  Ranks ranks(path, settings, time_limit, companions);
  int failed = 0, passed = 0, left_out = 0;
  for (const CollectivesTest& test : collectives_tests()) {
    Status status = test.run(ranks);
    const Status violation = ranks.host.take_violation();
    if (status.ok() || status.code() == skip_code)
      status = violation.ok() ? status : broken("J06", "{}", without_rule(violation).message());
    const bool is_skipped = status.code() == skip_code;
    if (status.ok()) ++passed;
    if (is_skipped) ++left_out;
    const std::string who = fmt::format("rank {}", ranks.rank());
    if (!status.ok() && !is_skipped) {
      ++failed;
      std::printf("%s: FAILED %s: %s\n", who.c_str(), std::string(test.name).c_str(),
                  with_default_rule(status, test.rule).message().c_str());
    } else if (verbose && ranks.rank() == 0) {
      std::printf("%s: %s %s\n", who.c_str(), is_skipped ? "skipped" : "passed", std::string(test.name).c_str());
    }
    std::fflush(stdout);
    if (test.run == load && !status.ok()) return 1;
    if (test.run == join && !status.ok()) return 1;
  }
  if (ranks.rank() == 0) {
    std::printf("%d ranks: on rank 0 %d passed, %d failed, %d skipped\n", ranks.size(), passed, failed, left_out);
    if (ranks.size() == 1 && left_out > 0) {
      std::printf("The tests that were skipped need two ranks and more: mpirun -n 3 tenon conform %s\n", path.c_str());
    }
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace tenon::conformance
