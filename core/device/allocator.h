// Allocator: the interface that takes and returns blocks of a device's memory. core/memory implements it.
//
// Allocation and release happen at submission, on the calling thread. A released block carries the tickets that still
// use it; the next owner of the block must wait for these tickets (the VM does so, on the device where possible). On a
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

  // A block of at least `bytes` > 0, aligned to at least 64 bytes. Appends to `waits` the tickets that the new owner
  // must wait for. Errors: out_of_device_memory, with a table of the memory that each device holds. Before it fails, it
  // frees cached blocks, waits for issued tickets and tries once more.
  virtual Result<Block> allocate(uint64_t bytes, TicketList* waits) = 0;
  // Like allocate, but aligned to 256 bytes, for workspaces.
  virtual Result<Block> allocate_aligned(uint64_t bytes, TicketList* waits) = 0;
  // A block of `bytes` for one value of `layout`, from an image pool of the device.
  virtual Result<Block> allocate_image(const Layout& layout, uint64_t bytes, TicketList* waits) = 0;
  // The fast path of allocate: returns a small block that the calling thread caches and that carries no tickets. False:
  // there is none; call allocate.
  virtual bool take_at_hand(uint64_t bytes, Block* out) = 0;
  // Returns `block`. `pending` are the tickets that still use it.
  virtual void release(const Block& block, std::span<const Ticket> pending) = 0;
  // Returns every extent that is free and not pending to the provider.
  virtual void trim() = 0;
  // Called before a second attempt to allocate: trims, waits for issued work that still uses free blocks, makes the
  // provider free its caches, and trims again.
  virtual void recover() = 0;
  // A housekeeping tick: returns memory that was unused for two ticks, and free memory above max(64 MiB, recent peak).
  virtual void tick() = 0;
  // A tick, if the last one was at least a second ago. For callers that wait anyway.
  virtual void tick_if_due() = 0;
  virtual Stats stats() const = 0;
};

}  // namespace tenon::memory
