// The objects of the mirror. A stream is a queue of functions, which run in order when somebody waits.
#pragma once

#include <fmt/core.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/import.h"
#include "sdk/provider/negotiate.h"
#include "tests/fakes/async/foreign.h"
#include "tests/fakes/mirror/precision.h"

namespace tenon::mirror {

// The settings: optional abilities, and the one rule to break.
struct Character {
  std::string mode;    // ",async,mapped,any,packs,bakes,peers,graphs,layouts,modules,"
  std::string broken;  // a name of violations.def; empty: none
  Off off;             // how far results are moved from the reference

  bool is(std::string_view word) const { return mode.find(fmt::format(",{},", word)) != std::string::npos; }
  bool breaks(std::string_view name) const { return broken == name; }
};

struct Queue {
  std::mutex* mutex;  // the mutex of the device
  std::deque<std::function<void()>> pending;
  uint64_t submitted = 0, completed = 0;
  std::deque<ep_fault> faults;
  bool stream_gone = false;

  // The caller holds the mutex.
  void run_to(uint64_t point) {
    while (completed < point && !pending.empty()) {
      const auto work = std::move(pending.front());
      pending.pop_front();
      ++completed;
      work();
    }
    if (pending.empty()) completed = submitted;
  }
};

// Where a range of a recording's memory lies in one replay.
class Places {
 public:
  struct Moved {
    const char* begin;  // the address of the memory when it was recorded
    uint64_t size;
    char* now;
  };
  std::vector<Moved> moved = {};

  char* operator()(char* address) const {
    for (const Moved& one : moved) {
      if (address >= one.begin && address < one.begin + one.size) return one.now + (address - one.begin);
    }
    return address;
  }
};

// The recording of a stream: functions that run one call at the present address of its memory, and add its faults.
struct RecordedCommands {
  using Call = std::function<void(const Places& places, std::vector<ep_fault>* faults)>;
  std::vector<ep_binding> bindings = {};
  std::vector<Call> calls = {};
};

}  // namespace tenon::mirror

struct ep_plugin {
  const ep_host* host;
  tenon::mirror::Character character = {};
  std::thread thread = {};
  int described = 0;
};

struct ep_device {
  const ep_host* host;
  tenon::mirror::Character character = {};
  std::mutex mutex = {};
  std::vector<std::weak_ptr<tenon::mirror::Queue>> queues = {};
  std::thread::id opener = {};
  std::vector<void*> staged = {};  // for the violation shares_staging
  int asked = 0;
  std::minstd_rand random = {};  // for the violation out_of_order
  bool cancelled_once = false;   // for the violation cancel_stays

  bool is(std::string_view word) const { return character.is(word); }
  bool breaks(std::string_view name) const { return character.breaks(name); }
};

struct ep_memory {
  const ep_host* host;
  char* address = nullptr;
  uint64_t size = 0;
  bool imported = false;
  tenon::fakes::Foreign file = {};  // the file of imported memory
  std::vector<char> copy = {};      // for the violation imports_copy
};

struct ep_stream {
  const ep_host* host;
  ep_device* device = nullptr;
  std::shared_ptr<tenon::mirror::Queue> queue = {};
  bool timed = false;
  std::unique_ptr<tenon::mirror::RecordedCommands> recording = {};  // null: the stream does not record

  // Runs `work` in its turn, or at once on a synchronous device.
  void submit(std::function<void()> work) {
    if (!device->is("async")) return work();
    const std::lock_guard lock(device->mutex);
    const bool overtakes = device->breaks("out_of_order") && !queue->pending.empty() && device->random() % 2 == 0;
    queue->pending.insert(queue->pending.end() - (overtakes ? 1 : 0), std::move(work));
    ++queue->submitted;
  }
  void finish() {
    const std::lock_guard lock(device->mutex);
    queue->run_to(queue->submitted);
  }
};

struct ep_event {
  const ep_host* host;
  ep_device* device = nullptr;
  std::shared_ptr<tenon::mirror::Queue> queue = {};
  uint64_t point = 0;
  std::shared_ptr<uint64_t> time = {};  // when the queue reached `point`, in ns; null: the stream is not timed
};

struct ep_primitive {
  const ep_host* host;
  ep_device* device = nullptr;
  ep_primitive_desc desc = {};
  const ep_primitive_desc* borrowed = nullptr;  // for the violation keeps_desc
  uint32_t packed = 0;                          // 1 + index of the operand, as in ep_primitive_info
  std::shared_ptr<void> arguments = {};         // for the violation unlocked_arguments
};

namespace tenon::mirror {

inline char* address_of(ep_buffer buffer) {
  return buffer.memory == nullptr ? nullptr : buffer.memory->address + buffer.offset;
}

// Returns CANCELLED if the host wants the call to stop, otherwise OK.
ep_status stop_if_asked(ep_device* device, ep_error** error);

void fill_memory(ep_device_ops* ops);
void fill_stream(ep_device_ops* ops);
void fill_primitive(ep_device_ops* ops);
void fill_graph(ep_device_ops* ops);
void fill_lists(ep_device_ops* ops);
void fill_modules(ep_device_ops* ops);

}  // namespace tenon::mirror
