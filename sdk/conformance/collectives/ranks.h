// Ranks: a plug-in that carries data between processes, at the raw ABI, in this rank of a launch.
//
// All ranks run the same tests in the same order. A test that needs to say something to another rank says it through
// the plug-in itself. One that joins by tickets needs two others: one that finds the ranks and carries the tickets and
// what tests say (`beside`), and a provider of devices, on whose memory it is tested (`devices`).
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
  // The files of the plug-ins that one which joins by tickets needs; empty: they are not given.
  struct Companions {
    std::string beside, devices;
  };

  // An exchange that has not ended after `time_limit` seconds never will.
  Ranks(const std::string& path, const Settings& settings, double time_limit, Companions companions = {})
      : path_(path), time_limit_(time_limit), companions_(std::move(companions)), host(settings, path) {}
  ~Ranks() { leave(); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // Loads the file and fills `ops`.
  Status load();
  // Joins the communicator of all ranks.
  Status join();
  // Another communicator of all ranks: by a split, or by a ticket.
  Status join_another(ep_communicator** out);
  // Destroys that communicator and shuts the plug-in down.
  void leave();

  // Calls a function of the table whose last parameter is an ep_error**, and returns its failure as a Status. What the
  // plug-in did wrong besides is a violation of `host`.
  template <class Function, class... Args>
  Status call(const char* name, Function function, Args... args) {
    ep_error* error = nullptr;
    try {
      const ep_status status = function(args..., &error);
      const Status taken = host.take(name, status, error);
      // Inside the kit `cancelled` means skipped.
      return status == EP_STATUS_CANCELLED ? Status(Code::internal, taken.message()) : taken;
    } catch (...) {
      return broken("K06", "{} threw a C++ exception", name);
    }
  }

  // Starts an exchange in `communicator`. The memory of `desc` is the host's; where the plug-in takes a device's, the
  // exchange is of a copy there, between two fences.
  Status start(ep_communicator* communicator, const ep_collective_desc& desc, ep_exchange** out);
  // Starts what `desc` says, its memory of the type that the plug-in takes.
  Status start_plainly(ep_communicator* communicator, ep_collective_desc desc, ep_exchange** out) {
    if (joins_by_ticket() && desc.memory_type == EP_HANDLE_HOST_POINTER) desc.memory_type = memory_type_;
    return call("exchange_start", ops.exchange_start, communicator, &desc, out);
  }
  // Waits for the end and destroys the exchange. If it does not end, the process does.
  Status finish(ep_exchange* exchange);
  // Brings what has come in an exchange that has ended from the device to the host. Errors: it wrote elsewhere too.
  Status bring_back(ep_exchange* exchange);
  // Both.
  Status run(ep_communicator* communicator, const ep_collective_desc& desc);

  // One number from one rank to another, so that the latter goes on after the former; without a communicator through
  // whoever finds the ranks.
  Status tell(int32_t to, int32_t number, ep_communicator* communicator = nullptr);
  Status hear(int32_t from, int32_t* number, ep_communicator* communicator = nullptr);

  int32_t rank() const { return info.rank; }
  int32_t size() const { return info.size; }
  bool joins_by_ticket() const { return ops.world_join == nullptr; }

 private:
  // What an exchange has on the device.
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

// A descriptor for memory of the host; the rest is the caller's.
ep_collective_desc collective(int32_t kind, DType dtype, const void* src, void* dst, int64_t count);

}  // namespace tenon::conformance
