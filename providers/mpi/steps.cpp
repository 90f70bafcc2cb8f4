// Exchanges in steps of our own, with a message between every two ranks, where MPI's non-blocking calls are slower than
// its blocking ones (providers/DECISIONS.md).
#include <algorithm>
#include <climits>
#include <cstring>
#include <numeric>
#include <utility>

#include "providers/mpi/plugin.h"
#include "sdk/provider/descriptor.h"

namespace tenon::provider::mpi {
namespace {

// With more ranks, MPI may have better algorithms than a message between every two ranks.
constexpr int32_t few_ranks = 8;
// Smaller reductions are one MPI call.
constexpr int64_t large_bytes = 32 << 10;
// Every MPI has at least this many tags. Tag 0 is for messages that a program sends to itself.
constexpr uint32_t tags = 32'767;

// Touching new pages costs more than the reduction, so the buffer of the last large reduction is kept.
constexpr size_t piece_bytes = size_t{64} << 20, most_kept_bytes = piece_bytes + (size_t{1} << 20);

Room room_for(ep_collectives& plugin, size_t bytes) {
  if (plugin.spare.bytes >= bytes) return std::exchange(plugin.spare, {});
  return {std::unique_ptr<char[]>(new char[bytes]), bytes};
}

size_t own(const ep_exchange& exchange) { return static_cast<size_t>(exchange.rank); }

// The offset of the part of `rank`, in bytes.
size_t start_of(const ep_exchange& exchange, const std::vector<int>& starts, size_t rank) {
  return static_cast<size_t>(starts[rank]) * exchange.element_bytes;
}

// Exchanges a part of `src` and of `dst` with each other rank. The caller copies its own part.
int start_messages(ep_exchange& exchange, const char* src, char* dst) {
  const size_t size = exchange.src_counts.size();
  exchange.requests.clear();
  for (size_t away = 1; away < size; ++away) {
    const size_t from = (own(exchange) + size - away) % size;
    const int code = MPI_Irecv(dst + start_of(exchange, exchange.dst_starts, from), exchange.dst_counts[from],
                               exchange.type, static_cast<int>(from), exchange.tag, exchange.comm,
                               &exchange.requests.emplace_back(MPI_REQUEST_NULL));
    if (code != MPI_SUCCESS) return code;
  }
  for (size_t away = 1; away < size; ++away) {
    const size_t to = (own(exchange) + away) % size;
    const int code =
        MPI_Isend(src + start_of(exchange, exchange.src_starts, to), exchange.src_counts[to], exchange.type,
                  static_cast<int>(to), exchange.tag, exchange.comm, &exchange.requests.emplace_back(MPI_REQUEST_NULL));
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

// Copies block by block, because memcpy of larger sizes bypasses the caches, which is slower while other ranks do the
// same.
void copy(char* dst, const char* src, size_t bytes) {
  constexpr size_t block = 128 << 10;
  if (dst == src) return;
  for (size_t done = 0; done < bytes; done += block) {
    std::memcpy(dst + done, src + done, std::min(block, bytes - done));
  }
}

// Starts an all-gather or all-to-all.
int start_moving(ep_exchange& exchange) {
  const int code = start_messages(exchange, exchange.src, exchange.dst);
  copy(exchange.dst + start_of(exchange, exchange.dst_starts, own(exchange)),
       exchange.src + start_of(exchange, exchange.src_starts, own(exchange)),
       static_cast<size_t>(exchange.dst_counts[own(exchange)]) * exchange.element_bytes);
  return code;
}

size_t own_bytes(const ep_exchange& exchange) {
  return static_cast<size_t>(exchange.src_counts[own(exchange)]) * exchange.element_bytes;
}

// Starts the first step of a reduction: each rank receives the parts of all others for it.
int start_parts(ep_exchange& exchange) {
  const size_t size = exchange.src_counts.size();
  const int count = exchange.src_counts[own(exchange)];
  exchange.dst_counts.assign(size, count);
  exchange.dst_starts.clear();
  for (size_t rank = 0; rank < size; ++rank) exchange.dst_starts.push_back(static_cast<int>(rank) * count);
  exchange.part_is_due = true;
  if (exchange.room.bytes < size * own_bytes(exchange)) {
    exchange.room = room_for(*exchange.plugin, size * own_bytes(exchange));
  }
  return start_messages(exchange, exchange.src, exchange.room.memory.get());
}

// An all-reduce is divided into pieces for which a buffer is kept.
int start_piece(ep_exchange& exchange) {
  const auto size = static_cast<int64_t>(exchange.src_counts.size());
  exchange.piece = std::min(exchange.left, static_cast<int64_t>(piece_bytes / exchange.element_bytes));
  exchange.src_starts.clear();
  int start = 0;
  for (int64_t rank = 0; rank < size; ++rank) {
    const auto count = static_cast<int>(exchange.piece / size + (rank < exchange.piece % size ? 1 : 0));
    exchange.src_counts[static_cast<size_t>(rank)] = count;
    exchange.src_starts.push_back(start);
    start += count;
  }
  return start_parts(exchange);
}

// The second step, after the parts have arrived: reduces them in the order of ranks, into the received parts; all
// reductions commute. An all-reduce sends the result to all ranks.
int reduce_parts(ep_exchange& exchange) {
  exchange.part_is_due = false;
  const size_t offset = start_of(exchange, exchange.src_starts, own(exchange)), bytes = own_bytes(exchange);
  char* const place = exchange.dst + (exchange.gathers ? offset : 0);
  char* result = nullptr;  // the sum of the ranks so far; NULL if rank 0's part is our own
  int code = MPI_SUCCESS;
  for (size_t rank = 0; rank < exchange.src_counts.size() && code == MPI_SUCCESS; ++rank) {
    const bool is_own = rank == own(exchange);
    const char* const summand = is_own || (rank == 1 && result == nullptr) ? exchange.src + offset : result;
    if (!is_own) result = exchange.room.memory.get() + rank * bytes;
    if (rank == 0) continue;
    code = MPI_Reduce_local(summand, result, exchange.src_counts[own(exchange)], exchange.type, exchange.op);
  }
  if (code != MPI_SUCCESS) return code;
  if (exchange.gathers) {
    exchange.dst_counts = exchange.src_counts;
    exchange.dst_starts = exchange.src_starts;
    std::fill(exchange.src_counts.begin(), exchange.src_counts.end(), exchange.dst_counts[own(exchange)]);
    std::fill(exchange.src_starts.begin(), exchange.src_starts.end(), 0);
    code = start_messages(exchange, result, exchange.dst);
    const size_t done = static_cast<size_t>(exchange.piece) * exchange.element_bytes;
    exchange.src += done;
    exchange.dst += done;
    exchange.left -= exchange.piece;
  }
  copy(place, result, bytes);
  return code;
}

bool is_large_reduction(const ep_communicator& communicator, const ep_collective_desc& desc) {
  const auto bytes = static_cast<int64_t>(dtype_size(desc.dtype));
  if (desc.kind == EP_COLLECTIVE_all_reduce) {
    return desc.count * bytes >= large_bytes && desc.count <= INT_MAX - communicator.size;
  }
  if (desc.kind != EP_COLLECTIVE_reduce_scatter) return false;
  const int64_t* counts = desc.src_counts;
  const int64_t longest = *std::max_element(counts, counts + communicator.size);
  const int64_t all = std::accumulate(counts, counts + communicator.size, int64_t{0});
  return all * bytes >= large_bytes && longest <= INT_MAX / communicator.size;
}

}  // namespace

bool goes_in_steps(const ep_communicator& communicator, const ep_collective_desc& desc) {
  const bool moves = desc.kind == EP_COLLECTIVE_all_gather || desc.kind == EP_COLLECTIVE_all_to_all;
  return moves ? communicator.size <= few_ranks : communicator.size > 1 && is_large_reduction(communicator, desc);
}

int start_in_steps(ep_communicator& communicator, const ep_collective_desc& desc, MPI_Datatype type, MPI_Op op,
                   ep_exchange& exchange) {
  const auto size = static_cast<size_t>(communicator.size);
  exchange.comm = communicator.comm;
  exchange.tag = static_cast<int>(1 + communicator.exchanges_in_steps++ % tags);
  exchange.rank = communicator.rank;
  exchange.type = type;
  exchange.op = op;
  exchange.src = reinterpret_cast<const char*>(static_cast<uintptr_t>(desc.src));
  exchange.dst = reinterpret_cast<char*>(static_cast<uintptr_t>(desc.dst));
  exchange.element_bytes = static_cast<size_t>(dtype_size(desc.dtype));
  exchange.requests.reserve(2 * size);
  switch (desc.kind) {
    case EP_COLLECTIVE_all_gather:
      exchange.src_counts.assign(size, exchange.dst_counts[own(exchange)]);
      exchange.src_starts.assign(size, 0);
      return start_moving(exchange);
    case EP_COLLECTIVE_all_to_all: return start_moving(exchange);
    default: break;
  }
  exchange.plugin->in_steps.push_back(&exchange);
  if (desc.kind == EP_COLLECTIVE_reduce_scatter) return start_parts(exchange);
  exchange.gathers = true;
  exchange.left = desc.count;
  exchange.src_counts.resize(size);
  return start_piece(exchange);
}

int next_step(ep_exchange& exchange, bool* goes_on) {
  *goes_on = exchange.gathers && (exchange.part_is_due || exchange.left > 0);
  if (exchange.part_is_due) return reduce_parts(exchange);
  return *goes_on ? start_piece(exchange) : MPI_SUCCESS;
}

void leave_steps(ep_exchange& exchange) {
  std::erase(exchange.plugin->in_steps, &exchange);
  if (!exchange.ended) return;
  Room& spare = exchange.plugin->spare;
  if (exchange.room.bytes <= most_kept_bytes && exchange.room.bytes > spare.bytes) spare = std::move(exchange.room);
}

}  // namespace tenon::provider::mpi
