// Segment: many prepared launches of one device that run as one instruction of one stream. Internal to the library.
//
// A segment is immutable and shared by threads. A run gives it bindings: the storages of its inputs, its outputs and
// the blocks of the memory plan (core/plan). The instruction takes tickets of these, and its constants are one
// record; a value inside a block has no storage, no ticket and no poison of its own.
//
// Errors. If a launch fails, no later one is launched; if a launch meets bad data on an asynchronous device, the later
// ones may run. Either way the run has failed: every binding that it writes is poisoned, on synchronous devices too.
// The error names the launch by its NodeName.
//
// Memory. The caller has every block before the run, workspace of launches included: workspace has an address like any
// other. So nothing is allocated between the first launch and the last.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/background/cancellation.h"
#include "core/primitive/compiled_module.h"
#include "core/primitive/node_name.h"
#include "core/primitive/primitive.h"
#include "core/vm/opaque.h"
#include "core/vm/vm.h"
#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::vm {

// Storages that every run of some segments reads and nobody writes any more. What was submitted to write them before is
// waited for. A run that is under way keeps its segment, and so the record: the storages need no tickets of reads.
class Constants {
 public:
  // The storages are plain, and of one device.
  explicit Constants(std::vector<StorageOwner> storages) : storages_(std::move(storages)) {}
  Constants(const Constants&) = delete;
  Constants& operator=(const Constants&) = delete;

  std::span<const StorageOwner> storages() const { return storages_; }
  // Of an asynchronous device, under the VM's lock: the poison of the first storage that has any.
  Status poison() const;
  // The same: calls pending(ticket) for each write that is not done yet. No storage has poison.
  template <class Pending>
  void for_pending_writes(Pending pending) {
    if (settled_.load(std::memory_order_relaxed)) return;
    bool settled = true;
    for (const StorageOwner& storage : storages_) {
      const Ticket write{storage.get()->last_write.load(std::memory_order_relaxed)};
      if (!write || is_done(write)) continue;
      settled = false;
      pending(write);
    }
    settled_.store(settled, std::memory_order_relaxed);
  }
  // Of a synchronous device: waits for what still writes the constants. Errors: poison.
  Status settle();

 private:
  std::vector<StorageOwner> storages_;
  std::atomic<bool> settled_{false};  // no write is pending, and no storage is poisoned
};

// Where an operand of a launch begins: `offset` bytes behind the begin of a binding or of a constant.
struct SegmentAddress {
  enum class Of : uint8_t { nothing, binding, constant };

  static SegmentAddress binding(uint32_t index, uint64_t offset) { return {Of::binding, index, offset}; }
  static SegmentAddress constant(uint32_t index, uint64_t offset) { return {Of::constant, index, offset}; }

  Of of = Of::nothing;  // nothing: a scalar operand, or no workspace
  uint32_t index = 0;
  uint64_t offset = 0;
};

// One launch, as it is added to a segment. Everything is borrowed for the call.
struct SegmentLaunch {
  Primitive* kernel = nullptr;               // of the segment's device
  std::span<const SegmentAddress> operands;  // in the descriptor's order
  const ep_shape* shapes = nullptr;          // per operand where the descriptor holds EP_ANY, else null
  std::span<const ep_scalar> scalars;        // by slot
  SegmentAddress workspace;                  // at a multiple of 256 bytes
  const NodeName* name = nullptr;
};

// One launch of a kernel that a device has compiled, as it is added to a segment. Everything is borrowed for the call.
struct SegmentKernelLaunch {
  std::shared_ptr<const CompiledModule> module;  // of the segment's device
  uint32_t kernel = 0;                           // index into module->kernels
  std::span<const SegmentAddress> buffers;       // as many as the entry has; `nothing` where it touches none
  std::span<const std::byte> parameters;         // as many bytes as the entry has
  std::array<uint64_t, 3> groups{1, 1, 1};       // each at least 1
  SegmentAddress workspace;                      // where the entry has some, at a multiple of 256 bytes
  uint64_t scratch_bytes = 0;                    // of an entry that has scratch
  const NodeName* name = nullptr;
};

