// Allocator: how blocks of a device's memory are taken and given back. core/memory implements it.
//
// Allocation and release happen at submission, on the calling thread. A released block carries the tickets that still
// use it; whoever gets it next must wait for those (the VM does, device-side where it can). On a synchronous device
// there are none.
//
// Threads: every function is thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/device/block.h"
#include "core/device/stats.h"
#include "core/device/ticket_list.h"
#include "primitives/status/status.h"

namespace tenon::memory {

class Allocator {
 public:
  virtual ~Allocator() = default;

  // A block of at least `bytes` > 0, 64-byte aligned at least. Tickets the new owner has to wait for are added to
  // `waits`. Errors: out_of_device_memory, with a table of who holds what, after cached blocks were given back, tickets
  // already issued were waited for, and one retry.
  virtual Result<Block> allocate(uint64_t bytes, TicketList* waits) = 0;
  // As allocate, 256-aligned: for workspaces.
  virtual Result<Block> allocate_aligned(uint64_t bytes, TicketList* waits) = 0;
  // The common case of allocate, without its costs: a small block that the calling thread has at hand and that nothing
  // has to wait for. False: ask allocate.
  virtual bool take_at_hand(uint64_t bytes, Block* out) = 0;
  // Takes a block back; `pending` are tickets that still use it.
  virtual void release(const Block& block, std::span<const Ticket> pending) = 0;
  // Gives back to the provider every segment that is free and not pending.
  virtual void trim() = 0;
  // A housekeeping tick: gives back what two ticks one second apart did not touch, above max(64 MiB, recent peak).
  virtual void tick() = 0;
  // The same if the last one was a second ago or longer. For places that wait anyway.
  virtual void tick_if_due() = 0;
  virtual Stats stats() const = 0;
};

}  // namespace tenon::memory
