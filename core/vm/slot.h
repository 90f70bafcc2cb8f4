// Slot: one instruction of an asynchronous stream, from submission to retirement. Slots are stored in rings and reused.
// Filling a slot allocates nothing once the slot has held an instruction of this kind.
//
// One thread fills a slot and another launches it, so each cache line that both use moves between two processors twice
// per instruction. The fields of a plain launch come first and fill few lines; a launch does not use the others.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/background/cancellation.h"
#include "core/device/call_site.h"
#include "core/device/ticket_list.h"
#include "core/primitive/compiled_graph.h"
#include "core/primitive/primitive.h"
#include "core/vm/call_note.h"
#include "core/vm/storage.h"
#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::vm {

// The action of an instruction when it is launched.
enum class Policy : uint8_t {
  launch,     // a primitive
  graph,      // a compiled graph
  segment,    // many primitives, one after another
  replay,     // a segment that the device has recorded
  pack,       // packs a constant operand for primitives
  copy,       // within its device
  upload,     // from host memory
  download,   // to host memory
  peer_copy,  // from another device of the provider
  access,     // a function of the application, on the device's host thread
  wait,       // nothing: it only makes later instructions of its stream wait for its dependences
  semaphore,  // a wait for a semaphore of another API, or a signal of one
};

struct HostWork;
struct ImportedSemaphore;
struct Staging;

// How an instruction ended, for the one thread that waits for it.
struct Completion {
  Status status;
};

class CommandList;
class Segment;

// A launch of a compiled graph, a segment or a command list. It has any number of operands, so they are stored outside
// the slot.
struct WideWork {
  std::shared_ptr<const CompiledGraph> graph;  // a compiled graph
  std::shared_ptr<const Segment> segment;      // a segment; also set for a list
  std::shared_ptr<CommandList> list;           // for a replay
  std::vector<Cancellation> cancellations;     // for the run of a segment
  std::vector<ep_buffer> buffers;              // for a replay: the bindings that move
  std::vector<Storage*> storages;              // retained: outputs, and borrowed memory
  std::vector<bool> written;                   // indexed by storage
  std::vector<Ticket> sources;                 // the pending writes it reads
};

// A wait for a semaphore, or a signal.
struct SemaphoreWork {
  std::shared_ptr<ImportedSemaphore> semaphore;
  uint64_t value = 0;
  bool signals = false;
};

// The fields that few launches use, and all other instructions.
struct SlotExtras {
  uint64_t bytes = 0;         // for a copy, upload or download
  char* host = nullptr;       // for an upload or download: the address on the host
  ep_device* peer = nullptr;  // for a peer copy: the device that is read
  Staging* staging = nullptr;
  HostWork* work = nullptr;  // for an access, until the host thread takes it over
  Completion* completion = nullptr;
  std::unique_ptr<WideWork> wide;
  std::unique_ptr<SemaphoreWork> semaphore;
  ep_buffer workspace{};
  ep_buffer scratch{};
  uint64_t scratch_bytes = 0;   // bytes of the whole block; 0: none needed
  uint64_t scratch_number = 0;  // see Stream::scratch_number
};

struct alignas(64) Slot {
  uint64_t sequence = 0;  // position among all submissions of the process
  Policy policy = Policy::launch;
  uint8_t operand_count = 0;
  uint8_t scalar_count = 0;
  uint8_t source_count = 0;
  uint8_t storage_count = 0;
  bool has_shapes = false;
  bool has_extras = false;
  bool has_note = false;
  bool derived = false;  // `status` is the failure of a source
  // A thread waits for this instruction and should not wait for later ones: it gets its own mark.
  std::atomic<bool> awaited{false};
  uint16_t output_mask = 0;        // bit i: storages[i] is written
  Primitive* primitive = nullptr;  // for a launch or pack; retained
  const OpName* op = nullptr;
  const std::string* label = nullptr;  // as in CallSite
  Status status;                       // the failure, once it is known; ok in a free slot

  // The tag of its first launch; faults use it (ep_launch::tag). Tags count the launches of a stream, which are more
  // than its instructions.
  uint64_t first_tag = 0;
  std::array<ep_buffer, EP_MAX_OPERANDS> buffers{};
  TicketList deps;                                    // in other streams: waited for before the launch
  std::array<Storage*, EP_MAX_OPERANDS> storages{};   // retained: outputs, and borrowed memory
  std::array<Ticket, EP_MAX_OPERANDS + 1> sources{};  // the pending writes it reads
  std::array<ep_scalar, EP_MAX_SCALARS> scalars{};

  CallNote note;              // valid if `has_note`
  SlotExtras extras;          // all empty unless `has_extras`
  uint64_t submitted_ns = 0;  // while tracing
  uint64_t launched_ns = 0;
  std::vector<int64_t> shape_words;  // dims, then strides, operand by operand
  std::vector<ep_shape> shapes;

  bool wide() const { return policy == Policy::graph || policy == Policy::segment || policy == Policy::replay; }
  // The sources, storages and output_mask of any instruction, from the slot or from its WideWork.
  std::span<const Ticket> all_sources() const {
    if (wide()) [[unlikely]]
      return extras.wide->sources;
    return {sources.data(), source_count};
  }
  std::span<Storage* const> all_storages() const {
    if (wide()) [[unlikely]]
      return extras.wide->storages;
    return {storages.data(), storage_count};
  }
  bool writes(size_t storage) const {
    return wide() ? extras.wide->written[storage] : (output_mask >> storage & 1) != 0;
  }
};

}  // namespace tenon::vm
