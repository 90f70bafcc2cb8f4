#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>
#include <utility>

#include "providers/mpi/plugin.h"
#include "sdk/provider/descriptor.h"

namespace tenon::provider::mpi {
namespace {

// Counts and offsets per rank, as MPI needs them.
struct Parts {
  std::vector<int> counts, starts;
};

// Returns false if an offset exceeds the range of an int.
bool to_parts(const int64_t* counts, int32_t size, Parts& parts) {
  int64_t start = 0;
  parts.counts.reserve(static_cast<size_t>(size));
  parts.starts.reserve(static_cast<size_t>(size));
  for (int32_t rank = 0; rank < size; ++rank) {
    if (counts[rank] > INT_MAX || start > INT_MAX) return false;
    parts.counts.push_back(static_cast<int>(counts[rank]));
    parts.starts.push_back(static_cast<int>(start));
    start += counts[rank];
  }
  return true;
}

bool is_any_negative(const int64_t* counts, int32_t size) {
  for (int32_t rank = 0; rank < size; ++rank) {
    if (counts[rank] < 0) return true;
  }
  return false;
}

bool has_peer(int32_t kind) {
  return kind == EP_COLLECTIVE_broadcast || kind == EP_COLLECTIVE_send || kind == EP_COLLECTIVE_receive;
}

bool takes_src_counts(int32_t kind) { return kind == EP_COLLECTIVE_reduce_scatter || kind == EP_COLLECTIVE_all_to_all; }
bool takes_dst_counts(int32_t kind) { return kind == EP_COLLECTIVE_all_gather || kind == EP_COLLECTIVE_all_to_all; }

ep_status check(const ep_communicator& communicator, const ep_collective_desc& desc, ep_error** error) {
  const ep_host* host = communicator.host;
  if (ep_collective_is_known(desc.kind) == 0)
    return fail(host, error, EP_STATUS_UNSUPPORTED, "Kind %d of collective is unknown.", desc.kind);
  if (desc.flags != 0 || desc.stream_type != 0 || desc.memory_type != EP_HANDLE_HOST_POINTER) {
    return fail(host, error, EP_STATUS_UNSUPPORTED,
                "Exchanges need host memory and no stream; memory of type %d, a stream of type %d and flags "
                "0x%llx were given.",
                desc.memory_type, desc.stream_type, static_cast<unsigned long long>(desc.flags));
  }
  if (has_peer(desc.kind)) {
    const bool any = desc.kind == EP_COLLECTIVE_receive && desc.peer == EP_RANK_ANY;
    const bool self = desc.kind != EP_COLLECTIVE_broadcast && desc.peer == communicator.rank;
    if (!any && (desc.peer < 0 || desc.peer >= communicator.size || self)) {
      return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "The peer %d is not one of the %d ranks, or is this rank.",
                  desc.peer, communicator.size);
    }
  }
  const bool src_counts = takes_src_counts(desc.kind), dst_counts = takes_dst_counts(desc.kind);
  if ((src_counts && desc.src_counts == nullptr) || (dst_counts && desc.dst_counts == nullptr)) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "The counts per rank are missing.");
  }
  if (desc.count < 0 || (src_counts && is_any_negative(desc.src_counts, communicator.size)) ||
      (dst_counts && is_any_negative(desc.dst_counts, communicator.size))) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "A count is below 0.");
  }
  if (ep_collective_is_per_rank(desc.kind) == 0 && desc.count > INT_MAX) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "%lld elements are more than the %d of one exchange.",
                static_cast<long long>(desc.count), INT_MAX);
  }
  return EP_STATUS_OK;
}

int64_t own_count(const ep_communicator& communicator, const ep_collective_desc& desc) {
  if (desc.kind == EP_COLLECTIVE_all_gather) return desc.dst_counts[communicator.rank];
  if (takes_src_counts(desc.kind)) return desc.src_counts[communicator.rank];
  return desc.count;
}

