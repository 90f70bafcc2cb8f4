// CommandStream: an in-order stream. Work is recorded into the open batch, which is one command buffer. The stream
// submits a batch when it is full or holds much work, and when the host flushes, queries or waits for work in it, but
// never because of elapsed time. Each batch signals the next value of the stream's timeline semaphore. So a point in
// the stream is a number: the value that its batch signals.
//
// A barrier on all earlier work of the queue precedes every operation. So order holds within a batch, between batches,
// and between streams that share the queue. Streams on different queues wait for each other's values.
//
// Threads: one records, while others query, wait and flush. Owner: the stream handle, its events, and streams that wait
// for it.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "providers/vulkan/queue/staging.h"
#include "providers/vulkan/queue/timestamps.h"

namespace tenon::provider::vulkan {

class CommandStream;
struct CommandList;

// Written by a kernel into a fault slot. Mirrors EpFaultSlot of modules/source.cpp, and FaultSlot of
// shaders/memory.glsl, which has the first three members.
struct FaultSlot {
  uint32_t taken, code;
  int64_t value;
  int64_t limit;
  int32_t operand, reserved;
};

// A fault slot that the host reads when the work is done.
struct FaultWatch {
  static constexpr int32_t of_kernel = -1;  // used as `operand` if the kernel itself writes the operand

  StagedRange slot;
  uint64_t recording;
  uint64_t tag;
  int32_t operand;
};

// All streams of a device. A thread that sees an event of one stream may rely on all work that the stream had waited
// for, so the host must finish the downloads of those other streams too.
class StreamSet {
 public:
  void add(const std::shared_ptr<CommandStream>& stream);
  // Finishes the completed downloads of every stream.
  void finish_downloads();
  std::atomic<int64_t> pending_downloads{0};

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<CommandStream>> streams_;
};

// The push constants and grid of one dispatch.
struct Dispatch {
  VkPipeline pipeline = VK_NULL_HANDLE;
  const void* push = nullptr;
  uint32_t push_size = 0;
  uint32_t groups[3] = {1, 1, 1};
  uint64_t work = 0;  // multiplications of a matmul; 0 if the bytes moved determine the time
};

class CommandStream : public std::enable_shared_from_this<CommandStream> {
 public:
  CommandStream(std::shared_ptr<Context> context, std::shared_ptr<Staging> staging, std::shared_ptr<StreamSet> set,
                VkPipelineLayout layout);
  ~CommandStream();
  CommandStream(const CommandStream&) = delete;
  CommandStream& operator=(const CommandStream&) = delete;

  // If `timed`, events of the stream can record the device's time.
  ep_status create(bool timed, ep_error** error);
  bool timed() const { return timestamps_ != nullptr; }

  // --- recording: hold a Recording to add operations ---
  class Recording;

  // --- points ---
  // The value that is signalled when all work submitted so far is done.
  uint64_t point();
  // Like point(), and records the device's time there, in a place that the caller keeps.
  ep_status timed_point(uint64_t* out_value, std::shared_ptr<Timestamps::Place>* out_place, ep_error** error);
  ep_status flush(ep_error** error);
  // OK: the work is done and its downloads are finished. BUSY: it is not. Flushes if the open batch contains the point.
  ep_status query(uint64_t value, ep_error** error);
  ep_status wait(uint64_t value, uint64_t timeout_ns, ep_error** error);
  // Work recorded from now on waits for `value` of `other`.
  ep_status wait_for(CommandStream& other, uint64_t value, ep_error** error);
  // Work recorded from now on waits for `semaphore`, which belongs to no stream; `value` is used for timeline
  // semaphores.
  ep_status wait_semaphore(VkSemaphore semaphore, uint64_t value, ep_error** error);
  // Signals `semaphore` after all work recorded so far, and submits that work.
  ep_status signal_semaphore(VkSemaphore semaphore, uint64_t value, ep_error** error);
  // Errors: NOT_FOUND if there is no fault.
  ep_status take_fault(ep_fault* out_fault);
  ep_status check(ep_error** error) const { return context_->check(error); }
  Context& context() const { return *context_; }
  // Settles the batches that the device has completed.
  ep_status retire(ep_error** error);
  // Called if the device is lost: drops the streams that this one waits for, since they may wait for this one.
  void forget_waits();

  // --- command lists ---
  // From now on operations are recorded into a list instead of run. Requires that no work is in flight.
  ep_status begin_list(ep_error** error);
  // Ends the recording. Errors: UNSUPPORTED if a recorded call has failed, or if there is more work than a submission
  // may have.
  ep_status end_list(std::shared_ptr<CommandList>* out_list, ep_error** error);
  bool records() const { return records_.load(std::memory_order_relaxed); }
  // Scope of a launch or copy that may be recorded. If it fails or throws, the recording has failed.
  class Call {
   public:
    explicit Call(CommandStream& stream) : stream_(stream) {}
    ~Call() {
      if (!ended_well_) stream_.list_failed_ = true;
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ep_status end(ep_status status) {
      ended_well_ = status == EP_STATUS_OK;
      return status;
    }

   private:
    CommandStream& stream_;
    bool ended_well_ = false;
  };
  // Runs `list` after all work recorded so far, and submits both. The last replay of `list` must be done.
  ep_status replay(const std::shared_ptr<CommandList>& list, uint64_t tag, ep_error** error);

