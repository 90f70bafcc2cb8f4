// libtenon_pipes.so: see README.md.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>

#include "sdk/provider/plugin.h"
#include "tests/fakes/pipes/pipes.h"

EP_COLLECTIVES_NOTE("pipes", "1.0.0", 0)

namespace tenon::fakes {
namespace {

using namespace tenon::provider;
using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

constexpr uint64_t every_byte_dtype = 0
#define EP_DTYPE(name, id, bits, type_class) | ((bits) % 8 == 0 ? UINT64_C(1) << (id) : 0)
#include "ep_api/dtypes.def"
#undef EP_DTYPE
    ;
constexpr uint64_t every_number = (UINT64_C(1) << (EP_DTYPE_f64 + 1)) - 2;  // the types that compute
constexpr uint64_t every_reduction = UINT64_C(1) << EP_REDUCE_sum | UINT64_C(1) << EP_REDUCE_prod |
                                     UINT64_C(1) << EP_REDUCE_max | UINT64_C(1) << EP_REDUCE_min |
                                     UINT64_C(1) << EP_REDUCE_any | UINT64_C(1) << EP_REDUCE_all;

// The launcher's variables: PIPES_RANK, PIPES_SIZE and PIPES_FOLDER.
std::string told(const char* variable, const char* otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? text : otherwise;
}

std::string setting(const ep_host* host, std::string_view key) {
  ep_string value{};
  return host->config_get(host, to_ep_string(key), &value) == EP_STATUS_OK ? std::string(to_view(value)) : "";
}

void shutdown(ep_collectives* plugin) noexcept {
  if (plugin->breaks == "keeps") plugin->host->allocate(plugin->host, 64, 8);
  plugin->wires.close();
  destroy(plugin);
}

ep_status describe(ep_collectives* plugin, ep_collectives_info* out_info, ep_error**) {
  const Lock lock(plugin->mutex);
  ep_collectives_info info{};
  info.name = to_ep_string(plugin->breaks == "describes_anew" && plugin->described++ > 0 ? "Pipes again" : "Pipes");
  info.dtypes = every_byte_dtype;
  info.reduced_dtypes = every_number;
  info.reductions = every_reduction;
  fill(out_info, info);
  return EP_STATUS_OK;
}

ep_communicator* make_communicator(ep_collectives* plugin, uint64_t id, std::vector<int32_t> all, int32_t rank,
                                   ep_communicator_info* out_info) {
  auto* made = make<ep_communicator>(plugin->host);
  made->plugin = plugin;
  made->id = id;
  made->all = std::move(all);
  made->rank = rank;
  ep_communicator_info info{};
  info.rank = info.node_rank = rank;
  info.size = info.node_size = made->size();
  fill(out_info, info);
  return made;
}

ep_status world_join(ep_collectives* plugin, ep_communicator** out_communicator, ep_communicator_info* out_info,
                     ep_error** error) {
  const Lock lock(plugin->mutex);
  if (plugin->joined && plugin->breaks != "joins_twice") {
    return fail(plugin->host, error, EP_STATUS_BUSY, "The communicator of all ranks was joined already.");
  }
  const int rank = std::atoi(told("PIPES_RANK", "0").c_str()), size = std::atoi(told("PIPES_SIZE", "1").c_str());
  if (!plugin->joined) {
    const std::string why = plugin->wires.connect(told("PIPES_FOLDER", "/tmp"), rank, size);
    if (!why.empty()) {
      return fail(plugin->host, error, EP_STATUS_INTERNAL, "The ranks cannot be connected: %s.", why.c_str());
    }
  }
  plugin->joined = true;
  std::vector<int32_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  *out_communicator = make_communicator(plugin, 1, all, rank, out_info);
  return EP_STATUS_OK;
}

ep_status refuse(const ep_communicator& communicator, const ep_collective_desc& desc, ep_error** error) {
  const ep_host* host = communicator.host;
  const std::string& breaks = communicator.plugin->breaks;
  const bool known = ep_collective_is_known(desc.kind) != 0;
  const bool reduces = ep_collective_reduces(desc.kind) != 0;
  const uint64_t dtypes = reduces ? every_number : every_byte_dtype;
  const bool carried = desc.dtype > 0 && desc.dtype < 64 && (dtypes >> desc.dtype & 1) != 0;
  const bool reduced =
      !reduces || (desc.reduction > 0 && desc.reduction < 64 && (every_reduction >> desc.reduction & 1) != 0);
  const bool plain = desc.flags == 0 && desc.stream_type == 0 && desc.memory_type == EP_HANDLE_HOST_POINTER;
  if (!known || !carried || !reduced || (!plain && breaks != "takes_any_flag")) {
    if (breaks == "no_sentence") return EP_STATUS_UNSUPPORTED;
    return fail_text(host, error, EP_STATUS_UNSUPPORTED, "Pipes carry whole bytes of the host, in kinds they know.");
  }
  const bool has_peer = desc.kind >= EP_COLLECTIVE_broadcast;
  const bool any = desc.kind == EP_COLLECTIVE_receive && desc.peer == EP_RANK_ANY;
  const bool self = desc.kind != EP_COLLECTIVE_broadcast && desc.peer == communicator.rank;
  if (has_peer && !any && (desc.peer < 0 || desc.peer >= communicator.size() || self)) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "There is no other rank %d.", desc.peer);
  }
  if (desc.count < 0) {
    const ep_status status = breaks == "wrong_code" ? EP_STATUS_INTERNAL : EP_STATUS_INVALID_ARGUMENT;
    return fail(host, error, status, "The count is %lld.", static_cast<long long>(desc.count));
  }
  return EP_STATUS_OK;
}

