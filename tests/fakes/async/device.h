// The objects of the asynchronous fake.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ep_api/ep_api.h"
#include "tests/fakes/async/control.h"
#include "tests/fakes/async/foreign.h"
#include "tests/fakes/async/shadow.h"

// Bytes with the alignment that the pools promise.
class AlignedBytes {
 public:
  static constexpr uint64_t alignment = 64;

  explicit AlignedBytes(uint64_t size)
      : size_(size),
        data_(static_cast<char*>(std::aligned_alloc(alignment, (size + alignment) / alignment * alignment))) {}
  char* data() { return data_.get(); }
  uint64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };
  uint64_t size_;
  std::unique_ptr<char, Free> data_;
};

// A block of the device, or imported memory.
struct ep_memory {
  explicit ep_memory(uint64_t size) : bytes(size), shadow(0) {}
  explicit ep_memory(tenon::fakes::Foreign imported)
      : bytes(0), shadow(0), file(std::move(imported)), foreign(file.data()), foreign_size(file.size()) {}
  ep_memory(char* address, uint64_t size) : bytes(0), shadow(0), foreign(address), foreign_size(size) {}
  char* data() { return foreign != nullptr ? foreign : bytes.data(); }

  AlignedBytes bytes;
  tenon::fakes::ShadowMemory shadow;
  bool counted = true;  // counted among the bytes of its device
  tenon::fakes::Foreign file;
  char* foreign = nullptr;  // where imported memory begins
  uint64_t foreign_size = 0;
  bool image = false;         // holds one opaque value
  std::atomic<int> lists{0};  // command lists with a fixed address in it
};

struct ep_semaphore {
  tenon::fakes::Foreign file;
  int32_t kind = EP_SEMAPHORE_BINARY;
};

// An event holds the point of its last record.
struct ep_event {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  std::mutex mutex;
  std::condition_variable fired;
  // The stream of the last record; dangling if that record is complete and the stream was destroyed.
  ep_stream* stream = nullptr;
  uint64_t recorded = 0;  // number of records; guarded by `mutex`
  uint64_t completed = 0;
  std::atomic<uint64_t> recorded_now{0};  // the same number, readable without the lock
  std::atomic<uint64_t> completed_now{0};
  tenon::fakes::Clock clock;
  bool timed = false;     // the last record was on a timed stream; guarded by `mutex`, like fired_ns
  uint64_t fired_ns = 0;  // when the device reached the point `completed`

  bool has_come() const {
    return completed_now.load(std::memory_order_acquire) >= recorded_now.load(std::memory_order_acquire);
  }
};

struct ep_primitive {
  ep_device* device = nullptr;
  ep_primitive_desc desc{};
  std::atomic<int> lists{0};  // command lists that launch it
  uint32_t packed = 0;        // 1 + index of the operand, as in ep_primitive_info
};

namespace tenon::fakes {

struct Command {
  enum Kind : uint8_t {
    launch,
    reference,
    graph,
    replay,
    pack,
    copy,
    upload,
    download,
    record,
    wait,
    await,
    signal,
    kernel
  } kind = launch;
  bool faults = false;
  bool overflows = false;
  bool soils = false;
  const ep_primitive* primitive = nullptr;
  ep_event* event = nullptr;
  ep_semaphore* semaphore = nullptr;
  uint64_t point = 0;  // point of the event, or value of a timeline semaphore
  uint64_t tag = 0;
  std::array<char*, 3> pointers{};
  char* workspace = nullptr;
  char* scratch = nullptr;
  std::array<ep_scalar, 2> scalars{};
  uint64_t bytes = 0;
  const ep_graph* run = nullptr;
  ep_command_list* list = nullptr;               // for a replay
  ep_kernel* kernel_run = nullptr;               // for a kernel, whose groups `bytes` counts
  std::shared_ptr<std::vector<char*>> operands;  // for a graph, kernel or reference; for a replay one per binding
  std::shared_ptr<std::vector<ep_scalar>> all_scalars;  // for the reference
  std::shared_ptr<std::vector<char>> early;  // the source, if it was read at submission; for a kernel its parameters
};

struct Access {
  ep_buffer buffer;
  uint64_t bytes;
  bool write;
};

// The recording of a stream (lists.cpp).
struct RecordedCommands {
  std::vector<ep_binding> bindings;
  std::vector<Command> commands;
  std::vector<Access> accesses;  // the accesses of all commands
  size_t calls = 0;              // more than `commands` if some call has failed
};

}  // namespace tenon::fakes

// An in-order stream. Only one thread of the device runs it at a time.
struct ep_stream {
  explicit ep_stream(ep_device* device);
  ~ep_stream();

  void push(tenon::fakes::Command command);
  // Submits the work that a lazy device has deferred.
  void flush();
  void drain();

  // True if a thread could continue the stream now. Guarded by ep_device::mutex, like the members below.
  bool ready() const;
  // True if its next command waits for a semaphore. Nothing wakes the device when a semaphore changes.
  bool awaits_semaphore() const;
  // Runs submitted work until none is left or a wait is not complete.
  void run();

  ep_device* device;
  int number = 0;  // number of the stream in the shadow
  bool timed = false;
  std::unique_ptr<tenon::fakes::RecordedCommands> recording;  // null: it does not record

  // Guarded by ep_device::mutex. While a thread runs the stream, `batch` and `at` belong to that thread.
  std::vector<tenon::fakes::Command> put_off;  // not flushed yet
  std::atomic<bool> any_put_off{false};
  std::vector<tenon::fakes::Command> queue;
  bool running = false;
  std::vector<tenon::fakes::Command> batch;
  size_t at = 0;