  // Call before staging a piece. If much is in flight, submits the open batch and waits for the oldest one.
  ep_status make_room(ep_error** error);

 private:
  struct Download {
    void* dst;
    StagedRange src;
    uint64_t size;
  };
  struct Wait {
    std::shared_ptr<CommandStream> stream;
    uint64_t value;
  };
  // A semaphore of another API.
  struct Foreign {
    VkSemaphore semaphore;
    uint64_t value;
  };
  struct Batch {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = nullptr;
    uint64_t value = 0;
    uint32_t operations = 0;
    uint64_t work = 0;
    std::vector<Wait> waits;
    std::vector<Foreign> foreign_waits;
    std::vector<Foreign> foreign_signals;
    std::vector<StagingBlock*> blocks;
    std::array<StagingBlock*, 3> filling{};
    std::vector<Download> downloads;
    std::vector<FaultWatch> watches;
    std::shared_ptr<CommandList> list;  // for a replay, used instead of `commands`
    uint64_t tag = 0;                   // for a replay
  };

  ep_status open_batch(ep_error** error);
  // Takes an idle batch, or makes one.
  ep_status take_batch(std::unique_ptr<Batch>* out_batch, ep_error** error);
  ep_status begin_commands(VkCommandBuffer commands, VkCommandBufferUsageFlags usage, ep_error** error);
  ep_status submit(ep_error** error);
  VkResult queue_submit(Batch& batch);
  ep_status flush_up_to(uint64_t value, ep_error** error);
  ep_status stage(StagingKind kind, uint64_t size, uint64_t alignment, StagedRange* out_range, ep_error** error);
  ep_status after_operation(ep_error** error);
  void barrier(VkPipelineStageFlags dst_stage, VkAccessFlags dst_access);
  VkResult await(uint64_t value, uint64_t timeout_ns) const;
  void settle(uint64_t completed);
  void settle_batch(Batch& batch);
  void collect_faults(const std::vector<FaultWatch>& watches, const Batch& batch);
  // Notes the result of submitting `batch` with the call `call`. A failure makes the device lost.
  ep_status submitted(std::unique_ptr<Batch> batch, const char* call, VkResult result, ep_error** error);
  ep_status read_completed(uint64_t* out_value, ep_error** error);

  std::shared_ptr<Context> context_;
  std::shared_ptr<Staging> staging_;
  std::shared_ptr<StreamSet> set_;
  VkPipelineLayout layout_;
  Queue* queue_ = nullptr;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  std::shared_ptr<Timestamps> timestamps_;  // for a timed stream

  std::mutex mutex_;
  std::unique_ptr<Batch> open_;
  std::deque<std::unique_ptr<Batch>> in_flight_;
  std::vector<std::unique_ptr<Batch>> idle_;
  uint64_t submitted_ = 0;
  uint64_t settled_ = 0;  // batches up to this value are completed and settled
  uint64_t in_flight_bytes_ = 0;
  std::deque<ep_fault> faults_;
  uint64_t recordings_ = 0;
  uint64_t faulted_ = 0;  // the last recording whose fault was kept

  // Set while the stream records a list; its operations are added to the open batch.
  std::shared_ptr<CommandList> list_;
  std::atomic<bool> records_{false};  // true if `list_` is set
  std::atomic<bool> list_failed_{false};
  uint64_t list_begins_ = 0;        // value of `recordings_` when the recording began
  std::unique_ptr<Batch> waiting_;  // the earlier open batch, which is empty
};

// The right to add operations to a stream. Each add_ function adds one whole operation or leaves the stream unchanged.
class CommandStream::Recording {
 public:
  explicit Recording(CommandStream& stream) : stream_(stream), lock_(stream.mutex_), number_(++stream.recordings_) {}

  // Room for `size` bytes of parameters until the batch is done.
  ep_status parameters(uint64_t size, StagedRange* out_range, ep_error** error) {
    return stream_.stage(StagingKind::PARAMETERS, size, 16, out_range, error);
  }
  // Adds a zeroed fault slot, which is read when the batch is done. Among the slots of one recording, the first fault
  // counts. With `operand` of_kernel, the kernel also writes operand and limit.
  ep_status watch_faults(uint64_t tag, int32_t operand, uint64_t* out_address, ep_error** error);
  ep_status add_dispatch(const Dispatch& dispatch, ep_error** error);
  ep_status add_copy(VkBuffer dst, uint64_t dst_offset, VkBuffer src, uint64_t src_offset, uint64_t size,
                     ep_error** error);
  // `size` is at most Staging::largest_piece.
  ep_status add_upload(VkBuffer dst, uint64_t dst_offset, const void* src, uint64_t size, ep_error** error);
  ep_status add_download(void* dst, VkBuffer src, uint64_t src_offset, uint64_t size, ep_error** error);

 private:
  CommandStream& stream_;
  std::lock_guard<std::mutex> lock_;
  const uint64_t number_;
};

}  // namespace tenon::provider::vulkan