// One launch as a run needs it: what changes from run to run is the addresses of bindings.
struct PackedAddress {
  uint32_t constant = 0;  // 0: of a binding; 1: of a constant, whose last one is no memory
  uint32_t index = 0;
  uint64_t offset = 0;
};
struct PackedKernel {
  std::shared_ptr<const CompiledModule> module;
  const CompiledKernel* kernel = nullptr;
  std::vector<std::byte> parameters;
  std::array<uint64_t, 3> groups{};
};
struct PackedLaunch {
  Primitive* kernel = nullptr;             // a primitive, or null:
  const PackedKernel* compiled = nullptr;  // a kernel
  const ep_shape* shapes = nullptr;
  const ep_scalar* scalars = nullptr;
  const PackedAddress* operands = nullptr;  // operand_count of them, then the workspace
  uint16_t operand_count = 0;
  uint16_t scalar_count = 0;
  bool wants_scratch = false;
};

class Segment : public std::enable_shared_from_this<Segment> {
 public:
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  DeviceState* device() const { return device_; }
  uint32_t bindings() const { return bindings_; }
  std::span<const PackedLaunch> launches() const { return launches_; }
  const NodeName& name(size_t launch) const { return names_[launch]; }
  Constants* constants() const { return constants_.get(); }
  const ep_buffer* constant_addresses() const { return constant_addresses_.data(); }
  uint64_t scratch_bytes() const { return scratch_bytes_; }  // the most that a launch wants (ep_launch::scratch)

 private:
  friend class SegmentBuilder;
  Segment() = default;

  DeviceState* device_ = nullptr;
  uint32_t bindings_ = 0;
  uint64_t scratch_bytes_ = 0;
  std::vector<PackedLaunch> launches_;
  std::deque<PackedKernel> compiled_;  // whose elements stay where they are
  std::vector<PackedAddress> addresses_;
  std::vector<ep_scalar> scalars_;
  std::map<std::vector<int64_t>, std::vector<ep_shape>> shapes_;  // by their words: equal shapes stand here once
  std::vector<NodeName> names_;
  std::shared_ptr<Constants> constants_;
  std::vector<ep_buffer> constant_addresses_;  // one more than constants: no memory
};

// Makes a Segment, launch by launch, in the order in which they run.
class SegmentBuilder {
 public:
  // Runs of the segment will have so many bindings. `constants` may be null.
  SegmentBuilder(DeviceState* device, uint32_t bindings, std::shared_ptr<Constants> constants);
  // Errors: invalid_argument for an address that no run has, and for a kernel of another device.
  Status add(const SegmentLaunch& launch);
  // Errors: as above; invalid_argument too for what the entry does not take.
  Status add(const SegmentKernelLaunch& launch);
  // The builder is then empty.
  std::shared_ptr<const Segment> finish();

 private:
  Status check(const NodeName& name, const SegmentAddress& address) const;
  Status check_kernel(const SegmentKernelLaunch& launch) const;
  Status check_device(const NodeName& name, const DeviceState* device) const;
  const ep_shape* keep_shapes(const SegmentLaunch& launch);
  void pack(const SegmentAddress& address);

  struct Position {
    size_t operands, scalars;
  };
  std::shared_ptr<Segment> segment_;
  std::vector<Position> positions_;  // by launch: pointers into vectors that still grow
};

// One run. Everything is borrowed for the call.
struct SegmentRun {
  const Segment* segment = nullptr;  // owned by a shared_ptr
  // Inputs (read), outputs and blocks (written; `whole` where the run reads nothing that it has not written). An
  // operand's offset is added to those of the addresses.
  std::span<const Operand> bindings;
  uint16_t stream = 0;  // as in OpLaunch
};

// Runs or submits one run. On a synchronous device it is the loop over the launches, on the caller. Errors come as
// those of `launch` do. A run whose CancellationScope is cancelled ends before its next launch with Code::cancelled.
Status run(const SegmentRun& run);

// How launch_all ended.
struct SegmentEnd {
  ep_status code = EP_STATUS_OK;
  bool cancelled = false;
  size_t launched = 0;  // launches that succeeded; the next one failed, if one did
  ep_error* error = nullptr;
  ep_fault fault{};

  bool ok() const { return code == EP_STATUS_OK && !cancelled; }
};

// What launch_all needs beside the segment.
struct SegmentCall {
  ep_stream* stream = nullptr;
  const ep_buffer* bindings = nullptr;  // addresses
  ep_buffer scratch{};                  // zero, of scratch_bytes at least
  uint64_t first_tag = 0;               // launch i gets the tag first_tag + i
  std::span<const Cancellation> cancellations;
};

// Launches everything in order, until something fails: for a run on its caller, for one on the launch thread, and for
// whoever records the launches on a stream.
SegmentEnd launch_all(const Segment& segment, const SegmentCall& call);
// Why `end`, which is not ok, has failed. Releases its error.
Status segment_error(const Segment& segment, const SegmentEnd& end);

}  // namespace tenon::vm
