// The objects of the provider. The host holds pointers to them and never reads them.
//
// The host's thread submits a command to a stream, the stream's worker thread runs the commands in order, and a
// timeline counts the finished commands. An event is a number on a timeline. A wait lasts until the timeline reaches a
// number.
//
// What you replace depends on your device's API:
// - It has its own queues (CUDA, Vulkan, OpenCL, Level Zero, HIP). Remove the worker thread. `ep_stream` holds the
// API's
//   queue, `submit` becomes the call that enqueues, and a `Point` becomes the API's event, fence or timeline semaphore.
// - Its calls block until the work is done (many NPUs, DSPs and RPC devices). Keep the worker thread; the commands make
//   these calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "ep_api/ep_api.h"
#include "sdk/provider/primitive.h"

struct ep_plugin {
  const ep_host* host = nullptr;  // valid until `shutdown` returns; each handle has it, for entry<> and errors
};

struct ep_device {
  const ep_host* host = nullptr;
  // Set when work has failed and the contents of device memory are unknown; never reset. From then on commands are
  // skipped, every submission fails, and every wait returns DEVICE_LOST.
  std::atomic<bool> lost{false};
};

// Your memory object (a CUdeviceptr, a VkBuffer). Kernels and copies get it with an offset in bytes.
struct ep_memory {
  const ep_host* host = nullptr;
  char* bytes = nullptr;
};

inline char* address(ep_buffer buffer) { return buffer.memory->bytes + buffer.offset; }

// Counts the finished commands of one stream. Points share it, so it lives as long as the stream, an event or a waiting
// stream needs it (rule S07).
class Timeline {
 public:
  bool reached(uint64_t number);
  void wait(uint64_t number);
  // Returns false if `timeout_ns` (UINT64_MAX: no limit) passes first.
  bool wait_for(uint64_t number, uint64_t timeout_ns);
  void advance();

 private:
  std::mutex mutex_;
  std::condition_variable advanced_;
  uint64_t done_ = 0;
};

// A point in a stream: all commands up to `number` are done. Without a timeline, it was never recorded.
struct Point {
  std::shared_ptr<Timeline> timeline;
  uint64_t number = 0;
};

// A command owns copies of its arguments: the host's arguments are valid only during the call that submits it (rule
// M01).
using Command = std::function<void()>;

struct ep_stream {
  ep_stream(ep_device* device, const ep_stream_desc& desc);
  ~ep_stream();

  // Appends `command`. Never waits for the device (rule S06). If it throws std::bad_alloc, nothing was submitted.
  void submit(Command command);
  // The point after all commands submitted so far.
  Point last();
  // Called by kernels on the worker thread.
  void report(const ep_fault& fault);
  // Returns false if there is no fault.
  bool take_fault(ep_fault* out_fault);

  const ep_host* host = nullptr;
  ep_device* device;

 private:
  // The most faults to keep until the host takes them. Further faults are dropped, and the last one kept is marked.
  static constexpr size_t most_faults = 256;

  void run();
  // Returns false when the stream ends.
  bool next(Command* out_command);

  std::mutex mutex_;  // guards the members down to `faults_`
  std::condition_variable changed_;
  std::deque<Command> queue_;
  uint64_t submitted_ = 0;
  bool ending_ = false;
  std::deque<ep_fault> faults_;
  std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();
  bool copies_;
  std::thread worker_;  // declared last, so that it starts after all other members exist
};

struct ep_event {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  Point point;  // set by the last record
};

// One operand of a launch: its address, and its dims and strides in elements.
struct Operand {
  char* data;
  int32_t rank;
  int64_t dims[EP_MAX_RANK];
  int64_t strides[EP_MAX_RANK];
};

// The arguments of a kernel. They are a copy, since the host's ep_launch is borrowed for the call.
struct Launch {
  static constexpr uint32_t most_operands = 3;
  Operand operands[most_operands];
  uint64_t tag;  // names this launch in faults
};

// The function that a primitive runs on the device. Reports bad data to `stream`, and never traps (rule P07).
using Kernel = void(const ep_primitive_desc& desc, const Launch& launch, ep_stream& stream);

struct ep_primitive : tenon::provider::PrimitiveBase {
  ep_primitive(const ep_primitive_desc& of, Kernel* with) : desc(of), kernel(with) {}
  ep_primitive_desc desc;
  Kernel* kernel;
};

// Returns OK, or DEVICE_LOST with its sentence. Each submission calls it first (rule D02).
ep_status check_not_lost(const ep_device& device, ep_error** error);

// Fills the primitives' slots of a device's table.
void fill_primitives(ep_device_ops* ops);
