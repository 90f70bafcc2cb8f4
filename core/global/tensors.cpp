// Communicator: exchanges of tensors, in host or device memory, called or begun in the background.
#include <algorithm>
#include <array>
#include <utility>

#include "core/device/call_site.h"
#include "core/device/device_state.h"
#include "core/device/process.h"
#include "core/global/communicator_parts.h"
#include "core/tensor/native.h"
#include "core/vm/host_worker.h"
#include "ep_api/collective_kinds.h"
#include "loader/host/host.h"
#include "loader/log/log.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::global {
namespace {

// The facts that a rank sends about its device. Has a fixed size, so that one gather collects all.
struct DeviceWords {
  std::array<uint8_t, 16> uuid{};
  uint64_t dtypes = 0, summed_dtypes = 0;  // 0: no plug-in takes the device's memory
};

uint64_t summed(const loader::CollectivesInfo& info) {
  return (info.reductions >> EP_REDUCE_sum & 1) != 0 ? info.reduced_dtypes : 0;
}

// Gathers one `Words` from each rank.
template <class Words>
Result<std::vector<Words>> all_say(Communicator& ranks, const Words& own, std::string_view label) {
  std::vector<Words> all(static_cast<size_t>(ranks.size()));
  const std::vector<int64_t> counts(all.size(), sizeof(Words));
  TENON_RETURN_IF_ERROR(ranks.all_gather(&own, all.data(), counts, DType::u8, label));
  return all;
}

}  // namespace

// The line that sends elements of `device` directly; null: there is none.
const Communicator::Line* Communicator::road_of(Device device) {
  const std::lock_guard lock(road_mutex_);
  if (road_ == nullptr) {
    road_ = std::make_unique<Road>();
    road_->device = device;
    const Status opened = open_road(*road_);
    const std::string how = road_->line != nullptr ? fmt::format("by {}.", road_->plugin->info.name)
                                                   : fmt::format("through the host: {}", opened.message());
    loader::log(loader::LogTopic::load, loader::LogLevel::info,
                fmt::format("{}: elements travel among {} ranks {}", device.spelling(), size(), how));
  }
  return road_->device == device ? road_->line.get() : nullptr;
}

// Not ok: the reason why elements go through the host. It is the same on all ranks.
Status Communicator::open_road(Road& road) {
  TENON_ASSIGN_OR_RETURN(const std::string why_not, agree_on_road(road));
  if (!why_not.empty()) return Status(Code::unsupported, why_not);

  struct Ticket {
    ep_ticket_desc desc{};
    int32_t code = 0;
  } ticket;
  ticket.desc.struct_size = sizeof ticket.desc;
  ticket.desc.struct_type = EP_STRUCT_TICKET_DESC;
  const loader::OpenCollectives& plugin = *road.plugin;
  Status made;
  if (rank() == 0) {
    made = loader::call_plugin(plugin.plugin, "ticket_make", [&](ep_error** error) {
      return plugin.ops.ticket_make(plugin.ops.plugin, &ticket.desc.ticket, error);
    });
    ticket.code = static_cast<int32_t>(made.code());
  }
  TENON_RETURN_IF_ERROR(broadcast(&ticket, sizeof ticket, DType::u8, 0, "ticket"));
  if (ticket.code != 0)
    return made.ok() ? Status(static_cast<Code>(ticket.code), "rank 0 could not make a ticket.") : made;

  ticket.desc.next = nullptr;
  ticket.desc.rank = rank();
  ticket.desc.size = size();
  const std::array<uint8_t, 16>& uuid = road.device.state()->opened->info.uuid;
  std::copy(uuid.begin(), uuid.end(), ticket.desc.device_uuid);
  auto line = std::make_unique<Line>(plugin);
  const Status joined = loader::call_plugin(plugin.plugin, "ticket_join", [&](ep_error** error) {
    return plugin.ops.ticket_join(plugin.ops.plugin, &ticket.desc, &line->handle, error);
  });
  TENON_ASSIGN_OR_RETURN(const std::vector<int32_t> codes,
                         all_say(*this, static_cast<int32_t>(joined.code()), "ticket"));
  TENON_RETURN_IF_ERROR(joined);
  for (size_t rank = 0; rank < codes.size(); ++rank) {
    if (codes[rank] == 0) continue;
    return Status(static_cast<Code>(codes[rank]), fmt::format("rank {} could not join with the ticket.", rank));
  }
  road.line = std::move(line);
  return {};
}

