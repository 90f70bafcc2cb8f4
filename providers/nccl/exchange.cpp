#include <algorithm>

#include "providers/nccl/plugin.h"
#include "sdk/provider/polling.h"

namespace tenon::provider::nccl {
namespace {

bool takes_src_counts(int32_t kind) { return kind == EP_COLLECTIVE_reduce_scatter || kind == EP_COLLECTIVE_all_to_all; }
bool takes_dst_counts(int32_t kind) { return kind == EP_COLLECTIVE_all_gather || kind == EP_COLLECTIVE_all_to_all; }
bool has_peer(int32_t kind) {
  return kind == EP_COLLECTIVE_broadcast || kind == EP_COLLECTIVE_send || kind == EP_COLLECTIVE_receive;
}

bool is_count_wrong(const int64_t* counts, int32_t size) {
  return counts == nullptr || std::any_of(counts, counts + size, [](int64_t count) { return count < 0; });
}

ep_status check(const ep_communicator& communicator, const ep_collective_desc& desc, ep_error** error) {
  const ep_host* host = communicator.host;
  if (ep_collective_is_known(desc.kind) == 0) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "Kind %d of collective is unknown.", desc.kind);
  }
  if (desc.flags != 0 || desc.stream_type != 0 || desc.memory_type != EP_HANDLE_CUDA_POINTER) {
    return fail(host, error, EP_STATUS_UNSUPPORTED,
                "Exchanges need CUDA memory and no stream; memory of type %d, a stream of type %d and flags "
                "0x%llx were given.",
                desc.memory_type, desc.stream_type, static_cast<unsigned long long>(desc.flags));
  }
  const bool reduces = ep_collective_reduces(desc.kind) != 0;
  if (reduces ? reduced_type(desc.dtype) == no_type || op_of(desc.reduction) < 0 : bytes_of(desc.dtype) == 0) {
    return fail(host, error, EP_STATUS_UNSUPPORTED, "Elements of type %d are not %s.", desc.dtype,
                reduces ? "reduced in this way" : "moved");
  }
  const bool itself = desc.kind != EP_COLLECTIVE_broadcast && desc.peer == communicator.rank;
  if (has_peer(desc.kind) && (desc.peer < 0 || desc.peer >= communicator.size || itself)) {
    const bool any = desc.kind == EP_COLLECTIVE_receive && desc.peer == EP_RANK_ANY;
    return fail(host, error, any ? EP_STATUS_UNSUPPORTED : EP_STATUS_INVALID_ARGUMENT, "There is no other rank %d.",
                desc.peer);
  }
  if (desc.count < 0) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "The count is %lld; it must be at least 0.",
                static_cast<long long>(desc.count));
  }
  if ((takes_src_counts(desc.kind) && is_count_wrong(desc.src_counts, communicator.size)) ||
      (takes_dst_counts(desc.kind) && is_count_wrong(desc.dst_counts, communicator.size))) {
    return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT,
                     "A count per rank is negative, or the counts are missing.");
  }
  return EP_STATUS_OK;
}

bool are_equal(const std::vector<int64_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [&](int64_t count) { return count == counts.front(); });
}

// Makes the NCCL calls of one exchange. Keeps the first failure.
class Issuer {
 public:
  explicit Issuer(const ep_exchange& exchange)
      : exchange_(exchange),
        desc_(exchange.desc),
        communicator_(*exchange.communicator),
        nccl_(communicator_.plugin->libraries),
        bytes_(static_cast<size_t>(bytes_of(desc_.dtype))) {}

  // An empty exchange needs no call.
  Result run() {
    if (ep_collective_is_per_rank(desc_.kind) == 0 && desc_.count == 0) return success;
    switch (desc_.kind) {
      case EP_COLLECTIVE_all_reduce:
        call(nccl_.all_reduce, src(), dst(), static_cast<size_t>(desc_.count), reduced_type(desc_.dtype),
             op_of(desc_.reduction));
        break;
      case EP_COLLECTIVE_all_gather: all_gather(exchange_.dst_counts); break;
      case EP_COLLECTIVE_reduce_scatter: reduce_scatter(exchange_.src_counts); break;
      case EP_COLLECTIVE_all_to_all: all_to_all(); break;
      case EP_COLLECTIVE_broadcast: {
        char* const data = desc_.peer == communicator_.rank ? src() : dst();
        call(nccl_.broadcast, data, data, in_bytes(desc_.count), uint8, desc_.peer);
        break;
      }
      case EP_COLLECTIVE_send: call(nccl_.send, src(), in_bytes(desc_.count), uint8, desc_.peer); break;
      default: call(nccl_.receive, dst(), in_bytes(desc_.count), uint8, desc_.peer);
    }
    return result_;
  }

 private:
  template <class Function, class... Args>
  void call(Function function, Args... args) {
    const Result called = function(args..., communicator_.comm, communicator_.stream);
    if (result_ == success && called != in_progress) result_ = called;
  }

