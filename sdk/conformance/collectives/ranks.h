// Ranks: uses a plug-in that moves data between processes through the raw ABI, in this rank of a launch.
//
// All ranks run the same tests in the same order. Tests send messages to other ranks through the plug-in itself. A
// plug-in that joins by tickets needs two other plug-ins: one that finds the ranks and carries tickets and messages
// (`beside`), and a provider of devices whose memory the tests use (`devices`).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ep_api/ep_collectives.h"
#include "loader/library/library.h"
#include "primitives/dtype/dtype.h"
#include "sdk/conformance/host.h"
#include "sdk/conformance/subject.h"
#include "sdk/conformance/verdict.h"

namespace tenon::conformance {

class Ranks {
 public:
  // The files of the other plug-ins, for a plug-in that joins by tickets; else empty.
  struct Companions {
    std::string beside, devices;
  };

  // An exchange that has not ended after `time_limit` seconds counts as hung.
  Ranks(const std::string& path, const Settings& settings, double time_limit, Companions companions = {})
      : path_(path), time_limit_(time_limit), companions_(std::move(companions)), host(settings, path) {}
  ~Ranks() { leave(); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // Loads the file and fills `ops`.
  Status load();
  // Joins the communicator of all ranks.
  Status join();
  // Makes another communicator of all ranks, by a split or by a ticket.
  Status join_another(ep_communicator** out);
  // Destroys the communicator `world` and shuts the plug-in down.
  void leave();

  // Calls a function of the table whose last parameter is an ep_error**, and returns its failure as a Status. Records
  // other mistakes of the plug-in as violations in `host`.
  template <class Function, class... Args>
  Status call(const char* name, Function function, Args... args) {
    ep_error* error = nullptr;
    try {
      const ep_status status = function(args..., &error);
      const Status taken = host.take(name, status, error);
      // In the kit `cancelled` means skipped.
      return status == EP_STATUS_CANCELLED ? Status(Code::internal, taken.message()) : taken;
    } catch (...) {
      return broken("J06", "{} threw a C++ exception", name);
    }
  }

  // Starts an exchange in `communicator`. `desc` has host memory. If the plug-in uses device memory, the exchange uses
  // a copy on the device, between two fences.
  Status start(ep_communicator* communicator, const ep_collective_desc& desc, ep_exchange** out);
  // Starts the collective `desc`, with the memory type of the plug-in.
  Status start_plainly(ep_communicator* communicator, ep_collective_desc desc, ep_exchange** out) {
    if (joins_by_ticket() && desc.memory_type == EP_HANDLE_HOST_POINTER) desc.memory_type = memory_type_;
    return call("exchange_start", ops.exchange_start, communicator, &desc, out);
  }
  // Waits for the exchange and destroys it. If it does not end in time, ends the process.
  Status finish(ep_exchange* exchange);
  // Copies the result of a finished exchange from the device to the host. Errors: the exchange changed bytes outside
  // its result.
  Status bring_back(ep_exchange* exchange);
  // Starts and finishes an exchange.
  Status run(ep_communicator* communicator, const ep_collective_desc& desc);

  // Sends a number to rank `to`, which waits for it (hear). If `communicator` is NULL, uses the plug-in that finds the
  // ranks.
  Status tell(int32_t to, int32_t number, ep_communicator* communicator = nullptr);
  Status hear(int32_t from, int32_t* number, ep_communicator* communicator = nullptr);

  int32_t rank() const { return info.rank; }
  int32_t size() const { return info.size; }
  bool joins_by_ticket() const { return ops.world_join == nullptr; }

 private:
  // A buffer of an exchange on the device.
  struct Copy {
    Memory memory;
    uint8_t* host = nullptr;
    uint64_t bytes = 0;
    bool is_written = false;
  };

  Status join_by_ticket(ep_communicator** out);
  Status join_beside();
  Result<uint64_t> copy_out(uint8_t* host, int64_t elements, DType dtype, bool is_written, std::vector<Copy>* copies);

  const std::string path_;
  const double time_limit_;
  const Companions companions_;
  std::unique_ptr<loader::Library> library_;
  std::unique_ptr<Ranks> beside_;
  std::unique_ptr<Subject> devices_;
  Stream stream_;
  int32_t memory_type_ = EP_HANDLE_HOST_POINTER;
  std::map<ep_exchange*, std::vector<Copy>> copies_;

 public:
  Host host;
  ep_collectives_query_fn query = nullptr;
  ep_collectives_ops ops{};
  ep_communicator* world = nullptr;
  ep_communicator_info info{};
  bool started = false;
};

// Returns a descriptor for host memory. The caller fills the other members.
ep_collective_desc collective(int32_t kind, DType dtype, const void* src, void* dst, int64_t count);

}  // namespace tenon::conformance
