// The virtual machine: order, memory, launch (README.md). Internal to the library.
//
// A synchronous device runs every instruction on its caller: these functions return when it is done. On an asynchronous
// device an instruction gets a slot in the ring of a stream. A launch thread launches it, in ticket order, once its
// dependences allow.
//
// Dependences follow from the operands: a read waits for the storage's last write; a write waits for the last write and
// all reads. A dependence within a stream costs nothing; between streams of a device it is a device-side event wait;
// between devices the host waits. An error belongs to its ticket. It poisons the storages that the instruction wrote.
// An instruction that reads a poisoned storage is skipped, or runs and is poisoned, with the first error. An
// instruction that writes the whole storage and reads none of it heals the storage.
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
  // The plain bytes of a tensor's storage, which are converted first if they lie opaque. Throws what that meets.
  Operand(SharedStorage of, uint64_t at, bool writes, bool wholly);

  static Use use_of(bool writes, bool wholly) { return !writes ? Use::read : wholly ? Use::overwrite : Use::write; }

  Storage* storage = nullptr;  // null: a scalar operand, without memory
  uint64_t offset = 0;         // in bytes, from the start of the storage
  bool write = false;
  bool whole = false;  // writes every byte of the storage and reads none
};

// One primitive launch. Everything is borrowed for the call.
struct OpLaunch {
  Primitive* kernel = nullptr;
  std::span<const Operand> operands;  // in the descriptor's order
  const ep_shape* shapes = nullptr;   // per operand where the descriptor holds EP_ANY, else null
  const ep_scalar* scalars = nullptr;
  uint32_t scalar_count = 0;
  uint64_t workspace_bytes = 0;
  const OpName* op = nullptr;  // static: the op of the record, for errors and traces
  // Notes the inputs of the record (CallNote::inputs), by which errors name the launch: "relu(f32 [4, 5])". On a
  // synchronous device it is called only if the launch fails.
  void (*note)(const void* context, std::vector<int64_t>* inputs) = nullptr;
  const void* context = nullptr;        // valid for the call only
  uint64_t operand_inputs = kNoInputs;  // CallNote::operand_inputs
  uint16_t stream = 0;                  // stream of the device: 0 its compute stream
};

// Runs or submits one launch. It also waits for `waits`, the tickets that an allocation handed over. Errors of
// arguments, allocation and inline runs come back here; later errors belong to the ticket.
Status launch(const OpLaunch& launch, std::span<const Ticket> waits);

// One launch of a compiled graph. Everything is borrowed for the call.
struct GraphLaunch {
  std::shared_ptr<const CompiledGraph> graph;
  std::span<const Operand> operands;  // of each input and output of the table, in the order of its values
  uint16_t stream = 0;                // as in OpLaunch
};

// Runs or submits one launch of a graph: one instruction, whatever the number of its nodes. Errors come as those of
// `launch` do; a fault names its node.
Status launch(const GraphLaunch& launch);

// Packs `src`, a constant that lies as the descriptor of `kernel` says, into the pack_bytes bytes at `dst`, for every
// kernel with this layout. Errors come as those of `launch` do.
Status pack(Primitive* kernel, const Operand& dst, const Operand& src);

// Copies `bytes` between two storages. Between two devices a copy stream is used.
Status copy(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits);

// Overwrites bytes of `storage` from host memory, which the caller may reuse when this returns. Waits for earlier
// transfers if those hold too much staging memory, else for nothing.
Status upload(const Operand& dst, const void* src, uint64_t bytes, std::span<const Ticket> waits);

// Copies bytes of `storage` to host memory, after waiting for its last write and nothing else. The poison of the
// storage comes back as the error.
Status download(void* dst, const Operand& src, uint64_t bytes);

// Waits until the host (or an inline instruction) may read `storage`; with `write`, also until nothing reads it.
// An inline reader gets the poison as the error; an inline whole overwrite clears it (`whole`).
Status settle(Storage* storage, bool write, bool whole);
// The same for the plain bytes of a tensor's storage, which are converted first if they lie opaque.
Status settle(SharedStorage storage, bool write, bool whole);

// Keeps `labels`, which CallSite::label may name, until all work submitted before is done.
void keep_until_done(std::vector<std::unique_ptr<const std::string>> labels);

// Waits for everything submitted to `device`, and to the host beside it (host_worker.h). Gives the first error that was
// not reported yet.
Status synchronize(DeviceState* device);

// Whether all that was submitted to `device` is known to be done, as it always is on a synchronous one.
bool is_idle(const DeviceState* device);