  char* src() const { return reinterpret_cast<char*>(static_cast<uintptr_t>(desc_.src)); }
  char* dst() const { return reinterpret_cast<char*>(static_cast<uintptr_t>(desc_.dst)); }
  size_t in_bytes(int64_t count) const { return static_cast<size_t>(count) * bytes_; }

  // Parts of different lengths are broadcast, each by its rank.
  void all_gather(const std::vector<int64_t>& counts) {
    if (counts.front() > 0 && are_equal(counts))
      return call(nccl_.all_gather, src(), dst(), in_bytes(counts.front()), uint8);
    char* at = dst();
    for (int32_t rank = 0; rank < communicator_.size; ++rank) {
      const size_t bytes = in_bytes(counts[static_cast<size_t>(rank)]);
      char* const from = rank == communicator_.rank ? src() : at;
      if (bytes > 0) call(nccl_.broadcast, from, at, bytes, uint8, rank);
      at += bytes;
    }
  }

  // Parts of different lengths are reduced, each to its rank.
  void reduce_scatter(const std::vector<int64_t>& counts) {
    const Type type = reduced_type(desc_.dtype);
    const int op = op_of(desc_.reduction);
    if (counts.front() > 0 && are_equal(counts)) {
      return call(nccl_.reduce_scatter, src(), dst(), static_cast<size_t>(counts.front()), type, op);
    }
    char* at = src();
    for (int32_t rank = 0; rank < communicator_.size; ++rank) {
      const auto count = static_cast<size_t>(counts[static_cast<size_t>(rank)]);
      if (count > 0) call(nccl_.reduce, at, dst(), count, type, op, rank);
      at += count * bytes_;
    }
  }

  void all_to_all() {
    char *from = src(), *to = dst();
    for (int32_t rank = 0; rank < communicator_.size; ++rank) {
      const size_t sent = in_bytes(exchange_.src_counts[static_cast<size_t>(rank)]);
      const size_t received = in_bytes(exchange_.dst_counts[static_cast<size_t>(rank)]);
      if (sent > 0) call(nccl_.send, from, sent, uint8, rank);
      if (received > 0) call(nccl_.receive, to, received, uint8, rank);
      from += sent;
      to += received;
    }
  }

  const ep_exchange& exchange_;
  const ep_collective_desc& desc_;
  const ep_communicator& communicator_;
  const Libraries& nccl_;
  size_t bytes_;
  Result result_ = success;
};

}  // namespace

Result issue(const ep_exchange& exchange) { return Issuer(exchange).run(); }

ep_status exchange_start(ep_communicator* communicator, const ep_collective_desc* desc, ep_exchange** out_exchange,
                         ep_error** error) {
  const Lock lock(communicator->plugin->mutex);
  const ep_status checked = check(*communicator, *desc, error);
  if (checked != EP_STATUS_OK) return checked;
  if (communicator->state == ep_communicator::State::failed) {
    return fail(communicator->host, error, EP_STATUS_DEVICE_LOST, "The communicator has failed: %s.",
                communicator->failure.c_str());
  }
  auto* exchange = make<ep_exchange>(communicator->host);
  exchange->plugin = communicator->plugin;
  exchange->communicator = communicator;
  exchange->desc = *desc;
  const auto size = static_cast<size_t>(communicator->size);
  if (takes_src_counts(desc->kind)) exchange->src_counts.assign(desc->src_counts, desc->src_counts + size);
  if (takes_dst_counts(desc->kind)) exchange->dst_counts.assign(desc->dst_counts, desc->dst_counts + size);
  communicator->queue.push_back(exchange);
  // Sends and receives are collected until someone waits for one of them.
  if (!has_peer(desc->kind)) advance(*communicator);
  *out_exchange = exchange;
  return EP_STATUS_OK;
}

ep_status exchange_wait(ep_exchange* exchange, uint64_t timeout_ns, ep_error** error) {
  const ep_status ended = poll_until(timeout_ns, [exchange] {
    const Lock lock(exchange->plugin->mutex);
    for (ep_communicator* communicator : exchange->plugin->communicators) {
      if (!exchange->ended) advance(*communicator);
    }
    return exchange->ended ? EP_STATUS_OK : EP_STATUS_BUSY;
  });
  if (ended != EP_STATUS_OK) {
    return fail(exchange->host, error, EP_STATUS_TIMEOUT, "The exchange has not ended within %llu ns.",
                static_cast<unsigned long long>(timeout_ns));
  }
  if (exchange->failure.empty()) return EP_STATUS_OK;
  return fail(exchange->host, error, EP_STATUS_DEVICE_LOST, "The exchange failed: %s.", exchange->failure.c_str());
}

// NCCL can abort a communicator, but not a single exchange. Destroying a communicator ends its exchanges.
void exchange_destroy(ep_exchange* exchange) noexcept {
  if (exchange == nullptr) return;
  if (!exchange->ended) {
    const Lock lock(exchange->plugin->mutex);
    give_up(*exchange->communicator, "an exchange was given up");
  }
  destroy(exchange);
}

}  // namespace tenon::provider::nccl