void* at(uint64_t address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }

// In a world of one rank, copies the sent elements to the result.
void exchange_with_itself(const ep_communicator& communicator, const ep_collective_desc& desc) {
  if (desc.kind == EP_COLLECTIVE_broadcast || desc.src == desc.dst) return;
  const auto bytes = static_cast<size_t>(own_count(communicator, desc)) * static_cast<size_t>(dtype_size(desc.dtype));
  if (bytes != 0) std::memcpy(at(desc.dst), at(desc.src), bytes);
}

int start(const ep_communicator& communicator, const ep_collective_desc& desc, MPI_Datatype type, MPI_Op op,
          ep_exchange& exchange) {
  const auto count = static_cast<int>(desc.count);
  const MPI_Comm comm = communicator.comm;
  void *src = at(desc.src), *dst = at(desc.dst);
  MPI_Request* request = &exchange.request;
  switch (desc.kind) {
    case EP_COLLECTIVE_all_reduce:
      return MPI_Iallreduce(src == dst ? MPI_IN_PLACE : src, dst, count, type, op, comm, request);
    case EP_COLLECTIVE_all_gather:
      return MPI_Iallgatherv(src, exchange.dst_counts[static_cast<size_t>(communicator.rank)], type, dst,
                             exchange.dst_counts.data(), exchange.dst_starts.data(), type, comm, request);
    case EP_COLLECTIVE_reduce_scatter:
      return MPI_Ireduce_scatter(src, dst, exchange.src_counts.data(), type, op, comm, request);
    case EP_COLLECTIVE_all_to_all:
      return MPI_Ialltoallv(src, exchange.src_counts.data(), exchange.src_starts.data(), type, dst,
                            exchange.dst_counts.data(), exchange.dst_starts.data(), type, comm, request);
    case EP_COLLECTIVE_broadcast:
      return MPI_Ibcast(desc.peer == communicator.rank ? src : dst, count, type, desc.peer, comm, request);
    case EP_COLLECTIVE_send: return MPI_Isend(src, count, type, desc.peer, 0, comm, request);
    default:
      return MPI_Irecv(dst, count, type, desc.peer == EP_RANK_ANY ? MPI_ANY_SOURCE : desc.peer, 0, comm, request);
  }
}

// Polls the messages under way, and begins the next step if they have arrived. The caller holds the lock.
void take_on(ep_exchange& exchange) {
  if (exchange.ended) return;
  int come = 0;
  int code = exchange.requests.empty() ? MPI_Test(&exchange.request, &come, MPI_STATUS_IGNORE)
                                       : MPI_Testall(static_cast<int>(exchange.requests.size()),
                                                     exchange.requests.data(), &come, MPI_STATUSES_IGNORE);
  bool goes_on = true;
  if (code == MPI_SUCCESS && come != 0) code = next_step(exchange, &goes_on);
  exchange.ended = code != MPI_SUCCESS || !goes_on;
  if (code != MPI_SUCCESS) exchange.failure = mpi_text(code);
}

}  // namespace

