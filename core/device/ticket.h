// Ticket: names one instruction. Each stream numbers its instructions at submission; a ticket is (stream, number).
#pragma once

#include <cstdint>

namespace tenon {

// The high 16 bits are the stream's id (1 to 65535), the low 48 the instruction's number (from 1). 0 means no
// instruction, or one that finished long ago. Work of a synchronous device is done when its call returns, and has no
// ticket.
struct Ticket {
  uint64_t bits = 0;

  static Ticket make(uint64_t stream, uint64_t number) { return {stream << 48 | number}; }
  explicit operator bool() const { return bits != 0; }
  uint16_t stream() const { return static_cast<uint16_t>(bits >> 48); }
  uint64_t number() const { return bits & ((uint64_t{1} << 48) - 1); }
  friend bool operator==(Ticket a, Ticket b) { return a.bits == b.bits; }
};

}  // namespace tenon