// Empty if each rank has its own device and a plug-in takes its memory; else the reason.
Result<std::string> Communicator::agree_on_road(Road& road) {
  const loader::DeviceInfo& info = road.device.state()->opened->info;
  road.plugin = loader::open_collectives_of_memory(info.native_memory);
  DeviceWords own;
  own.uuid = info.uuid;
  if (road.plugin != nullptr) {
    own.dtypes = road.plugin->info.dtypes;
    own.summed_dtypes = summed(road.plugin->info);
  }
  TENON_ASSIGN_OR_RETURN(const std::vector<DeviceWords> all, all_say(*this, own, "devices"));
  road.dtypes = road.summed_dtypes = ~UINT64_C(0);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].dtypes == 0) return fmt::format("rank {} has no plug-in that takes the memory of its device.", rank);
    if (all[rank].uuid == decltype(own.uuid){}) return fmt::format("the device of rank {} has no UUID.", rank);
    for (size_t other = 0; other < rank; ++other) {
      if (all[rank].uuid != all[other].uuid) continue;
      return fmt::format("ranks {} and {} share a device.", other, rank);
    }
    road.dtypes &= all[rank].dtypes;
    road.summed_dtypes &= all[rank].summed_dtypes;
  }
  return std::string();
}

bool Communicator::carries(Device device, DType dtype, bool sums) {
  if (!device || device == Device::host()) return false;
  if (road_of(device) == nullptr) return false;
  const uint64_t known = sums ? road_->summed_dtypes : road_->dtypes;
  return (known >> static_cast<int32_t>(dtype) & 1) != 0;
}

// An exchange in the form that the plug-in takes. `desc` points to the counts of the Exchange.
struct Communicator::Asked {
  const Line* line = nullptr;
  ep_collective_desc desc{};
  uint64_t digest = 0;
};

// `pending`: does not wait for work on the tensors. Throws the errors of waiting for them.
Result<Communicator::Asked> Communicator::ask(const Tensor& src, const Tensor& dst, const Exchange& exchange,
                                              bool pending) {
  const auto kind = static_cast<int32_t>(exchange.kind);
  Asked asked;
  ep_collective_desc& desc = asked.desc;
  desc = describe(kind, src.dtype(), nullptr, nullptr, exchange.kind == Collective::all_reduce ? src.elements() : 0);
  if (ep_collective_reduces(kind) != 0) desc.reduction = static_cast<int32_t>(exchange.reduction);
  if (exchange.kind != Collective::all_reduce) {
    (exchange.kind == Collective::all_gather ? desc.dst_counts : desc.src_counts) = exchange.counts.data();
    if (std::ssize(exchange.counts) != size()) return wrong_counts(kind, exchange.counts.size(), size());
  }
  if (exchange.kind == Collective::all_to_all) {
    desc.dst_counts = exchange.dst_counts.data();
    if (std::ssize(exchange.dst_counts) != size()) return wrong_counts(kind, exchange.dst_counts.size(), size());
  } else if (exchange.kind != Collective::all_reduce) {
    asked.digest = digest_of(exchange.counts);
  }
  const Device device = dst.device();
  const bool on_host = device == Device::host();
  asked.line = on_host ? data_.get() : road_of(device);
  if (asked.line == nullptr || (!on_host && src.device() != device)) {
    return Status(Code::unsupported, fmt::format("{} cannot work on the memory of {} and {} directly.",
                                                 ep_collective_name(kind), src.device().spelling(), device.spelling()));
  }
  const auto address_of = [&](const Tensor& tensor, Use use) -> uint64_t {
    if (on_host && !pending) return reinterpret_cast<uintptr_t>(tensor.data());
    if (on_host) {
      const Storage* storage = value_or_throw(tensor.impl()->storage.plain(use));
      return reinterpret_cast<uintptr_t>(storage->block.host) +
             static_cast<uint64_t>(dtype_bytes(tensor.dtype(), tensor.impl()->offset));
    }
    if (tensor.elements() == 0) return 0;
    const NativePlace place = pending ? native_place_pending(tensor) : native_place(tensor);
    return place.handle.value + place.offset;
  };
  if (!on_host) desc.memory_type = device.state()->opened->info.native_memory;
  desc.src = address_of(src, Use::read);
  desc.dst = address_of(dst, Use::overwrite);
  return asked;
}

