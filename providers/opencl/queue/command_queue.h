// CommandQueue: a stream, which is an in-order cl_command_queue. The driver batches commands; work begins at a flush at
// the latest.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>

#include "providers/opencl/programs/program.h"
#include "providers/opencl/queue/fault_log.h"

namespace tenon::provider::opencl {

class CommandQueue;

// A point of a queue: the event of a marker. It keeps its queue alive, so that it can flush it.
class Point {
 public:
  Point(std::shared_ptr<CommandQueue> queue, cl_event event) : queue_(std::move(queue)), event_(event) {}
  ~Point();
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  // OK: the work before the point is done, and its writes are acquired. BUSY: it is not. Flushes the queue.
  ep_status query(ep_error** error) const;
  // Errors: TIMEOUT, DEVICE_LOST.
  ep_status wait(uint64_t timeout_ns, ep_error** error) const;
  // The time of the point by the device's clock, in ns. The point must have been reached, on a timed queue.
  ep_status time(uint64_t* out_ns, ep_error** error) const;
  // OK or BUSY, like query, but without a flush.
  ep_status ask(ep_error** error) const;
  CommandQueue& queue() const { return *queue_; }
  cl_event event() const { return event_; }

 private:
  std::shared_ptr<CommandQueue> queue_;
  cl_event event_;
};

// One argument of a kernel, as clSetKernelArg takes it.
struct Argument {
  size_t size;
  const void* value;
};

// A kernel and its work: groups in x and y, and work-items per group.
struct Dispatch {
  const Kernel* kernel = nullptr;
  uint64_t groups = 1;
  uint64_t group_size = 1;
};

// Threads: one enqueues, while others flush and wait. Owner: the stream and the points recorded on it.
class CommandQueue : public std::enable_shared_from_this<CommandQueue> {
 public:
  explicit CommandQueue(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~CommandQueue();
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;

  // A timed queue keeps the times of its points.
  ep_status create(bool timed, ep_error** error);
  bool timed() const { return timed_; }
  // Retains a queue of the application. It must be in order and belong to this device and context.
  ep_status share(cl_command_queue theirs, ep_error** error);
  Context& context() const { return *context_; }
  cl_command_queue handle() const { return handle_; }
  FaultLog& faults() const { return *faults_; }

  ep_status copy(cl_mem dst, uint64_t dst_offset, cl_mem src, uint64_t src_offset, uint64_t size, ep_error** error);
  ep_status upload(cl_mem dst, uint64_t offset, const void* src, uint64_t size, ep_error** error);
  ep_status download(void* dst, cl_mem src, uint64_t offset, uint64_t size, ep_error** error);
  // Enqueues a kernel whose arguments are `buffers` and a struct by value.
  template <class Parameters>
  ep_status launch(const Dispatch& dispatch, std::initializer_list<cl_mem> buffers, const Parameters& parameters,
                   ep_error** error) {
    static_assert(sizeof(Parameters) + 8 * 10 <= least_parameter_bytes);
    return launch_bytes(dispatch, buffers, &parameters, sizeof parameters, error);
  }

  // Enqueues a kernel on a grid of three axes.
  ep_status launch_grid(const Kernel& kernel, std::span<const Argument> arguments, const size_t (&global)[3],
                        const size_t (&local)[3], ep_error** error);

  ep_status record(std::shared_ptr<Point>* out_point, ep_error** error);
  // Work enqueued from now on waits for `point`, which may belong to another queue.
  ep_status wait_for(const Point& point, ep_error** error);
  // Work enqueued from now on waits for an event of the application.
  ep_status wait_for_event(cl_event event, ep_error** error);
  ep_status flush(ep_error** error);
  // Waits for all work enqueued so far.
  ep_status finish(ep_error** error);

 private:
  ep_status launch_bytes(const Dispatch& dispatch, std::initializer_list<cl_mem> buffers, const void* parameters,
                         uint64_t size, ep_error** error);

  std::shared_ptr<Context> context_;
  cl_command_queue handle_ = nullptr;
  bool timed_ = false;
  std::unique_ptr<FaultLog> faults_;
};

}  // namespace tenon::provider::opencl
