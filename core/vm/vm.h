// The virtual machine: order, memory, launch (README.md). Internal to the library.
//
// A synchronous device runs every instruction on its caller: these functions return when it is done. On an asynchronous
// device an instruction gets a slot in the ring of a stream. A launch thread launches it, in ticket order, once its
// dependences allow.
//
// Dependences follow from the operands: a read waits for the storage's last write; a write waits for the last write and
// all reads. A dependence within a stream costs nothing; between streams of a device it is an event wait on the device;
// between devices the host waits. An error belongs to its ticket. It poisons the storages that the instruction wrote.
// An instruction that reads a poisoned storage is skipped, or runs and is poisoned, with the first error. An
// instruction that overwrites the whole storage without reading it clears the poison.
//
// Threads: every function is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/call_site.h"
#include "core/device/device_state.h"
#include "core/primitive/compiled_graph.h"
#include "core/primitive/primitive.h"
#include "core/vm/call_note.h"
#include "core/vm/storage.h"
#include "primitives/status/status.h"

namespace tenon::vm {

// One operand of an instruction.
struct Operand {
  Operand() = default;
  Operand(Storage* of, uint64_t at, bool writes, bool wholly) : storage(of), offset(at), write(writes), whole(wholly) {}
  // The plain bytes of a tensor's storage; opaque values are converted first. Throws the errors of the conversion.
  Operand(SharedStorage of, uint64_t at, bool writes, bool wholly);

  static Use use_of(bool writes, bool wholly) { return !writes ? Use::read : wholly ? Use::overwrite : Use::write; }

  Storage* storage = nullptr;  // null: a scalar operand, without memory
  uint64_t offset = 0;         // in bytes, from the start of the storage
  bool write = false;
  bool whole = false;  // writes every byte of the storage and reads none
};

// One primitive launch. Everything is borrowed for the call.
struct OpLaunch {
  Primitive* primitive = nullptr;
  std::span<const Operand> operands;  // in the descriptor's order
  const ep_shape* shapes = nullptr;   // per operand where the descriptor holds EP_ANY, else null
  const ep_scalar* scalars = nullptr;
  uint32_t scalar_count = 0;
  uint64_t workspace_bytes = 0;
  const OpName* op = nullptr;  // static: the op of the record, for errors and traces
  // Adds the inputs of the record (CallNote::inputs), so that errors can name the launch: "relu(f32 [4, 5])". On a
  // synchronous device it is called only if the launch fails.
  void (*note)(const void* context, std::vector<int64_t>* inputs) = nullptr;
  const void* context = nullptr;        // valid for the call only
  uint64_t operand_inputs = kNoInputs;  // CallNote::operand_inputs
  uint16_t stream = 0;                  // stream of the device: 0 its compute stream
};

// Runs or submits one launch. It also waits for `waits`, the tickets that an allocation returned. Returns errors of
// arguments, allocation and inline runs; later errors belong to the ticket.
Status launch(const OpLaunch& launch, std::span<const Ticket> waits);

// One launch of a compiled graph. Everything is borrowed for the call.
struct GraphLaunch {
  std::shared_ptr<const CompiledGraph> graph;
  std::span<const Operand> operands;  // each input and output of the table, in the order of its values
  uint16_t stream = 0;                // as in OpLaunch
};

// Runs or submits one launch of a graph: one instruction, for any number of nodes. Errors are reported as by
// `launch`; a fault names its node.
Status launch(const GraphLaunch& launch);

// Packs `src`, a constant with the layout of the descriptor of `primitive`, into the pack_bytes bytes at `dst`. Every
// primitive with the same pack_layout can use the result. Errors are reported as by `launch`.
Status pack(Primitive* primitive, const Operand& dst, const Operand& src);

// Copies `bytes` between two storages. Between two devices a copy stream is used.
Status copy(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits);

// Overwrites bytes of `storage` from host memory, which the caller may reuse when this returns. Waits only if earlier
// transfers hold too much staging memory.
Status upload(const Operand& dst, const void* src, uint64_t bytes, std::span<const Ticket> waits);

// Copies bytes of `storage` to host memory, after waiting only for its last write. Returns the poison of the storage as
// the error.
Status download(void* dst, const Operand& src, uint64_t bytes);

// Waits until the host (or an inline instruction) may read `storage`; with `write`, also until all reads are done. An
// inline reader gets the poison as the error; with `whole`, the poison is cleared.
Status settle(Storage* storage, bool write, bool whole);
// Like settle, for the plain bytes of a tensor's storage; opaque values are converted first.
Status settle(SharedStorage storage, bool write, bool whole);

// Keeps `labels`, which CallSite::label may refer to, until all work submitted earlier is done.
void keep_until_done(std::vector<std::unique_ptr<const std::string>> labels);

// Waits for all work submitted to `device`, including its host workers (host_worker.h). Returns the first error that
// was not reported yet.
Status synchronize(DeviceState* device);

// True if all work submitted to `device` is known to be done, as always on a synchronous one.
bool is_idle(const DeviceState* device);

// Waits for all work on all devices. Returns the unreported error of the earliest submission.
Status synchronize_all();

// Runs `function` on the host with the address of the `bytes` bytes at `operand`, in the order of instructions. If the
// host cannot access the memory, the bytes are copied to the host before (with `load`) and back afterwards (if
// `operand` is written). An exception of the function is the failure of the instruction. On a synchronous device, and
// with TENON_VM=sync, it is returned. The function may not call Tenon (process::CallbackScope). It runs on the device's
// host thread; on a synchronous device it runs on the caller.
Status access(const Operand& operand, uint64_t bytes, bool load, std::function<void(void*)> function);

// Work submitted later to stream `index` of `device` waits for all work submitted to stream `other_index` of `other`.
// If `device` is synchronous, the caller waits.
Status wait_stream(DeviceState* device, uint16_t index, DeviceState* other, uint16_t other_index);
// Work submitted later to any stream of `device` waits for all work submitted to its streams before.
Status barrier(DeviceState* device);

// --- other APIs ---

// A semaphore of another API, kept while it is used. Owners: handles of the application, and instructions.
struct ImportedSemaphore {
  ImportedSemaphore(DeviceState* of, ep_semaphore* made) : device(of), handle(made) {}
  ~ImportedSemaphore();
  ImportedSemaphore(const ImportedSemaphore&) = delete;
  ImportedSemaphore& operator=(const ImportedSemaphore&) = delete;

