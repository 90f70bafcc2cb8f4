// The objects of the provider. The host holds pointers to them and never looks inside.
//
// Work flows one way. The host's thread submits a command to a stream; the stream's worker thread runs the commands in
// order; a timeline counts the commands that are done. An event is a number on a timeline. Whoever waits, waits until
// the timeline has reached a number.
//
// What you replace, by the kind of your device's API:
// - It has queues of its own (CUDA, Vulkan, OpenCL, Level Zero, HIP). Then the worker thread goes. `ep_stream` keeps
// the
//   API's queue, `submit` becomes the call that enqueues, and a `Point` becomes the API's event, fence or timeline
//   semaphore.
// - Its calls block until the work is done (many NPUs, DSPs and RPC devices). Then the worker thread stays, and the
//   commands make these calls.
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
  const ep_host* host = nullptr;  // valid until `shutdown` returns; each handle has it, for entry<> and for errors
};

struct ep_device {
  const ep_host* host = nullptr;
  // Sticky: set when work failed in a way that leaves nobody knowing what the device's memory holds. From then on
  // commands are skipped, no submission is answered OK, and each wait answers DEVICE_LOST.
  std::atomic<bool> lost{false};
};

// Your memory object (a CUdeviceptr, a VkBuffer). Kernels and copies get it as a handle with an offset in bytes.
struct ep_memory {
  const ep_host* host = nullptr;
  char* bytes = nullptr;
};

inline char* address(ep_buffer buffer) { return buffer.memory->bytes + buffer.offset; }

// Counts the commands of one stream that are done. Points share it, so it outlives the stream as long as an event or a
// waiting stream needs it (rule S07).
class Timeline {
 public:
  bool reached(uint64_t number);
  void wait(uint64_t number);
  // False if `timeout_ns` (UINT64_MAX: for ever) has passed first.
  bool wait_for(uint64_t number, uint64_t timeout_ns);
  void advance();

 private:
  std::mutex mutex_;
  std::condition_variable advanced_;
  uint64_t done_ = 0;
};

// A moment in a stream: all commands up to `number` are done. Without a timeline: never recorded.
struct Point {
  std::shared_ptr<Timeline> timeline;
  uint64_t number = 0;
};

// A command owns what it needs: the host's arguments are valid only during the call that submits it (rule M01).
using Command = std::function<void()>;

struct ep_stream {
  ep_stream(ep_device* device, const ep_stream_desc& desc);
  ~ep_stream();

  // Appends `command`. Never waits for the device (rule S06). Throws std::bad_alloc; then nothing was submitted.
  void submit(Command command);
  // The point after all commands submitted so far.
  Point last();
  // For kernels, on the worker thread.
  void report(const ep_fault& fault);
  // False if there is no fault.
  bool take_fault(ep_fault* out_fault);

  const ep_host* host = nullptr;
  ep_device* device;

 private:
  // Faults that the host has not taken yet. Past this many the last one is marked, and the rest is dropped.
  static constexpr size_t most_faults = 256;

  void run();
  // False when the stream ends.
  bool next(Command* out_command);

  std::mutex mutex_;  // guards the members down to `faults_`
  std::condition_variable changed_;
  std::deque<Command> queue_;
  uint64_t submitted_ = 0;
  bool ending_ = false;
  std::deque<ep_fault> faults_;
  std::shared_ptr<Timeline> timeline_ = std::make_shared<Timeline>();
  bool copies_;
  std::thread worker_;  // starts last, when all other members are there
};

struct ep_event {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  Point point;  // of the last record
};

// One operand of a launch: where it lies, and its dims and strides in elements.
struct Operand {
  char* data;
  int32_t rank;
  int64_t dims[EP_MAX_RANK];
  int64_t strides[EP_MAX_RANK];
};

// What a kernel gets. It is a copy, since the host's ep_launch is borrowed for the call.
struct Launch {
  static constexpr uint32_t most_operands = 3;
  Operand operands[most_operands];
  uint64_t tag;  // names this launch in faults
};

// What a primitive runs on the device. Reports bad data to `stream`, and never traps (rule P07).
using Kernel = void(const ep_primitive_desc& desc, const Launch& launch, ep_stream& stream);

struct ep_primitive : tenon::provider::PrimitiveBase {
  ep_primitive(const ep_primitive_desc& of, Kernel* with) : desc(of), kernel(with) {}
  ep_primitive_desc desc;
  Kernel* kernel;
};

// Returns OK, or DEVICE_LOST with its sentence. Each submission asks first (rule D02).
ep_status check_not_lost(const ep_device& device, ep_error** error);

// Fills the primitives' slots of a device's table.
void fill_primitives(ep_device_ops* ops);
