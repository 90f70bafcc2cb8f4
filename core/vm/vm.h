// The virtual machine: order, memory, launch (README.md). Internal to the library.
//
// A synchronous device runs every instruction on its caller: these functions then return when it is done. An
// asynchronous device gets a slot in the ring of one of its streams; a launch thread launches it, in ticket order, when
// what it depends on allows.
//
// What depends on what is derived from the operands: a read waits for the storage's last write; a write waits for the
// last write and all reads. Within a stream that costs nothing; between streams of a device it is a device-side event
// wait; between devices the host waits. An error belongs to its ticket: the storages it wrote are poisoned, an
// instruction that reads a poisoned storage is skipped (or runs and is poisoned) with the first error, a write that
// covers the whole storage and reads none of it heals it.
//
// Threads: every function is thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/device/device_state.h"
#include "core/kernel/kernel.h"
#include "core/vm/storage.h"
#include "primitives/status/status.h"

namespace tenon::vm {

// One operand of an instruction.
struct Operand {
  Storage* storage = nullptr;  // null: a scalar operand, without memory
  uint64_t offset = 0;         // in bytes, from the start of the storage
  bool write = false;
  bool whole = false;  // writes every byte of the storage and reads none
};

// One primitive launch. Everything is borrowed for the call.
struct OpLaunch {
  Kernel* kernel = nullptr;
  std::span<const Operand> operands;  // in the descriptor's order
  const ep_shape* shapes = nullptr;   // per operand where the descriptor holds EP_ANY, else null
  const ep_scalar* scalars = nullptr;
  uint32_t scalar_count = 0;
  uint64_t workspace_bytes = 0;
  std::string_view op;  // static text: the op's name, for errors and traces
  // What an error says beside the op: "relu(f32 [4, 5])". Called only when it fails or a trace is on.
  std::string (*describe)(const void* context) = nullptr;
  const void* context = nullptr;  // valid for the call only: an asynchronous instruction keeps what it needs
  uint16_t stream = 0;            // stream of the device: 0 its compute stream
};

// Runs or submits one launch. Errors of arguments, allocation and inline runs come back here, everything later belongs
// to the ticket. Waits for tickets that an allocation handed over (`waits`) as well.
Status launch(const OpLaunch& launch, std::span<const Ticket> waits);

// Copies `bytes` between two storages, on one device or between two. On the device's copy stream where they differ.
Status copy(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits);

// Overwrites bytes of `storage` from host memory, which may be reused when this returns. Waits for earlier transfers
// where those hold too much staging memory, else for nothing.
Status upload(const Operand& dst, const void* src, uint64_t bytes, std::span<const Ticket> waits);

// Copies bytes of `storage` to host memory, after waiting for its last write and nothing else. The poison of the
// storage comes back as the error.
Status download(void* dst, const Operand& src, uint64_t bytes);

// Waits until the host (or an inline instruction) may read `storage`; with `write`, also until nothing reads it.
// An inline reader gets the poison as the error; an inline whole overwrite clears it (`whole`).
Status settle(Storage* storage, bool write, bool whole);

// Waits for everything submitted to `device`; the first error not reported yet.
Status synchronize(DeviceState* device);

// The same for all devices: of the errors not reported yet, the one of the earliest submission.
Status synchronize_all();

// Runs `function` on the host with the address of the `bytes` bytes at `operand`, in the order of instructions. Where
// the host cannot reach the memory they are copied: to the host before (with `load`), back after (if `operand` is
// written). What the function throws is the failure of the instruction; on a synchronous device, and in TENON_VM=sync,
// it comes back here. The function may not call Tenon (process::CallbackScope). It runs on a thread of the device, or,
// on a synchronous one, on the caller.
Status access(const Operand& operand, uint64_t bytes, bool load, std::function<void(void*)> function);

// What is submitted later to stream `index` of `device` waits for all that was submitted to stream `other_index` of
// `other`. Without an asynchronous stream on the left the caller waits.
Status wait_stream(DeviceState* device, uint16_t index, DeviceState* other, uint16_t other_index);
// What is submitted later to any stream of `device` waits for all that was submitted to any of them.
Status barrier(DeviceState* device);

// Runs the deleter of borrowed memory: here, or, inside the VM's own work, as soon as that has let go of its locks. On a
// thread of the VM it may not submit work or wait for it. What it throws is logged.
void run_deleter(std::function<void()> deleter);

// Tickets that may still use `storage`: what its block carries when it is released. VM's own lock.
void pending_uses(Storage* storage, TicketList* out);
// True once `ticket` is done, without waiting.
bool is_done(Ticket ticket);
// Waits for `ticket` (launching what must be launched first).
Status wait(Ticket ticket);

// Creates a further stream of an asynchronous device and returns its index for OpLaunch::stream. 0 on synchronous ones.
Result<uint16_t> create_stream(DeviceState* device);
// The stream index the calling thread's ops on `device` go to; 0 by default.
uint16_t current_stream(DeviceState* device);
void set_current_stream(DeviceState* device, uint16_t stream);

// Prepares `device` for instructions (streams, queue); called once when it opens.
Status attach(DeviceState* device);

// --- the end of a device (tenon::retire) ---

// Waits for everything submitted to any device: instructions of one may read memory of another.
Status drain_all();
// Gives staging memory that is not in use back to `device`.
void trim_staging(DeviceState* device);
// Gives the scratch of the device's streams back; it is made anew when needed.
void release_scratch(DeviceState* device);
// Destroys the device's streams and events; nothing of it is pending.
void detach(DeviceState* device);

}  // namespace tenon::vm
