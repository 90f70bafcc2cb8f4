// TicketList: a list of tickets, at most one per stream. Up to three need no heap memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "core/device/ticket.h"

namespace tenon {

class TicketList {
 public:
  TicketList() = default;
  TicketList(const TicketList&) = delete;
  TicketList& operator=(const TicketList&) = delete;
  ~TicketList() {
    if (more_ != nullptr) delete[] more_;
  }

  bool empty() const { return size_ == 0; }
  uint32_t size() const { return size_; }
  const Ticket* begin() const { return more_ != nullptr ? more_ : few_; }
  const Ticket* end() const { return begin() + size_; }
  operator std::span<const Ticket>() const { return {begin(), size_}; }

  // Removes all tickets but keeps the memory.
  void clear() { size_ = 0; }

  // Adds `ticket`. If the list has a ticket of the same stream, it keeps the later one.
  void add(Ticket ticket) {
    Ticket* all = data();
    for (uint32_t i = 0; i < size_; ++i) {
      if (all[i].stream() != ticket.stream()) continue;
      if (all[i].bits < ticket.bits) all[i] = ticket;
      return;
    }
    if (size_ == capacity_) all = grow();
    all[size_++] = ticket;
  }

  void add(std::span<const Ticket> tickets) {
    for (Ticket ticket : tickets) add(ticket);
  }

  // Removes the tickets for which gone(ticket) is true.
  template <class Gone>
  void remove_if(Gone gone) {
    Ticket* all = data();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < size_; ++i) {
      if (!gone(all[i])) all[kept++] = all[i];
    }
    size_ = kept;
  }

 private:
  static constexpr uint32_t kFew = 3;

  Ticket* data() { return more_ != nullptr ? more_ : few_; }

  Ticket* grow() {
    auto* larger = new Ticket[capacity_ * 2];
    std::memcpy(larger, data(), size_ * sizeof(Ticket));
    delete[] more_;
    more_ = larger;
    capacity_ *= 2;
    return more_;
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = kFew;
  Ticket few_[kFew];
  Ticket* more_ = nullptr;
};

}  // namespace tenon
