// Stream: one in-order stream of an asynchronous device, with the ring of its instructions. Internal to core/vm.
//
// An instruction passes three steps. Each step is a counter of its stream that only grows:
//   submitted   its slot is in the ring           under Engine::submission, by the calling thread
//   launched    the provider has it               under DeviceQueue's launch right
//   retired     a mark after it was seen, its faults were taken, its poison is settled        under the launch right
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/device/block.h"
#include "core/device/ticket.h"
#include "core/vm/device_time.h"
#include "core/vm/slot.h"

namespace tenon::vm {

class DeviceQueue;
struct Stream;

// The event calls that may fail while the device still works. A stream uses them to note which failure it has logged.
enum class EventCall : uint8_t { record, query, host_wait, stream_wait, flush };

// A mark: an event of the provider that fires once its stream has done instruction `point` and all earlier ones. A
// thread that waits for one of these instructions may wait for the mark.
struct EventMark {
  ep_event* handle = nullptr;
  Stream* stream = nullptr;  // the stream that recorded it last
  uint64_t point = 0;
  uint32_t pins = 0;    // number of threads that wait for it without the launch right
  bool passed = false;  // seen; the mark returns to the pool with its last pin
};

struct Stream {
  static constexpr uint64_t kRing = 1024;

  DeviceQueue* queue = nullptr;
  ep_stream* handle = nullptr;
  uint16_t id = 0;     // among all streams of the process, from 1
  uint16_t index = 0;  // among the streams of its device
  std::unique_ptr<Slot[]> ring = std::make_unique<Slot[]>(kRing);

  // Guarded by Engine::submission. covered[t] is the highest instruction of stream t that an instruction here waits
  // for.
  std::vector<uint64_t> covered;
  memory::Block scratch;
  uint64_t scratch_number = 0;  // counts the scratch blocks so far, from 1
  uint64_t next_tag = 1;        // tag of the next launch; see Slot::first_tag

  uint64_t known_retired = 0;  // `retired` when the ring was last checked for room

  // Each is written by one thread and read by others, so each has a cache line.
  alignas(64) std::atomic<uint64_t> submitted{0};
  alignas(64) std::atomic<uint64_t> retired{0};
  alignas(64) std::atomic<uint64_t> launched{0};

  // Guarded by the launch right.
  uint64_t marked = 0;     // point of the last mark
  uint64_t completed = 0;  // point of the last event seen
  std::deque<EventMark*> events;
  uint64_t clean_scratch = 0;         // the number of the scratch block that is zero; 0: none
  uint64_t failed_launch = 0;         // the last instruction that the provider refused or that was skipped
  uint32_t complaints = 0;            // bit EventCall: that failure was logged
  std::unique_ptr<DeviceTime> times;  // set if a trace was on when the stream was made, and the device has a clock

  // For the stream of access instructions, which the host runs and the provider does not know. It has no events. The
  // host waits for its dependences and, on behalf of other streams, for its instructions.
  bool on_host = false;
  std::atomic<uint64_t> host_done{0};  // the last instruction that ended
  Status host_status;                  // its status; written by the host thread, then under the launch right

  Slot& slot(uint64_t number) { return ring[number % kRing]; }
  bool done(uint64_t number) const { return retired.load(std::memory_order_acquire) >= number; }
  Ticket ticket(uint64_t number) const { return Ticket::make(id, number); }
};

}  // namespace tenon::vm