// Waits for everything submitted to any device. Of the errors not reported yet, gives that of the earliest submission.
Status synchronize_all();

// Runs `function` on the host with the address of the `bytes` bytes at `operand`, in the order of instructions. If
// the host cannot reach the memory, the bytes are copied to the host before (with `load`) and back after (if `operand`
// is written). An exception of the function is the failure of the instruction; on a synchronous device, and in
// TENON_VM=sync, it comes back here. The function may not call Tenon (process::CallbackScope). It runs on the device's
// host thread; on a synchronous device it runs on the caller.
Status access(const Operand& operand, uint64_t bytes, bool load, std::function<void(void*)> function);

// Work submitted later to stream `index` of `device` waits for all work submitted to stream `other_index` of `other`.
// If `device` is synchronous, the caller waits.
Status wait_stream(DeviceState* device, uint16_t index, DeviceState* other, uint16_t other_index);
// Work submitted later to any stream of `device` waits for all work submitted to its streams before.
Status barrier(DeviceState* device);

// --- other APIs ---

// A semaphore of another API, in use while anything keeps it. Owner: handles of the application and instructions.
struct ImportedSemaphore {
  ImportedSemaphore(DeviceState* of, ep_semaphore* made) : device(of), handle(made) {}
  ~ImportedSemaphore();
  ImportedSemaphore(const ImportedSemaphore&) = delete;
  ImportedSemaphore& operator=(const ImportedSemaphore&) = delete;

  DeviceState* const device;
  ep_semaphore* const handle;
  std::atomic<uint64_t> signalled{0};  // the greatest value that an instruction was told to signal
};

// What an acquire waits for, or a release signals, beside its storages.
struct SemaphoreValue {
  std::shared_ptr<ImportedSemaphore> semaphore;  // null: nothing
  uint64_t value = 0;
};

// From now on instructions that use `storages` come after what stream `index` of `device` does up to here, the wait for
// `until` included, and what another API wrote into them counts: they lose their poison. They are of `device`. If the
// wait fails, they get its error as poison. On a synchronous device the caller waits until nothing uses `storages`.
Status acquire(DeviceState* device, uint16_t index, std::span<Storage* const> storages, SemaphoreValue until);
// What stream `index` of `device` does from here on, the signal of `then` first, comes after all instructions submitted
// so far that use `storages`, whether they fail or not.
Status release(DeviceState* device, uint16_t index, std::span<Storage* const> storages, SemaphoreValue then);
// Returns when everything submitted to stream `index` so far has been handed to the device. It may wait for work of
// other devices and for functions of the application.
Status flush(DeviceState* device, uint16_t index);
// A stream over a queue of the application, as create_stream. Errors: those of the provider.
Result<uint16_t> import_stream(DeviceState* device, const ep_import_desc& desc);

// Runs the deleter of borrowed memory. Within the VM's own work the deleter runs as soon as the VM has left its locks.
// On a thread of the VM it may not submit work or wait for it. An exception of it is logged.
void run_deleter(std::function<void()> deleter);

// The tickets that may still use `storage`, which its block carries when it is released. Takes the VM's lock.
void pending_uses(Storage* storage, TicketList* out);
// True once `ticket` is done, without waiting.
bool is_done(Ticket ticket);
// Waits for `ticket`; launches the instructions that must be launched before it.
Status wait(Ticket ticket);

// Creates a further stream of an asynchronous device and returns its index for OpLaunch::stream. 0 on synchronous ones.
Result<uint16_t> create_stream(DeviceState* device, int32_t priority = 0);
// The index of the stream that the calling thread's ops on `device` go to; 0 by default.
uint16_t current_stream(DeviceState* device);
void set_current_stream(DeviceState* device, uint16_t stream);

// Prepares `device` for instructions (streams, queue); called once when it opens.
Status attach(DeviceState* device);

// --- the end of a device (tenon::retire) ---

// Waits for everything submitted to any device, since instructions of one device may read memory of another.
Status drain_all();
// Gives staging memory that is not in use back to `device`.
void trim_staging(DeviceState* device);
// Gives the scratch of the device's streams back. A stream that needs scratch later makes new scratch.
void release_scratch(DeviceState* device);
// Destroys every command list of `device`, which ends (command_list.h). A CommandList that someone still keeps is empty
// afterwards.
void destroy_command_lists(DeviceState* device);
// Destroys the device's streams and events; nothing of it is pending.
void detach(DeviceState* device);

}  // namespace tenon::vm
