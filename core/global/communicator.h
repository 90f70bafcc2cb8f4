// Communicator: a group of processes (ranks) and the exchanges among them.
//
// Elements in host memory are sent by the plug-in that found the ranks (MPI). Elements in device memory are sent
// directly if a plug-in takes the device's memory (NCCL) and each rank has a device of its own; `carries` tells. All
// other messages between ranks go through the host.
// Every rank runs the same program and makes the same calls in the same order. Before data moves, each call sends the
// next rank a head that describes it (number, kind, element type, counts, label). If ranks disagree, every rank gets an
// error that names both calls, and no data is misread. A rank that does not arrive within the deadline (the setting
// rank_seconds) causes an error that names it. Errors call ranks by their numbers in the launch. A call with invalid
// arguments (an element type, a count) fails without any effect. After any other error the communicator is broken: each
// later call returns the same error. The memory of the failed call stays allocated until the process ends, since a late
// rank may still write it.
// An exchange may also run in the background, on a thread of the communicator, while the caller continues. A
// communicator carries out its exchanges one after another, in the order in which they were called or begun. So a call
// waits for exchanges that were begun earlier.
// Threads: any; calls on one communicator run one after another.
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

// Bytes and exchanges that a process has sent to other ranks. The numbers follow the definition of each exchange, not
// the transport: in a sum over all ranks, each part is sent to the rank that adds it, and the sums are sent back.
struct Traffic {
  uint64_t exchanges = 0, bytes = 0;
  uint64_t beside = 0;  // the exchanges that were begun in the background
};

class TENON_API Communicator {
 public:
  // The communicator of all ranks that the launcher (mpirun, srun) started; without a launcher, of this process alone.
  // The first call joins it and waits until every rank has joined. Errors: no plug-in for communication between
  // processes; ranks with different versions of Tenon; a rank that does not arrive.
  static Result<std::shared_ptr<Communicator>> world();

  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // The traffic of this process since it started, over all communicators; a measurement reads it before and after. An
  // exchange of a rank with itself does not count.
  static Traffic traffic();

  int32_t rank() const { return info_.rank; }
  int32_t size() const { return info_.size; }
  int32_t node_rank() const { return info_.node_rank; }  // the number among the ranks of this machine
  int32_t node_size() const { return info_.node_size; }

  // Splits the ranks into new communicators: one for each `color` >= 0, with its ranks ordered by `key`, then by their
  // rank here. Null for color -1. All ranks must call it.
  Result<std::shared_ptr<Communicator>> split(int32_t color, int32_t key);

  // The exchanges. Errors quote `label` (an op, say). Counts are in elements, >= 0, and the same on all ranks; counts
  // per rank may differ and may be 0.
  //
  // dst[i] = the reduction over all ranks of src[i]. `src` may be `dst`.
  Status all_reduce(const void* src, void* dst, int64_t count, DType dtype, Reduction reduction,
                    std::string_view label = {});
  // dst = the parts of all ranks in order, counts[k] elements from rank k; src is this rank's part.
  Status all_gather(const void* src, void* dst, std::span<const int64_t> counts, DType dtype,
                    std::string_view label = {});
  // src has a part for each rank, counts[k] elements for rank k; dst = the reduction over all ranks of this rank's
  // part.
  Status reduce_scatter(const void* src, void* dst, std::span<const int64_t> counts, DType dtype, Reduction reduction,
                        std::string_view label = {});
  // src has a part for each rank, src_counts[k] elements for rank k; dst gets this rank's parts from all ranks,
  // dst_counts[k] elements from rank k.
  Status all_to_all(const void* src, void* dst, std::span<const int64_t> src_counts,
                    std::span<const int64_t> dst_counts, DType dtype, std::string_view label = {});
  // Copies `data` of rank `root` to `data` of all ranks.
  Status broadcast(void* data, int64_t count, DType dtype, int32_t root, std::string_view label = {});
  // Sends from one rank to another. The other ranks do not take part.
  Status send(const void* src, int64_t count, DType dtype, int32_t to, std::string_view label = {});
  Status receive(void* dst, int64_t count, DType dtype, int32_t from, std::string_view label = {});
  // Returns when all ranks have called it.
  Status barrier(std::string_view label = {});

  // True if exchanges take elements of `dtype` directly from the memory of `device`; `sums` asks about exchanges that
  // add them. False for the host. The first call is collective: each rank passes its device. For any other device,
  // later calls return false. All ranks must call it with the same arguments.
  bool carries(Device device, DType dtype, bool sums);
  // An exchange of dense tensors, both on the same device: the host, or a device for which `carries` returned true.
  // Waits for earlier work on the tensors, and returns when the elements have arrived.
  Status call(const Tensor& src, const Tensor& dst, const Exchange& exchange, std::string_view label = {});
  // Begins an exchange and returns. The exchange starts when earlier work on the tensors has finished. Later uses of
  // `dst` and writes of `src` wait for it and get its error, as with an op. Errors, if `dst` has no elements: those of
  // exchanges that failed earlier.
  Status begin(const Tensor& src, const Tensor& dst, const Exchange& exchange, std::string_view label = {});
  // The number of exchanges that were begun and have not ended.
  uint64_t under_way() const;

 private:
  struct Head;  // the description of a call that a rank sends before its data
  struct Line;  // one communicator of a plug-in
  struct Road;  // how the elements of one device are sent
  using MakeLine = std::function<Result<std::unique_ptr<Line>>()>;

  explicit Communicator(loader::OpenCollectives& plugin);
  friend struct Communicators;
  // Releases the plug-in's objects; every later call fails. False: a thread is inside a call.
  bool close();
  static Result<std::shared_ptr<Communicator>> join();
  // Makes the three lines: for data, heads and alarms.
  Status open(const MakeLine& make_line);
  Status agree_on_versions();
  Status learn_names(int32_t own);
  int32_t name_of(int32_t rank) const;

  Status call(const ep_collective_desc& desc, uint64_t counts_digest, std::string_view label);
  Status call_over(const Line& line, const ep_collective_desc& desc, uint64_t counts_digest, std::string_view label);
  // For exchanges of tensors.
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
  std::vector<int32_t> names_;  // each rank's number in the launch, for errors
  std::mutex mutex_;
  std::unique_ptr<Line> data_, heads_, alarms_;
  ep_exchange* alarm_ = nullptr;  // the receive of another rank's alarm
  std::unique_ptr<char[]> alarm_text_;
  Status alarm_failure_;   // the failure that another rank reported
  uint64_t alarm_at_ = 0;  // the exchange of that failure
  uint64_t sequence_ = 0;
  Status broken_;
  std::atomic<bool> is_broken_{false};            // read without the lock
  std::atomic<vm::HostWorker*> worker_{nullptr};  // runs exchanges in the background; made on first use
  std::mutex road_mutex_;
  std::unique_ptr<Road> road_;  // for the device of the first call of `carries`
};

}  // namespace tenon::global
