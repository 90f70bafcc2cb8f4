// Communicator: a group of processes, its ranks, and the exchanges among them.
//
// Elements of the host travel by the plug-in that has found the ranks (MPI). Elements of a device travel where they lie
// if a plug-in takes the device's memory (NCCL) and each rank has a device of its own; `carries` says so. What ranks
// say to each other besides always travels through the host.
//
// Every rank runs the same program and makes the same calls in the same order. Each call says to the next rank what it
// is (number, kind, element type, counts, label) before any data moves; so ranks that do not agree get an error that
// names both, on every rank, and no data is misread. A rank that does not come within the deadline (the setting
// rank_seconds) is an error that names it. Errors call ranks by their numbers in the launch. A call that is refused on
// sight (an element type, a count) moves nothing and harms nothing. After any other error the communicator is broken:
// each later call answers with the same error, and the memory of the call that failed stays untouched until the process
// ends, since a late rank may still write it.
//
// An exchange may be begun and go on beside its caller, on a thread of the communicator: the caller goes on to compute.
// Exchanges of a communicator are carried out in the order in which they were called and begun, one after the other, so
// a call waits for those that were begun before.
//
// Threads: any; calls on one communicator come one after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"
#include "core/global/collective.h"
#include "core/tensor/tensor.h"
#include "loader/collectives/collectives.h"
#include "primitives/dtype/dtype.h"
#include "primitives/status/status.h"

namespace tenon::vm {
class HostWorker;
}

namespace tenon::global {

// What a process has given to other ranks. By the definition of each exchange, whatever the transport makes of it: a
// sum over all ranks is each part to the rank that adds it, and the sums back.
struct Traffic {
  uint64_t exchanges = 0, bytes = 0;
  uint64_t beside = 0;  // of the exchanges those that were begun, and not called
};

class TENON_API Communicator {
 public:
  // The communicator of all ranks that the launcher (mpirun, srun) started; of this one alone without a launcher. The
  // first call joins it, and waits until every rank has. Errors: no plug-in carries data between processes; ranks of
  // different versions of Tenon; a rank that does not come.
  static Result<std::shared_ptr<Communicator>> world();

  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // What exchanges of this process have carried since it began, of all communicators together; a measurement reads it
  // before and after. An exchange with itself does not count.
  static Traffic traffic();

  int32_t rank() const { return info_.rank; }
  int32_t size() const { return info_.size; }
  int32_t node_rank() const { return info_.node_rank; }  // among the ranks of this machine
  int32_t node_size() const { return info_.node_size; }

  // Communicators of the ranks that gave the same `color` >= 0, in the order of `key`, then of their ranks here. Null
  // for color -1. All ranks call it.
  Result<std::shared_ptr<Communicator>> split(int32_t color, int32_t key);

  // The exchanges; `label` (an op, say) stands in errors. Counts are in elements, >= 0, and the same on all ranks;
  // counts per rank may differ and be 0.
  //
  // dst[i] = the reduction over all ranks of src[i]. `src` may be `dst`.
  Status all_reduce(const void* src, void* dst, int64_t count, DType dtype, Reduction reduction,
                    std::string_view label = {});
  // dst = the parts of all ranks, one behind the other, counts[k] elements of rank k; src is the own part.
  Status all_gather(const void* src, void* dst, std::span<const int64_t> counts, DType dtype,
                    std::string_view label = {});
  // src has a part for each rank, counts[k] elements for rank k; dst = the reduction over all ranks of the own part.
  Status reduce_scatter(const void* src, void* dst, std::span<const int64_t> counts, DType dtype, Reduction reduction,
                        std::string_view label = {});
  // src has a part for each rank, src_counts[k] elements for rank k; dst gets the parts of all ranks for this one,
  // dst_counts[k] elements of rank k.
  Status all_to_all(const void* src, void* dst, std::span<const int64_t> src_counts,
                    std::span<const int64_t> dst_counts, DType dtype, std::string_view label = {});
  // `data` of all ranks = that of rank `root`.
  Status broadcast(void* data, int64_t count, DType dtype, int32_t root, std::string_view label = {});
  // From one rank to another. The other ranks have no part in it.
  Status send(const void* src, int64_t count, DType dtype, int32_t to, std::string_view label = {});
  Status receive(void* dst, int64_t count, DType dtype, int32_t from, std::string_view label = {});
  // Answers when all ranks have come.
  Status barrier(std::string_view label = {});