Status Communicator::carry_out(const Asked& asked, const Tensor& src, const Tensor& dst, std::string_view label) {
  // A late rank may still read or write these, so they are never freed.
  static std::mutex mutex;
  static auto* kept = new std::vector<Tensor>;

  const std::lock_guard lock(mutex_);
  TENON_RETURN_IF_ERROR(broken_);
  const Status ended = call_over(*asked.line, asked.desc, asked.digest, label);
  if (!broken_.ok()) {
    const std::lock_guard lock_kept(mutex);
    kept->insert(kept->end(), {src, dst});
  }
  return ended;
}

Status Communicator::call(const Tensor& src, const Tensor& dst, const Exchange& exchange, std::string_view label) try {
  TENON_ASSIGN_OR_RETURN(const Asked asked, ask(src, dst, exchange, false));
  TENON_RETURN_IF_ERROR(process::usable());
  TENON_RETURN_IF_ERROR(wait_for_begun());
  return carry_out(asked, src, dst, label);
} catch (const Error& error) {
  return error.status();
}

// --- exchanges in the background

uint64_t Communicator::under_way() const {
  const vm::HostWorker* worker = worker_.load(std::memory_order_acquire);
  return worker == nullptr ? 0 : worker->pending();
}

// Exchanges that were begun earlier finish first, whether they succeed or fail.
Status Communicator::wait_for_begun() {
  vm::HostWorker* worker = worker_.load(std::memory_order_acquire);
  return worker == nullptr ? Status() : worker->wait();
}

Result<vm::HostWorker*> Communicator::worker() {
  const std::lock_guard lock(road_mutex_);
  if (worker_.load(std::memory_order_relaxed) == nullptr) {
    TENON_ASSIGN_OR_RETURN(vm::HostWorker * taken, vm::HostWorker::take(Device::host().state()));
    worker_.store(taken, std::memory_order_release);
  }
  return worker_.load(std::memory_order_relaxed);
}

Status Communicator::begin(const Tensor& src, const Tensor& dst, const Exchange& exchange, std::string_view label) try {
  static constexpr OpName kExchange{"to_global"};
  struct Begun {
    Tensor src, dst;
    Exchange exchange;
    std::string label;
    Asked asked;
  };
  if (is_broken_ && dst.elements() == 0) {  // a rank that only sends would not learn of the error otherwise
    const std::lock_guard lock(mutex_);
    return broken_;
  }
  const auto begun = std::make_shared<Begun>(Begun{src, dst, exchange, std::string(label), {}});
  TENON_ASSIGN_OR_RETURN(begun->asked, ask(src, dst, begun->exchange, true));
  TENON_ASSIGN_OR_RETURN(vm::HostWorker * worker, this->worker());
  const auto operand_of = [](const Tensor& tensor, bool writes) {
    const bool whole = static_cast<uint64_t>(tensor.bytes()) == tensor.impl()->storage.bytes();
    const auto offset = static_cast<uint64_t>(dtype_bytes(tensor.dtype(), tensor.impl()->offset));
    return vm::Operand(tensor.impl()->storage, offset, writes, writes && whole);
  };
  const vm::Operand operands[] = {operand_of(dst, true), operand_of(src, false)};
  given.beside.fetch_add(1, std::memory_order_relaxed);
  return worker->submit(call_site.called != nullptr ? *call_site.called : kExchange, operands, [this, begun] {
    throw_if_error(carry_out(begun->asked, begun->src, begun->dst, begun->label));
  });
} catch (const Error& error) {
  return error.status();
}

}  // namespace tenon::global