  std::mutex mutex;
  std::deque<ep_fault> faults;
  std::atomic<uint32_t> fault_count{0};
  uint64_t random = 0;

 private:
  bool next_batch();
  bool drained() const;
  void execute(const tenon::fakes::Command& command);
  void compute(const tenon::fakes::Command& command, std::vector<ep_fault>* faults) const;
  void replay(const tenon::fakes::Command& command, std::vector<ep_fault>* faults) const;
  void report(const ep_fault& fault);
  void delay();
};

// A device has as many threads as streams. A thread runs any stream that can continue, so work that moves between
// streams need not move between threads.
struct ep_device {
  ~ep_device();
  void add_thread();
  // `stream` has more work: wakes a thread unless one already looks for work. Guarded by `mutex`.
  void hand_over(const ep_stream& stream);
  // Wakes a sleeping thread after an event let a stream continue.
  void look_again();

  const ep_host* host = nullptr;
  ep_plugin* plugin = nullptr;
  uint32_t index = 0;
  std::mutex mutex;
  uint64_t allocated = 0;
  std::atomic<int32_t> busy{0};  // streams that are running an instruction

  std::condition_variable work, idle;
  std::vector<ep_stream*> streams;
  std::atomic<int32_t> sleeping{0};
  std::atomic<uint64_t> handed_over{0};  // counts submissions
  bool looking = false;                  // a thread without work waits for `handed_over` to change
  bool stopping = false;
  std::vector<std::thread> threads;

 private:
  void run_thread();
  void sleep(std::unique_lock<std::mutex>& lock);
  ep_stream* find_ready() const;
  bool awaits_semaphore() const;
};

struct ep_plugin {
  const ep_host* host = nullptr;
  bool peers = false;        // true if the devices copy from each other directly
  bool mapped = false;       // the host can address their memory
  bool pinned = false;       // they have a pool for transfers
  bool exclusive = false;    // a block holds one tensor
  uint64_t granularity = 1;  // granularity of copies, in bytes
  std::mutex mutex;
  std::set<std::pair<const ep_device*, const ep_device*>>
      opened_peers;  // the first device may read the memory of the second
  tenon::fakes::Shadow shadow;
  std::array<std::string, 8> names;
};

namespace tenon::fakes {

// Returns `status`, and sets `error` to `sentence` if the host asked for it.
ep_status fail(const ep_host* host, ep_error** error, ep_status status, const std::string& sentence);

inline bool is_lost() { return async_control().lose_device.load(std::memory_order_relaxed); }
// Reports the loss of the device. Lets its running instructions end first: after the call the device touches no memory.
ep_status lost(ep_device* device, ep_error** error);

// Takes AsyncControl::create_us, like a compiler, and regularly asks whether to stop. Returns OK or CANCELLED. `seed`
// identifies the result: equal objects have equal seeds.
ep_status compile(ep_device* device, uint64_t seed, ep_error** error);

// Counts `after` down. True for `fail_count` calls once it has reached 0.
bool due(std::atomic<int64_t>& after, std::atomic<int64_t>& failed);

inline char* address(ep_buffer buffer) { return buffer.memory->data() + buffer.offset; }

// Checks the accesses of an instruction against what its stream has waited for, before it is submitted. If the stream
// records, each replay is checked instead.
void check(ep_stream* stream, const Access* accesses, size_t count);
// If a block may hold only one tensor, checks that a written block has no other operand in it.
void check_exclusive(const ep_stream* stream, const Access* accesses, size_t count);

// Each function fills its slots of a device's table.
void fill_event(ep_device_ops* ops);
void fill_primitive(ep_device_ops* ops);
void fill_reference(ep_device_ops* ops);
void fill_graph(ep_device_ops* ops);
void fill_lists(ep_device_ops* ops);
void fill_modules(ep_device_ops* ops);

// Begins a launch or copy on `stream`. If the stream records, the call counts as failed until its command is pushed.
void begin_work(ep_stream* stream);
// Returns command number `index` of `replay` with the addresses of this replay.
Command placed(const Command& replay, size_t index);
// The number of commands of a replay; the end of a replay.
size_t list_length(const Command& replay);
void end_replay(const Command& replay);
void fill_interop(ep_device_ops* ops);

// Bits 1 << EP_HANDLE_* that the device accepts. The addresses of its own blocks are handles of type CUDA_POINTER.
constexpr uint64_t memory_handles = UINT64_C(1) << EP_HANDLE_OPAQUE_FD | UINT64_C(1) << EP_HANDLE_CUDA_POINTER;
constexpr uint64_t semaphore_handles = UINT64_C(1) << EP_HANDLE_OPAQUE_FD;

// True once a wait for `value` is complete.
bool has_come(ep_semaphore& semaphore, uint64_t value);
// Runs a signal, or a wait that is complete.
void run_semaphore(const Command& command);
void fill_layouts(ep_device_ops* ops);

// Allocates memory of the device. `counted`: it counts among the device's bytes.
ep_status allocate(ep_device* device, uint64_t size, bool counted, ep_memory** out, ep_error** error);
// Returns the number of the pool for images.
uint32_t image_pool(const ep_plugin* plugin);
// Checks that `memory` is not an image, because a transfer accesses its bytes.
void check_no_image(const ep_memory* memory);

// Each function runs a command of its kind and appends the faults.
void run_reference(const Command& command, std::vector<ep_fault>* faults);
void run_pack(const Command& command);
void run_graph(const Command& command, std::vector<ep_fault>* faults);
void run_kernel(const Command& command, std::vector<ep_fault>* faults);

// Notes that a command list that launches `kernel` was made (1) or destroyed (-1).
void count_list(ep_kernel* kernel, int change);

}  // namespace tenon::fakes
