#include "sdk/conformance/collectives/ranks.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "loader/collectives/collectives.h"
#include "loader/note/note.h"
#include "loader/trust/trust.h"

namespace tenon::conformance {
namespace {

std::string name_of(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem();
  constexpr std::string_view head = "libtenon_";
  return stem.starts_with(head) ? stem.substr(head.size()) : stem;
}

constexpr uint64_t device_fence_bytes = 256;
constexpr uint8_t device_fence = 0x3C;

// The numbers of elements in src and dst of this rank.
struct Lengths {
  int64_t src = 0, dst = 0;
};
Lengths lengths_of(const ep_collective_desc& desc, int32_t rank, int32_t size) {
  const auto total = [size](const int64_t* counts) { return std::accumulate(counts, counts + size, int64_t{0}); };
  switch (desc.kind) {
    case EP_COLLECTIVE_all_reduce: return {desc.count, desc.count};
    case EP_COLLECTIVE_all_gather: return {desc.dst_counts[rank], total(desc.dst_counts)};
    case EP_COLLECTIVE_reduce_scatter: return {total(desc.src_counts), desc.src_counts[rank]};
    case EP_COLLECTIVE_all_to_all: return {total(desc.src_counts), total(desc.dst_counts)};
    default: return {desc.src != 0 ? desc.count : 0, desc.dst != 0 ? desc.count : 0};
  }
}

}  // namespace

ep_collective_desc collective(int32_t kind, DType dtype, const void* src, void* dst, int64_t count) {
  auto desc = with_header<ep_collective_desc>(EP_STRUCT_COLLECTIVE_DESC);
  desc.kind = kind;
  desc.dtype = static_cast<int32_t>(dtype);
  desc.memory_type = EP_HANDLE_HOST_POINTER;
  desc.src = reinterpret_cast<uintptr_t>(src);
  desc.dst = reinterpret_cast<uintptr_t>(dst);
  desc.count = count;
  return desc;
}

Status Ranks::load() {
  TENON_ASSIGN_OR_RETURN(const loader::CheckedFile file, loader::open_checked(path_, false));
  TENON_ASSIGN_OR_RETURN(const loader::PluginNote note, loader::read_note(file.descriptor.get(), file.identity.size));
  TENON_RETURN_IF_ERROR(loader::check_note(note, name_of(path_), EP_PLUGIN_KIND_COLLECTIVES));
  TENON_ASSIGN_OR_RETURN(library_,
                         loader::Library::load(file, EP_COLLECTIVES_QUERY_SYMBOL, loader::Binding::program_first));
  query = reinterpret_cast<ep_collectives_query_fn>(library_->entry());
  ops = with_header<ep_collectives_ops>(EP_STRUCT_COLLECTIVES_OPS);
  TENON_RETURN_IF_ERROR(call(EP_COLLECTIVES_QUERY_SYMBOL, query, static_cast<const ep_host*>(host.table()), &ops));
  TENON_RETURN_IF_ERROR(loader::check_collectives(ops, "the table"));
  started = true;
  return {};
}

Status Ranks::join() {
  if (joins_by_ticket()) {
    TENON_RETURN_IF_ERROR(join_beside());
    return join_by_ticket(&world);
  }
  info = with_header<ep_communicator_info>(EP_STRUCT_COMMUNICATOR_INFO);
  return call("world_join", ops.world_join, ops.plugin, &world, &info);
}

// Joins through the plug-in `beside`, and opens this rank's device.
Status Ranks::join_beside() {
  if (companions_.beside.empty() || companions_.devices.empty()) {
    return Status(Code::invalid_argument, "It finds no ranks and takes memory of devices: it needs two more plug-ins.",
                  "tenon conform libtenon_nccl.so --beside libtenon_mpi.so --devices libtenon_cuda.so");
  }
  beside_ = std::make_unique<Ranks>(companions_.beside, Settings{}, time_limit_);
  TENON_RETURN_IF_ERROR(beside_->load());
  TENON_RETURN_IF_ERROR(beside_->join());
  info = beside_->info;
  devices_ = std::make_unique<Subject>(Target{companions_.devices, {}, static_cast<uint32_t>(info.node_rank)});
  TENON_RETURN_IF_ERROR(devices_->open());
  memory_type_ = devices_->info.native_memory;
  TENON_ASSIGN_OR_RETURN(stream_, devices_->make_stream());
  return {};
}

Status Ranks::join_by_ticket(ep_communicator** out) {
  auto desc = with_header<ep_ticket_desc>(EP_STRUCT_TICKET_DESC);
  desc.rank = rank();
  desc.size = size();
  std::copy(std::begin(devices_->info.uuid), std::end(devices_->info.uuid), desc.device_uuid);
  if (rank() == 0) TENON_RETURN_IF_ERROR(call("ticket_make", ops.ticket_make, ops.plugin, &desc.ticket));
  const auto size_in_bytes = static_cast<int64_t>(sizeof desc.ticket);
  ep_collective_desc give = collective(EP_COLLECTIVE_broadcast, DType::u8, rank() == 0 ? &desc.ticket : nullptr,
                                       rank() == 0 ? nullptr : &desc.ticket, size_in_bytes);
  TENON_RETURN_IF_ERROR(beside_->run(beside_->world, give));
  return call("ticket_join", ops.ticket_join, ops.plugin, static_cast<const ep_ticket_desc*>(&desc), out);
}

Status Ranks::join_another(ep_communicator** out) {
  if (joins_by_ticket()) return join_by_ticket(out);
  auto part = with_header<ep_communicator_info>(EP_STRUCT_COMMUNICATOR_INFO);
  return call("communicator_split", ops.communicator_split, world, 0, rank(), out, &part);
}

void Ranks::leave() {
  if (!started) return;
  started = false;
  ops.communicator_destroy(std::exchange(world, nullptr));
  ops.shutdown(ops.plugin);
  copies_.clear();
  stream_.reset();
  devices_.reset();
  beside_.reset();
  // Never unloaded: threads of an MPI library may still run.
  static auto* mapped = new std::vector<std::unique_ptr<loader::Library>>;
  mapped->push_back(std::move(library_));
}

Status Ranks::finish(ep_exchange* exchange) {
  const auto limit_ns = static_cast<uint64_t>(time_limit_ * 1e9);
  const Status ended = call("exchange_wait", ops.exchange_wait, exchange, limit_ns);
  if (ended.code() == Code::timeout) {
    // Ends the process: the exchange still uses memory that would be freed, and the other ranks would wait in the next
    // test.
    std::printf("rank %d: FAILED: an exchange has not ended within %g s (rule J08).\n", rank(), time_limit_);
    std::fflush(stdout);
    std::_Exit(1);
  }
  const Status brought = ended.ok() ? bring_back(exchange) : Status();
  ops.exchange_destroy(exchange);
  return ended.ok() ? brought : ended;
}

// Copies `elements` elements at `host` to the device, between two fences, and returns the device address.
Result<uint64_t> Ranks::copy_out(uint8_t* host, int64_t elements, DType dtype, bool is_written,
                                 std::vector<Copy>* copies) {
  Copy copy;
  copy.host = host;
  copy.bytes = static_cast<uint64_t>(elements * dtype_size(dtype));
  copy.is_written = is_written;
  std::vector<uint8_t> bytes(copy.bytes + 2 * device_fence_bytes, device_fence);
  if (copy.bytes > 0) std::memcpy(bytes.data() + device_fence_bytes, host, copy.bytes);
  TENON_ASSIGN_OR_RETURN(copy.memory, devices_->allocate(bytes.size()));
  TENON_RETURN_IF_ERROR(devices_->upload(stream_, copy.memory, 0, bytes));
  TENON_RETURN_IF_ERROR(devices_->finish(stream_));
  uint64_t address = 0;
  TENON_RETURN_IF_ERROR(devices_->call("memory_native_handle", devices_->ops.memory_native_handle, devices_->device,
                                       copy.memory.get(), &address));
  copies->push_back(std::move(copy));
  return address + device_fence_bytes;
}

Status Ranks::start(ep_communicator* communicator, const ep_collective_desc& desc, ep_exchange** out) {
  if (!joins_by_ticket()) return start_plainly(communicator, desc, out);
  const Lengths lengths = lengths_of(desc, rank(), size());
  const auto dtype = static_cast<DType>(desc.dtype);
  const auto at = [](uint64_t address) { return reinterpret_cast<uint8_t*>(static_cast<uintptr_t>(address)); };
  std::vector<Copy> copies;
  ep_collective_desc there = desc;
  TENON_ASSIGN_OR_RETURN(there.src, copy_out(at(desc.src), lengths.src, dtype, desc.src == desc.dst, &copies));
  there.dst = there.src;
  if (desc.src != desc.dst) {
    TENON_ASSIGN_OR_RETURN(there.dst, copy_out(at(desc.dst), lengths.dst, dtype, true, &copies));
  }
  TENON_RETURN_IF_ERROR(start_plainly(communicator, there, out));
  copies_[*out] = std::move(copies);
  return {};
}

Status Ranks::bring_back(ep_exchange* exchange) {
  const auto found = copies_.find(exchange);
  if (found == copies_.end()) return {};
  const std::vector<Copy> copies = std::move(found->second);
  copies_.erase(found);
  for (const Copy& copy : copies) {
    std::vector<uint8_t> bytes(copy.bytes + 2 * device_fence_bytes);
    TENON_RETURN_IF_ERROR(devices_->download(stream_, copy.memory, 0, bytes));
    TENON_RETURN_IF_ERROR(devices_->finish(stream_));
    const auto is_fence = [](uint8_t byte) { return byte == device_fence; };
    if (!std::all_of(bytes.begin(), bytes.begin() + device_fence_bytes, is_fence) ||
        !std::all_of(bytes.end() - device_fence_bytes, bytes.end(), is_fence)) {
      return broken("J05", "an exchange wrote outside of {} bytes on the device", copy.bytes);
    }
    if (copy.bytes == 0) continue;
    const uint8_t* const own = bytes.data() + device_fence_bytes;
    if (copy.is_written) {
      std::memcpy(copy.host, own, copy.bytes);
    } else if (std::memcmp(copy.host, own, copy.bytes) != 0) {
      return broken("J05", "an exchange changed its source on the device");
    }
  }
  return {};
}

Status Ranks::run(ep_communicator* communicator, const ep_collective_desc& desc) {
  ep_exchange* exchange = nullptr;
  TENON_RETURN_IF_ERROR(start(communicator, desc, &exchange));
  return finish(exchange);
}

Status Ranks::tell(int32_t to, int32_t number, ep_communicator* communicator) {
  if (beside_ != nullptr && communicator == nullptr) return beside_->tell(to, number);
  ep_collective_desc desc = collective(EP_COLLECTIVE_send, DType::i32, &number, nullptr, 1);
  desc.peer = to;
  return run(communicator != nullptr ? communicator : world, desc);
}

Status Ranks::hear(int32_t from, int32_t* number, ep_communicator* communicator) {
  if (beside_ != nullptr && communicator == nullptr) return beside_->hear(from, number);
  ep_collective_desc desc = collective(EP_COLLECTIVE_receive, DType::i32, nullptr, number, 1);
  desc.peer = from;
  return run(communicator != nullptr ? communicator : world, desc);
}

}  // namespace tenon::conformance
