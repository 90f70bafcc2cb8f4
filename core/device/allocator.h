// Allocator: how blocks of a device's memory are taken and given back. core/memory implements it.
//
// Allocation and release happen at submission, on the calling thread. A released block carries the tickets that still
// use it; the next owner of the block must wait for these tickets (the VM does, device-side where it can). On a
// synchronous device no block carries tickets.
//
// Threads: every function is thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/device/block.h"
#include "core/device/layout.h"
#include "core/device/stats.h"
#include "core/device/ticket_list.h"
#include "primitives/status/status.h"

namespace tenon::memory {

class Allocator {
 public:
  virtual ~Allocator() = default;

  // A block of at least `bytes` > 0, 64-byte aligned at least. Appends to `waits` the tickets that the new
  // owner has to wait for. Errors: out_of_device_memory, with a table of who holds how much. Before it fails, it gives
  // back cached blocks, waits for tickets already issued and tries once more.
  virtual Result<Block> allocate(uint64_t bytes, TicketList* waits) = 0;
  // As allocate, but 256-aligned, for workspaces.
  virtual Result<Block> allocate_aligned(uint64_t bytes, TicketList* waits) = 0;
  // A block of `bytes` that the device makes for one value of `layout` in an image pool.
  virtual Result<Block> allocate_image(const Layout& layout, uint64_t bytes, TicketList* waits) = 0;
  // The common case of allocate, without its costs: gives a small block that the calling thread keeps and that carries
  // no tickets. False: the thread has none; call allocate.
  virtual bool take_at_hand(uint64_t bytes, Block* out) = 0;
  // Takes `block` back. `pending` are the tickets that still use it.
  virtual void release(const Block& block, std::span<const Ticket> pending) = 0;
  // Gives back to the provider every segment that is free and not pending.
  virtual void trim() = 0;
  // Before a second attempt to make something: trims, waits for the issued work that still uses free blocks, has the
  // provider give back what it caches, and trims again.
  virtual void recover() = 0;
  // A housekeeping tick: gives back memory that nobody touched for two ticks, and free memory above max(64 MiB, recent
  // peak).
  virtual void tick() = 0;
  // A tick, if the last tick was a second ago or longer. For callers that wait anyway.
  virtual void tick_if_due() = 0;
  virtual Stats stats() const = 0;
};

}  // namespace tenon::memory