  // Whether exchanges take elements of `dtype` on `device` where they lie; `sums`: those that sum them too. No for the
  // host. The first question brings the ranks together, each with the device that it asks about: of another device the
  // answer is no from then on. All ranks ask alike.
  bool carries(Device device, DType dtype, bool sums);
  // An exchange of tensors, dense and both of one device: the host, or one that `carries` said yes of. It waits for
  // work on the tensors that was submitted before, and returns when the elements have come.
  Status call(const Tensor& src, const Tensor& dst, const Exchange& exchange, std::string_view label = {});
  // Begins it, and returns. It goes on when work on the tensors that was submitted before has ended. Whoever uses `dst`
  // later waits for it, and gets its error, as with an op; so does who writes `src`. Errors, here, where `dst` has no
  // elements: those of exchanges that failed before.
  Status begin(const Tensor& src, const Tensor& dst, const Exchange& exchange, std::string_view label = {});
  // How many exchanges were begun and have not ended.
  uint64_t under_way() const;

 private:
  struct Head;  // what a rank says of a call before its data moves
  struct Line;  // one communicator of a plug-in
  struct Road;  // how elements of one device travel
  using MakeLine = std::function<Result<std::unique_ptr<Line>>()>;

  explicit Communicator(loader::OpenCollectives& plugin);
  friend struct Communicators;
  // Gives up what the plug-in holds for it; every later call is refused. False: a thread is in a call.
  bool close();
  static Result<std::shared_ptr<Communicator>> join();
  // Makes the three lines: of data, heads and alarms.
  Status open(const MakeLine& make_line);
  Status agree_on_versions();
  Status learn_names(int32_t own);
  int32_t name_of(int32_t rank) const;

  Status call(const ep_collective_desc& desc, uint64_t counts_digest, std::string_view label);
  Status call_over(const Line& line, const ep_collective_desc& desc, uint64_t counts_digest, std::string_view label);
  // Of exchanges of tensors.
  struct Asked;
  Result<Asked> ask(const Tensor& src, const Tensor& dst, const Exchange& exchange, bool pending);
  Status carry_out(const Asked& asked, const Tensor& src, const Tensor& dst, std::string_view label);
  Result<vm::HostWorker*> worker();
  Status wait_for_begun();
  Status refuse_on_sight(const Line& line, const ep_collective_desc& desc) const;
  Status meet_and_move(const Line& line, const ep_collective_desc& desc, const Head& head);
  Status meet(const Head& own, int32_t to, int32_t from);
  Status meet_over(Head* heads, int32_t to, int32_t from);
  Status move(const Line& line, ep_collective_desc desc, const Head& head);
  static Result<ep_exchange*> start(const Line& line, const ep_collective_desc& desc);
  Status exchange(const Line& line, const ep_collective_desc& desc, const std::function<Status()>& late);
  Status wait(const Line& line, ep_exchange* exchange, double seconds, const std::function<Status()>& late);
  const Line* road_of(Device device);
  Status open_road(Road& road);
  Result<std::string> agree_on_road(Road& road);
  Status start_alarm();
  void listen();
  void raise_alarm(const Status& failure);

  loader::OpenCollectives& plugin_;
  ep_communicator_info info_{};
  std::vector<int32_t> names_;  // of the ranks in the launch, by which errors call them
  std::mutex mutex_;
  std::unique_ptr<Line> data_, heads_, alarms_;
  ep_exchange* alarm_ = nullptr;  // the receive that waits for another rank's failure
  std::unique_ptr<char[]> alarm_text_;
  Status alarm_failure_;   // what another rank told of
  uint64_t alarm_at_ = 0;  // of which exchange
  uint64_t sequence_ = 0;
  Status broken_;
  std::atomic<bool> is_broken_{false};            // without the lock
  std::atomic<vm::HostWorker*> worker_{nullptr};  // where exchanges go on beside their callers; made when first needed
  std::mutex road_mutex_;
  std::unique_ptr<Road> road_;  // of the device that `carries` was asked about first
};

}  // namespace tenon::global
