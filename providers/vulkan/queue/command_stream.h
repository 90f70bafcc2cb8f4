// CommandStream: an in-order stream. Work is recorded into the open batch, one command buffer; a batch is submitted
// when it is full or much work, when the host asks (flush, or a query or wait for something in it), never by time. Each
// batch signals the next value of the stream's timeline semaphore, so a point in the stream is a number: the value its
// batch signals.
//
// Every operation is recorded behind a barrier on all that came before it on the queue, so order holds within a batch,
// between batches, and between streams that share the queue. Streams on different queues wait for each other's values.
//
// Thread-safe: one thread records while others query, wait and flush. Events and other streams' waits keep it alive.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "providers/vulkan/queue/staging.h"

namespace tenon::provider::vulkan {

class CommandStream;

// All streams of a device: who sees an event of one stream has also seen what that stream had waited for, and downloads
// are finished on the host.
class StreamSet {
 public:
  void add(const std::shared_ptr<CommandStream>& stream);
  // Finishes the downloads of every stream that the device is done with.
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
  uint64_t work = 0;  // steps, where there are many for what is moved: multiplications of a matmul
};

class CommandStream : public std::enable_shared_from_this<CommandStream> {
 public:
  CommandStream(std::shared_ptr<Context> context, std::shared_ptr<Staging> staging, std::shared_ptr<StreamSet> set,
                VkPipelineLayout layout);
  ~CommandStream();
  CommandStream(const CommandStream&) = delete;
  CommandStream& operator=(const CommandStream&) = delete;

  ep_status create(ep_error** error);

  // --- recording: hold a Recording while adding to it ---
  class Recording;

  // --- points ---
  // The value that is signalled when all work submitted so far is done.
  uint64_t point();
  ep_status flush(ep_error** error);
  // OK: done and its downloads finished; BUSY: not yet. Flushes if the point is still being recorded.
  ep_status query(uint64_t value, ep_error** error);
  ep_status wait(uint64_t value, uint64_t timeout_ns, ep_error** error);
  // Work recorded from now on waits for `value` of `other`.
  ep_status wait_for(CommandStream& other, uint64_t value, ep_error** error);
  // NOT_FOUND if there is none.
  ep_status take_fault(ep_fault* out_fault);
  ep_status check(ep_error** error) const { return context_->check(error); }
  // Settles what the device is done with.
  ep_status retire(ep_error** error);
  // Of a lost device: lets go of the streams that are waited for, which may wait for this one.
  void forget_waits();
  // Before a piece is staged: while much is under way, submits and waits for the oldest batch.
  ep_status make_room(ep_error** error);

 private:
  struct Download {
    void* dst;
    StagedRange src;
    uint64_t size;
  };
  struct FaultWatch {
    StagedRange slot;
    uint64_t recording;
    uint64_t tag;
    int32_t operand;
  };
  struct Wait {
    std::shared_ptr<CommandStream> stream;
    uint64_t value;
  };
  struct Batch {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = nullptr;
    uint64_t value = 0;
    uint32_t operations = 0;
    uint64_t work = 0;
    std::vector<Wait> waits;
    std::vector<StagingBlock*> blocks;
    std::array<StagingBlock*, 3> filling{};
    std::vector<Download> downloads;
    std::vector<FaultWatch> watches;
  };

  ep_status open_batch(ep_error** error);
  ep_status make_batch(std::unique_ptr<Batch>* out_batch, ep_error** error);
  ep_status submit(ep_error** error);
  VkResult queue_submit(Batch& batch);
  ep_status flush_up_to(uint64_t value, ep_error** error);
  ep_status stage(StagingKind kind, uint64_t size, uint64_t alignment, StagedRange* out_range, ep_error** error);
  ep_status after_operation(ep_error** error);
  void barrier(VkPipelineStageFlags dst_stage, VkAccessFlags dst_access);
  VkResult await(uint64_t value, uint64_t timeout_ns) const;
  void settle(uint64_t completed);
  void settle_batch(Batch& batch);
  ep_status read_completed(uint64_t* out_value, ep_error** error);

  std::shared_ptr<Context> context_;
  std::shared_ptr<Staging> staging_;
  std::shared_ptr<StreamSet> set_;
  VkPipelineLayout layout_;
  Queue* queue_ = nullptr;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;

  std::mutex mutex_;
  std::unique_ptr<Batch> open_;
  std::deque<std::unique_ptr<Batch>> in_flight_;
  std::vector<std::unique_ptr<Batch>> idle_;
  uint64_t submitted_ = 0;
  uint64_t settled_ = 0;  // batches up to here are done and finished
  uint64_t in_flight_bytes_ = 0;
  std::deque<ep_fault> faults_;
  uint64_t recordings_ = 0;
  uint64_t faulted_ = 0;  // the last recording of which a fault was kept
};

// The right to add operations to a stream. Each add_ either adds one whole operation or leaves the stream as it was.
class CommandStream::Recording {
 public:
  explicit Recording(CommandStream& stream) : stream_(stream), lock_(stream.mutex_), number_(++stream.recordings_) {}

  // A place for `size` bytes of parameters until the batch is done.
  ep_status parameters(uint64_t size, StagedRange* out_range, ep_error** error) {
    return stream_.stage(StagingKind::PARAMETERS, size, 16, out_range, error);
  }
  // A zeroed fault slot, looked at when the batch is done; of the slots of one recording the first that was taken
  // counts.
  ep_status watch_faults(uint64_t tag, int32_t operand, uint64_t* out_address, ep_error** error);
  ep_status add_dispatch(const Dispatch& dispatch, ep_error** error);
  ep_status add_copy(VkBuffer dst, uint64_t dst_offset, VkBuffer src, uint64_t src_offset, uint64_t size,
                     ep_error** error);
  // At most Staging::largest_piece bytes.
  ep_status add_upload(VkBuffer dst, uint64_t dst_offset, const void* src, uint64_t size, ep_error** error);
  ep_status add_download(void* dst, VkBuffer src, uint64_t src_offset, uint64_t size, ep_error** error);

 private:
  CommandStream& stream_;
  std::lock_guard<std::mutex> lock_;
  const uint64_t number_;
};

}  // namespace tenon::provider::vulkan