// A part of src, `begin` elements after its start.
std::string bytes_at(const ep_collective_desc& desc, int64_t begin, int64_t count) {
  const size_t size = bytes_of(desc.dtype);
  const auto* src = reinterpret_cast<const char*>(static_cast<uintptr_t>(desc.src));
  return count == 0 ? std::string()
                    : std::string(src + static_cast<size_t>(begin) * size, static_cast<size_t>(count) * size);
}

// The data that this rank sends to rank `to`.
std::string part_for(const ep_exchange& exchange, int32_t to) {
  const ep_collective_desc& desc = exchange.desc;
  const auto counts = exchange.src_counts.begin();
  switch (desc.kind) {
    case EP_COLLECTIVE_all_gather: return bytes_at(desc, 0, exchange.dst_counts[static_cast<size_t>(exchange.rank)]);
    case EP_COLLECTIVE_reduce_scatter:
      return bytes_at(desc, 0, std::accumulate(counts, exchange.src_counts.end(), int64_t{0}));
    case EP_COLLECTIVE_all_to_all:
      return bytes_at(desc, std::accumulate(counts, counts + to, int64_t{0}),
                      exchange.src_counts[static_cast<size_t>(to)]);
    default: return bytes_at(desc, 0, desc.count);
  }
}

// Sends `bytes` to another rank. They count as sent when a wire of the stated speed would have carried them, one
// message after the other.
void send(ep_collectives& plugin, int32_t to, uint64_t communicator, uint64_t number, std::string bytes) {
  if (plugin.mb_per_s > 0) {
    const auto taken = std::chrono::microseconds(static_cast<int64_t>(bytes.size()) / plugin.mb_per_s);
    plugin.busy_until = std::max(plugin.busy_until, Clock::now()) + taken;
  }
  plugin.wires.send(to, communicator, number, std::move(bytes));
}

