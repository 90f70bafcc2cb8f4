#include "core/memory/images.h"

#include <algorithm>
#include <memory>

#include "core/vm/vm.h"
#include "primitives/text/format.h"

namespace tenon::memory {

Images::~Images() {
  for (Image* image : live_) drop(image);
  for (Image* image : free_) drop(image);
}

void Images::drop(Image* image) {
  device_->ops.memory_free(device_->handle, image->memory);
  delete image;
}

Image* Images::take(const Layout& layout) {
  const auto found = std::find_if(free_.begin(), free_.end(), [&](const Image* one) { return one->layout == layout; });
  if (found == free_.end()) return nullptr;
  Image* image = *found;
  free_.erase(found);
  live_.insert(image);
  image->touched = tick_;
  free_bytes_ -= image->bytes;
  live_bytes_ += image->bytes;
  return image;
}

Result<Image*> Images::take_new(const Layout& layout, uint64_t bytes, uint64_t elsewhere) {
  if (limit_ != 0 && elsewhere + reserved_bytes() + bytes > limit_) {
    return Status(Code::out_of_device_memory, fmt::format("An image of {} bytes would exceed the limit of {} on {}.",
                                                          bytes, limit_, device_->spelling));
  }
  auto image = std::make_unique<Image>(layout);
  ep_error* error = nullptr;
  const ep_status code = device_->ops.layout_allocate(device_->handle, &layout.operand(), &image->memory, &error);
  if (code != EP_STATUS_OK) {
    return loader::take_error(code, error, fmt::format("allocating an image on {}", device_->spelling));
  }
  image->bytes = bytes;
  image->touched = tick_;
  live_bytes_ += bytes;
  live_.insert(image.get());
  return image.release();
}

void Images::give(Image* image, std::span<const Ticket> pending) {
  image->touched = tick_;
  for (Ticket ticket : pending) image->pending.add(ticket);
  live_bytes_ -= image->bytes;
  free_bytes_ += image->bytes;
  live_.erase(image);
  free_.push_front(image);
}

void Images::shrink(uint64_t untouched_since) {
  for (auto at = free_.begin(); at != free_.end();) {
    Image* image = *at;
    image->pending.remove_if([](Ticket ticket) { return vm::is_done(ticket); });
    if (!image->pending.empty() || image->touched > untouched_since) {
      ++at;
      continue;
    }
    free_bytes_ -= image->bytes;
    drop(image);
    at = free_.erase(at);
  }
}

void Images::pending_tickets(TicketList* out) const {
  for (const Image* image : free_) out->add(image->pending);
}

}  // namespace tenon::memory
