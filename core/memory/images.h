// Images: blocks that the provider makes for one layout each, in an image pool (EP_POOL_FLAG_IMAGE). A free image
// serves the next value of the same layout; it carries the tickets that still use it.
//
// Threads: not thread-safe. The allocator holds its lock around every call.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_set>

#include "core/device/block.h"
#include "core/device/layout.h"
#include "core/device/ticket_list.h"
#include "loader/loader.h"
#include "primitives/status/status.h"

namespace tenon::memory {

struct Image {
  explicit Image(const Layout& made_for) : layout(made_for) {}

  Layout layout;
  ep_memory* memory = nullptr;
  uint64_t bytes = 0;
  uint64_t touched = 0;  // the tick at which it was last taken or returned
  TicketList pending;    // free images only
};

class Images {
 public:
  Images(loader::OpenDevice* device, uint64_t limit) : device_(device), limit_(limit) {}
  // Returns all images to the provider; live images become invalid.
  ~Images();
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;

  // A live image for `layout`, taken from the free ones, or null.
  Image* take(const Layout& layout);
  // A new image. `elsewhere`: other bytes that count towards the limit. Errors: out_of_device_memory; those of the
  // provider.
  Result<Image*> take_new(const Layout& layout, uint64_t bytes, uint64_t elsewhere);
  // Frees `image`; `pending` are tickets that still use it.
  void give(Image* image, std::span<const Ticket> pending);

  // Returns free images without tickets that were unused since tick `untouched_since` to the provider.
  void shrink(uint64_t untouched_since);
  // Adds the tickets that free images still carry.
  void pending_tickets(TicketList* out) const;

  void set_tick(uint64_t tick) { tick_ = tick; }
  uint64_t live_bytes() const { return live_bytes_; }
  uint64_t free_bytes() const { return free_bytes_; }
  uint64_t reserved_bytes() const { return live_bytes_ + free_bytes_; }
  uint64_t count() const { return live_.size() + free_.size(); }

 private:
  void drop(Image* image);

  loader::OpenDevice* device_;
  uint64_t limit_;
  std::unordered_set<Image*> live_;
  std::list<Image*> free_;  // most recently freed first
  uint64_t live_bytes_ = 0;
  uint64_t free_bytes_ = 0;
  uint64_t tick_ = 1;
};

}  // namespace tenon::memory