void give(ep_communicator& communicator, ep_exchange& exchange) {
  const ep_collective_desc& desc = exchange.desc;
  ep_collectives& plugin = *exchange.plugin;
  if (desc.kind == EP_COLLECTIVE_send) {
    send(plugin, communicator.all[static_cast<size_t>(desc.peer)], communicator.id, 0, part_for(exchange, desc.peer));
    exchange.ended = true;
    return;
  }
  if (desc.kind == EP_COLLECTIVE_receive) {
    exchange.plugin->receives.push_back(&exchange);
    return;
  }
  exchange.number = ++communicator.collectives;
  exchange.parts.resize(communicator.all.size());
  exchange.come.resize(communicator.all.size());
  if (desc.kind == EP_COLLECTIVE_broadcast && desc.peer != communicator.rank) return;
  for (int32_t to = 0; to < communicator.size(); ++to) {
    std::string part = part_for(exchange, to);
    if (to != communicator.rank) {
      send(plugin, communicator.all[static_cast<size_t>(to)], communicator.id, exchange.number, std::move(part));
      continue;
    }
    exchange.parts[static_cast<size_t>(to)] = std::move(part);
    exchange.come[static_cast<size_t>(to)] = true;
  }
}

ep_status wait_for(ep_exchange* exchange, uint64_t timeout_ns, ep_error** error) {
  ep_collectives* plugin = exchange->plugin;
  const auto begin = Clock::now();
  while (true) {
    {
      const Lock lock(plugin->mutex);
      plugin->wires.progress(0);
      const std::deque<ep_exchange*> receives = plugin->receives;  // a copy, because ended exchanges leave the list
      for (ep_exchange* receive : receives) advance(*receive);
      advance(*exchange);
      if (exchange->ended || (plugin->breaks == "early" && timeout_ns <= 1'000'000)) break;
      const auto waited = static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin).count());
      if (waited >= timeout_ns) {
        if (plugin->breaks == "gives_up_soon" && exchange->asked > 3) exchange->ended = exchange->lost = true;
        return fail(exchange->host, error, EP_STATUS_TIMEOUT, "The exchange has not ended.");
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (!exchange->lost) return EP_STATUS_OK;
  return fail_text(exchange->host, error, EP_STATUS_DEVICE_LOST, exchange->failure);
}

ep_status exchange_wait(ep_exchange* exchange, uint64_t timeout_ns, ep_error** error) {
  ++exchange->asked;
  return wait_for(exchange, timeout_ns, error);
}

void exchange_destroy(ep_exchange* exchange) noexcept {
  if (exchange == nullptr) return;
  {
    const Lock lock(exchange->plugin->mutex);
    std::erase(exchange->plugin->receives, exchange);
  }
  destroy(exchange);
}

ep_status exchange_start(ep_communicator* communicator, const ep_collective_desc* desc, ep_exchange** out_exchange,
                         ep_error** error) {
  ep_collectives* plugin = communicator->plugin;
  const ep_status refused = refuse(*communicator, *desc, error);
  if (refused != EP_STATUS_OK) {
    if (plugin->breaks == "writes_on_error") *out_exchange = nullptr;
    return refused;
  }
  auto* exchange = make<ep_exchange>(plugin->host);
  exchange->plugin = plugin;
  exchange->desc = *desc;
  exchange->id = communicator->id;
  exchange->all = communicator->all;
  exchange->rank = communicator->rank;
  const auto size = communicator->all.size();
  if (desc->src_counts != nullptr) exchange->src_counts.assign(desc->src_counts, desc->src_counts + size);
  if (desc->dst_counts != nullptr) exchange->dst_counts.assign(desc->dst_counts, desc->dst_counts + size);
  {
    const Lock lock(plugin->mutex);
    give(*communicator, *exchange);
    exchange->not_before = Clock::now() + std::chrono::microseconds(plugin->delay_us);
    if (desc->kind != EP_COLLECTIVE_receive) exchange->not_before = std::max(exchange->not_before, plugin->busy_until);
  }
  if (plugin->breaks == "blocks" && desc->kind == EP_COLLECTIVE_all_reduce) wait_for(exchange, 4'000'000'000, nullptr);
  *out_exchange = exchange;
  return EP_STATUS_OK;
}

// Every rank sends the others its color and key, by an ordinary exchange.
ep_status communicator_split(ep_communicator* communicator, int32_t color, int32_t key,
                             ep_communicator** out_communicator, ep_communicator_info* out_info, ep_error** error) {
  ep_collectives* plugin = communicator->plugin;
  if (color < -1) return fail(plugin->host, error, EP_STATUS_INVALID_ARGUMENT, "The color is %d.", color);
  const int32_t own[2] = {color, key};
  const std::vector<int64_t> counts(communicator->all.size(), 2);
  std::vector<int32_t> all(counts.size() * 2);
  ep_collective_desc desc{};
  desc.kind = EP_COLLECTIVE_all_gather;
  desc.dtype = EP_DTYPE_i32;
  desc.memory_type = EP_HANDLE_HOST_POINTER;
  desc.src = reinterpret_cast<uintptr_t>(own);
  desc.dst = reinterpret_cast<uintptr_t>(all.data());
  desc.dst_counts = counts.data();
  ep_exchange* exchange = nullptr;
  ep_status status = exchange_start(communicator, &desc, &exchange, error);
  if (status != EP_STATUS_OK) return status;
  status = wait_for(exchange, UINT64_MAX, error);
  exchange_destroy(exchange);
  if (status != EP_STATUS_OK) return status;
  if (plugin->breaks == "gathers_backwards") {  // would break the split before any test of all_gather
    for (size_t i = 0; i < counts.size() / 2; ++i) {
      std::swap_ranges(&all[2 * i], &all[2 * i] + 2, &all[2 * (counts.size() - 1 - i)]);
    }
  }
  const Lock lock(plugin->mutex);
  const uint64_t id =
      (communicator->id * 1'000'003 + ++communicator->splits) * 1'000'003 + static_cast<uint64_t>(color);
  if (color == -1) {
    *out_communicator = nullptr;
    fill(out_info, ep_communicator_info{});
    return EP_STATUS_OK;
  }
  std::vector<int32_t> ranks;
  for (int32_t rank = 0; rank < communicator->size(); ++rank) {
    if (all[static_cast<size_t>(2 * rank)] == color) ranks.push_back(rank);
  }
  if (plugin->breaks != "ignores_keys") {
    std::stable_sort(ranks.begin(), ranks.end(), [&](int32_t a, int32_t b) {
      return all[static_cast<size_t>(2 * a + 1)] < all[static_cast<size_t>(2 * b + 1)];
    });
  }
  const auto rank = static_cast<int32_t>(std::find(ranks.begin(), ranks.end(), communicator->rank) - ranks.begin());
  for (int32_t& of_world : ranks) of_world = communicator->all[static_cast<size_t>(of_world)];
  *out_communicator =
      make_communicator(plugin, plugin->breaks == "mixes" ? communicator->id : id, ranks, rank, out_info);
  return EP_STATUS_OK;
}

void communicator_destroy(ep_communicator* communicator) noexcept { destroy(communicator); }

void fill_plugin(ep_collectives_ops* ops) {
  ops->plugin->breaks = setting(ops->plugin->host, "break");
  ops->plugin->delay_us = std::atoi(setting(ops->plugin->host, "delay_us").c_str());
  ops->plugin->mb_per_s = std::atoi(setting(ops->plugin->host, "mb_per_s").c_str());
  ops->shutdown = shutdown;
  ops->describe = entry<describe>;
  ops->world_join = entry<world_join>;
  ops->communicator_split = entry<communicator_split>;
  ops->communicator_destroy = communicator_destroy;
  ops->exchange_start = entry<exchange_start>;
  ops->exchange_wait = entry<exchange_wait>;
  ops->exchange_destroy = ops->plugin->breaks == "no_slot" ? nullptr : exchange_destroy;
  if (ops->plugin->breaks == "other_version") ops->version_minor += 1;
}

}  // namespace
}  // namespace tenon::fakes

ep_status ep_collectives_query_v0(const ep_host* host, ep_collectives_ops* out_ops, ep_error** error) {
  return tenon::provider::answer_query(host, out_ops, error, tenon::fakes::fill_plugin);
}
