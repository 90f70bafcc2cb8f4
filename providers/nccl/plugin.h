// The structs behind the handles of the NCCL plug-in, and the functions that its files offer each other.
//
// A communicator has its own stream and event. Its exchanges wait in a queue and are passed to NCCL in order, one at a
// time; consecutive sends and receives are passed together. No call blocks: the NCCL communicators are non-blocking,
// and a wait for one exchange advances every communicator of the plug-in.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "ep_api/collective_kinds.h"
#include "providers/nccl/library.h"
#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/negotiate.h"

struct ep_collectives {
  const ep_host* host;
  std::mutex mutex;  // held during every call
  tenon::provider::nccl::Libraries libraries;
  std::vector<ep_communicator*> communicators;
};

struct ep_communicator {
  const ep_host* host;
  ep_collectives* plugin;
  int32_t rank, size;
  tenon::provider::nccl::CudaDevice device;
  tenon::provider::nccl::Context context;
  tenon::provider::nccl::Stream stream;
  tenon::provider::nccl::Event event;  // recorded after the exchanges that NCCL has
  tenon::provider::nccl::Comm* comm;   // NULL after a failure
  // making: the ranks are joining. idle: NCCL has no work. issuing: NCCL prepares an exchange. running: the exchange is
  // on the stream. failed: final.
  enum class State { making, idle, issuing, running, failed } state;
  std::string failure;
  std::deque<ep_exchange*> queue;
  size_t in_hand;  // the number of exchanges at the front of the queue that NCCL has
};

struct ep_exchange {
  const ep_host* host;
  ep_collectives* plugin;
  ep_communicator* communicator;  // lives at least until the exchange has ended
  ep_collective_desc desc;
  std::vector<int64_t> src_counts, dst_counts;
  bool ended;
  std::string failure;  // not empty: the exchange has ended with this error
};

namespace tenon::provider::nccl {

using Lock = std::lock_guard<std::mutex>;

// Makes the context of `communicator` current during its lifetime.
class InContext {
 public:
  explicit InContext(const ep_communicator& communicator) : libraries_(communicator.plugin->libraries) {
    libraries_.context_push(communicator.context);
  }
  ~InContext() {
    Context before = nullptr;
    libraries_.context_pop(&before);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  const Libraries& libraries_;
};

// NCCL's type for reducing `dtype`; no_type if there is none.
Type reduced_type(int32_t dtype);
// Bytes per element; 0 for types that do not fill whole bytes.
int64_t bytes_of(int32_t dtype);
// NCCL's operation for `reduction`; -1 if it is not offered.
int op_of(int32_t reduction);
// Bit sets of 1 << dtype (types that can be moved, types that can be reduced) and of 1 << EP_REDUCE_*.
uint64_t carried_dtypes();
uint64_t reduced_dtypes();
uint64_t known_reductions();

// Passes one exchange to NCCL. Returns the result of the first call that fails, else success.
Result issue(const ep_exchange& exchange);

// Advances as far as possible without waiting. The caller holds the lock.
void advance(ep_communicator& communicator);
// Ends every exchange of `communicator` with `failure`, including those that NCCL has.
void give_up(ep_communicator& communicator, const std::string& failure);

ep_status ticket_make(ep_collectives* plugin, ep_ticket* out_ticket, ep_error** error);
ep_status ticket_join(ep_collectives* plugin, const ep_ticket_desc* desc, ep_communicator** out_communicator,
                      ep_error** error);
void communicator_destroy(ep_communicator* communicator) noexcept;

ep_status exchange_start(ep_communicator* communicator, const ep_collective_desc* desc, ep_exchange** out_exchange,
                         ep_error** error);
ep_status exchange_wait(ep_exchange* exchange, uint64_t timeout_ns, ep_error** error);
void exchange_destroy(ep_exchange* exchange) noexcept;

}  // namespace tenon::provider::nccl