  DeviceState* const device;
  ep_semaphore* const handle;
  std::atomic<uint64_t> signalled{0};  // the greatest value that an instruction signals
};

// The semaphore value that an acquire waits for, or that a release signals.
struct SemaphoreValue {
  std::shared_ptr<ImportedSemaphore> semaphore;  // null: none
  uint64_t value = 0;
};

// From now on, instructions that use `storages` run after the work of stream `index` of `device` so far, including the
// wait for `until`. The contents that another API wrote are valid: the storages lose their poison. They must be of
// `device`. If the wait fails, they get its error as poison. On a synchronous device the caller waits until `storages`
// are unused.
Status acquire(DeviceState* device, uint16_t index, std::span<Storage* const> storages, SemaphoreValue until);
// Work of stream `index` of `device` from now on, starting with the signal of `then`, runs after all instructions
// submitted so far that use `storages`, whether they fail or not.
Status release(DeviceState* device, uint16_t index, std::span<Storage* const> storages, SemaphoreValue then);
// Returns when all work submitted to stream `index` so far has been handed to the device. It may wait for work of other
// devices and for functions of the application.
Status flush(DeviceState* device, uint16_t index);
// A stream over a queue of the application, like create_stream. Errors: those of the provider.
Result<uint16_t> import_stream(DeviceState* device, const ep_import_desc& desc);

// Runs the deleter of borrowed memory. If the VM is doing its own work, the deleter runs as soon as the VM has released
// its locks. On a thread of the VM it may not submit work or wait for it. Its exception is logged.
void run_deleter(std::function<void()> deleter);

// The tickets that may still use `storage`, which its block carries when it is released. Takes the VM's lock.
void pending_uses(Storage* storage, TicketList* out);
// True once `ticket` is done, without waiting.
bool is_done(Ticket ticket);
// Waits for `ticket`; launches instructions that must be launched before it.
Status wait(Ticket ticket);

// Creates a new stream of an asynchronous device and returns its index for OpLaunch::stream. 0 on synchronous ones.
Result<uint16_t> create_stream(DeviceState* device, int32_t priority = 0);
// The index of the stream that gets the calling thread's ops on `device`; 0 by default.
uint16_t current_stream(DeviceState* device);
void set_current_stream(DeviceState* device, uint16_t stream);

// Prepares `device` for instructions (streams, queue); called once when it opens.
Status attach(DeviceState* device);

// --- the end of a device (tenon::retire) ---

// Waits for everything submitted to any device, since instructions of one device may read memory of another.
Status drain_all();
// Returns unused staging memory to `device`.
void trim_staging(DeviceState* device);
// Frees the scratch of the device's streams. A stream that needs scratch later makes new scratch.
void release_scratch(DeviceState* device);
// Destroys every command list of `device`, which is being closed (command_list.h). A CommandList that is still held is
// empty afterwards.
void destroy_command_lists(DeviceState* device);
// Destroys the device's streams and events; none of its work may be pending.
void detach(DeviceState* device);

}  // namespace tenon::vm