ep_status exchange_start(ep_communicator* communicator, const ep_collective_desc* desc, ep_exchange** out_exchange,
                         ep_error** error) {
  ep_collectives* plugin = communicator->plugin;
  const ep_host* host = plugin->host;
  if (communicator->comm != MPI_COMM_NULL && is_over()) {
    return fail_text(host, error, EP_STATUS_DEVICE_LOST, "MPI has been finalised.");
  }
  const ep_status checked = check(*communicator, *desc, error);
  if (checked != EP_STATUS_OK) return checked;
  const Lock lock(plugin->mutex);
  MPI_Datatype type = carried_type(desc->dtype);
  MPI_Op op = MPI_OP_NULL;
  const bool is_known = ep_collective_reduces(desc->kind) != 0
                            ? reduced_type(*plugin, desc->dtype, desc->reduction, &type, &op)
                            : type != MPI_DATATYPE_NULL;
  if (!is_known) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "Elements of type %d are not %s.", desc->dtype,
                ep_collective_reduces(desc->kind) != 0 ? "reduced in this way" : "moved: they do not fill whole bytes");
  }
  Parts src, dst;
  if ((takes_src_counts(desc->kind) && !to_parts(desc->src_counts, communicator->size, src)) ||
      (takes_dst_counts(desc->kind) && !to_parts(desc->dst_counts, communicator->size, dst))) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "The parts of all ranks have more than %d elements together.",
                INT_MAX);
  }
  ep_exchange* exchange = make<ep_exchange>(host);
  exchange->plugin = plugin;
  exchange->request = MPI_REQUEST_NULL;
  exchange->is_receive = desc->kind == EP_COLLECTIVE_receive;
  exchange->src_counts = std::move(src.counts);
  exchange->src_starts = std::move(src.starts);
  exchange->dst_counts = std::move(dst.counts);
  exchange->dst_starts = std::move(dst.starts);
  if (communicator->comm == MPI_COMM_NULL) {
    exchange_with_itself(*communicator, *desc);
    exchange->ended = true;
    *out_exchange = exchange;
    return EP_STATUS_OK;
  }
  const int code = goes_in_steps(*communicator, *desc) ? start_in_steps(*communicator, *desc, type, op, *exchange)
                                                       : start(*communicator, *desc, type, op, *exchange);
  if (code != MPI_SUCCESS) {
    exchange->ended = exchange->requests.empty();
    exchange_destroy(exchange);
    return mpi_failed(host, error, "The start of an exchange", code);
  }
  *out_exchange = exchange;
  return EP_STATUS_OK;
}

// Polling lets MPI make progress. After a few polls in a row, the thread yields the processor.
ep_status exchange_wait(ep_exchange* exchange, uint64_t timeout_ns, ep_error** error) {
  using Clock = std::chrono::steady_clock;
  constexpr int in_a_row = 64;
  Clock::time_point begin{};
  for (int asked = 0;; ++asked) {
    {
      const Lock lock(exchange->plugin->mutex);
      take_on(*exchange);
      if (exchange->ended) break;
      // A rank that waits for another exchange first needs our part of that exchange.
      for (ep_exchange* other : exchange->plugin->in_steps) {
        if (other != exchange) take_on(*other);
      }
    }
    if (asked == 0) begin = Clock::now();
    const auto waited = static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin).count());
    if (waited >= timeout_ns) {
      return fail(exchange->host, error, EP_STATUS_TIMEOUT, "The exchange has not ended within %llu ns.",
                  static_cast<unsigned long long>(timeout_ns));
    }
    if (asked >= in_a_row) std::this_thread::yield();
  }
  if (exchange->failure.empty()) return EP_STATUS_OK;
  return fail(exchange->host, error, EP_STATUS_DEVICE_LOST, "The exchange failed: %s.", exchange->failure.c_str());
}

// MPI can cancel only a receive that has not been matched. Everything else stays under way until the process ends. A
// matched receive whose elements have not arrived is such a case, so this function does not wait.
void exchange_destroy(ep_exchange* exchange) noexcept {
  if (exchange == nullptr) return;
  const Lock lock(exchange->plugin->mutex);
  if (is_over()) exchange->ended = true;
  if (!exchange->ended && exchange->is_receive) {
    int ended = 0;
    exchange->ended = MPI_Cancel(&exchange->request) == MPI_SUCCESS &&
                      MPI_Test(&exchange->request, &ended, MPI_STATUS_IGNORE) == MPI_SUCCESS && ended != 0;
  }
  leave_steps(*exchange);
  if (exchange->ended) {
    destroy(exchange);
  } else {
    exchange->plugin->given_up = true;
  }
}

}  // namespace tenon::provider::mpi
