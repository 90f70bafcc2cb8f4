// Segment: many prepared launches of one device that run as one instruction of one stream. Internal to the library.
//
// A segment is immutable, and threads share it. A run gives it bindings: the storages of its inputs, its outputs and
// the blocks of the memory plan (core/plan). The instruction uses the tickets of the bindings. All constants together
// are one object (Constants). A value inside a block has no storage, ticket or poison of its own.
//
// Errors. If a launch fails, no later one is launched; if a launch meets bad data on an asynchronous device, later ones
// may run. Either way the run has failed: every binding that it writes is poisoned, on synchronous devices too. The
// error names the launch by its NodeName.
//
// Memory. The caller allocates every block before the run, including the workspace of launches. So nothing is allocated
// between the first launch and the last.
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

// Storages that the runs of some segments read and that are not written any more. Runs wait for writes that were
// submitted earlier. A run keeps its segment alive, and so the constants: the storages need no tickets of reads.
class Constants {
 public:
  // The storages must be plain, and of one device.
  explicit Constants(std::vector<StorageOwner> storages) : storages_(std::move(storages)) {}
  Constants(const Constants&) = delete;
  Constants& operator=(const Constants&) = delete;

  std::span<const StorageOwner> storages() const { return storages_; }
  // On an asynchronous device, under the VM's lock: the poison of the first poisoned storage.
  Status poison() const;
  // Under the same lock: calls pending(ticket) for each write that is not done yet. No storage may be poisoned.
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
  // On a synchronous device: waits for pending writes of the constants. Errors: poison.
  Status settle();

 private:
  std::vector<StorageOwner> storages_;
  std::atomic<bool> settled_{false};  // no write is pending, and no storage is poisoned
};

// The address of an operand of a launch: `offset` bytes after the beginning of a binding or a constant.
struct SegmentAddress {
  enum class Of : uint8_t { nothing, binding, constant };

  static SegmentAddress binding(uint32_t index, uint64_t offset) { return {Of::binding, index, offset}; }
  static SegmentAddress constant(uint32_t index, uint64_t offset) { return {Of::constant, index, offset}; }

  Of of = Of::nothing;  // nothing: a scalar operand, or no workspace
  uint32_t index = 0;
  uint64_t offset = 0;
};

// One launch to add to a segment. Everything is borrowed for the call.
struct SegmentLaunch {
  Primitive* primitive = nullptr;            // a primitive of the segment's device
  std::span<const SegmentAddress> operands;  // in the descriptor's order
  const ep_shape* shapes = nullptr;          // per operand where the descriptor holds EP_ANY, else null
  std::span<const ep_scalar> scalars;        // indexed by slot
  SegmentAddress workspace;                  // a multiple of 256 bytes
  const NodeName* name = nullptr;
};

// One launch of a compiled kernel to add to a segment. Everything is borrowed for the call.
struct SegmentKernelLaunch {
  std::shared_ptr<const CompiledModule> module;  // a module of the segment's device
  uint32_t kernel = 0;                           // index into module->kernels
  std::span<const SegmentAddress> buffers;       // as many as the entry has; `nothing` for unused ones
  std::span<const std::byte> parameters;         // as many bytes as the entry has
  std::array<uint64_t, 3> groups{1, 1, 1};       // each at least 1
  SegmentAddress workspace;                      // if the entry needs one; a multiple of 256 bytes
  uint64_t scratch_bytes = 0;                    // for an entry that uses scratch
  const NodeName* name = nullptr;
};

// One launch in the form that a run needs. Only the addresses of bindings change between runs.
struct PackedAddress {
  uint32_t constant = 0;  // 0: relative to a binding; else a constant; the last constant is null memory
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
  Primitive* primitive = nullptr;          // a primitive, or null for
  const PackedKernel* compiled = nullptr;  // a compiled kernel
  const ep_shape* shapes = nullptr;
  const ep_scalar* scalars = nullptr;
  const PackedAddress* operands = nullptr;  // operand_count addresses, then the workspace
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
  uint64_t scratch_bytes() const { return scratch_bytes_; }  // the most that a launch needs (ep_launch::scratch)

 private:
  friend class SegmentBuilder;
  Segment() = default;

  DeviceState* device_ = nullptr;
  uint32_t bindings_ = 0;
  uint64_t scratch_bytes_ = 0;
  std::vector<PackedLaunch> launches_;
  std::deque<PackedKernel> compiled_;  // a deque, so that elements do not move
  std::vector<PackedAddress> addresses_;
  std::vector<ep_scalar> scalars_;
  std::map<std::vector<int64_t>, std::vector<ep_shape>>
      shapes_;  // by their words, so that equal shapes are stored once
  std::vector<NodeName> names_;
  std::shared_ptr<Constants> constants_;
  std::vector<ep_buffer> constant_addresses_;  // the constants, then an entry for null memory
};

// Makes a Segment, launch by launch, in the order in which they run.
class SegmentBuilder {
 public:
  // Runs of the segment must have `bindings` bindings. `constants` may be null.
  SegmentBuilder(DeviceState* device, uint32_t bindings, std::shared_ptr<Constants> constants);
  // Errors: invalid_argument for an address outside the bindings and constants, or a primitive of another device.
  Status add(const SegmentLaunch& launch);
  // Errors: as above, and invalid_argument for arguments that the entry does not take.
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
  std::vector<Position> positions_;  // by launch: positions, since the vectors still grow
};

// One run. Everything is borrowed for the call.
struct SegmentRun {
  const Segment* segment = nullptr;  // owned by a shared_ptr
  // Inputs (read), outputs and blocks (written; `whole` if the run reads nothing that it has not written). An operand's
  // offset is added to the offsets of the addresses.
  std::span<const Operand> bindings;
  uint16_t stream = 0;  // as in OpLaunch
};

// Runs or submits one run. On a synchronous device it launches everything on the caller's thread. Errors are reported
// as by `launch`. If the run's CancellationScope is cancelled, it ends before its next launch with Code::cancelled.
Status run(const SegmentRun& run);

// The result of launch_all.
struct SegmentEnd {
  ep_status code = EP_STATUS_OK;
  bool cancelled = false;
  size_t launched = 0;  // number of launches that succeeded; the next one failed, if any
  ep_error* error = nullptr;
  ep_fault fault{};

  bool ok() const { return code == EP_STATUS_OK && !cancelled; }
};

// The arguments of launch_all besides the segment.
struct SegmentCall {
  ep_stream* stream = nullptr;
  const ep_buffer* bindings = nullptr;  // addresses
  ep_buffer scratch{};                  // zeroed, at least scratch_bytes
  uint64_t first_tag = 0;               // launch i gets the tag first_tag + i
  std::span<const Cancellation> cancellations;
};

// Launches everything in order until a launch fails. Used for runs on the caller, runs on the launch thread, and
// recording the launches on a stream.
SegmentEnd launch_all(const Segment& segment, const SegmentCall& call);
// The error of `end`, which is not ok. Releases the provider's error.
Status segment_error(const Segment& segment, const SegmentEnd& end);

}  // namespace tenon::vm
