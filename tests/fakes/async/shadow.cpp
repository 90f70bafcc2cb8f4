#include "tests/fakes/async/shadow.h"

namespace tenon::fakes {
namespace {

std::string name(int stream, uint64_t number) {
  return "instruction " + std::to_string(number) + " of stream " + std::to_string(stream);
}

}  // namespace

std::string Shadow::access(ShadowMemory& memory, int stream, uint64_t number, uint64_t offset, uint64_t bytes,
                           bool write) {
  std::lock_guard lock(mutex_);
  const Clock& clock = clocks_[static_cast<size_t>(stream)];
  const uint64_t last = (offset + bytes + 3) / 4;
  if (last > memory.cells.size()) {
    return name(stream, number) + " reaches byte " + std::to_string(offset + bytes) + " of a block of " +
           std::to_string(memory.cells.size() * 4);
  }
  for (uint64_t i = offset / 4; i < last; ++i) {
    Cell& cell = memory.cells[i];
    if (cell.writer >= 0 && clock.seen[static_cast<size_t>(cell.writer)] < cell.written) {
      return name(stream, number) + (write ? " writes" : " reads") + " byte " + std::to_string(i * 4) + ", which " +
             name(cell.writer, cell.written) + " writes, without having waited for it";
    }
    if (!write) {
      cell.read[static_cast<size_t>(stream)] = static_cast<uint32_t>(number);
      continue;
    }
    for (int reader = 0; reader < kHostClock; ++reader) {
      const auto r = static_cast<size_t>(reader);
      if (clock.seen[r] < cell.read[r]) {
        return name(stream, number) + " writes byte " + std::to_string(i * 4) + ", which " +
               name(reader, cell.read[r]) + " reads, without having waited for it";
      }
    }
    cell.writer = static_cast<int8_t>(stream);
    cell.written = number;
    cell.read = {};
  }
  return {};
}

std::string Shadow::free(const ShadowMemory& memory) {
  std::lock_guard lock(mutex_);
  const Clock& host = clocks_[kHostClock];
  for (size_t i = 0; i < memory.cells.size(); ++i) {
    const Cell& cell = memory.cells[i];
    if (cell.writer >= 0 && host.seen[static_cast<size_t>(cell.writer)] < cell.written) {
      return "a block is freed while " + name(cell.writer, cell.written) + ", which writes its byte " +
             std::to_string(i * 4) + ", has not been seen to be done";
    }
    for (int reader = 0; reader < kHostClock; ++reader) {
      const auto r = static_cast<size_t>(reader);
      if (host.seen[r] < cell.read[r]) {
        return "a block is freed while " + name(reader, cell.read[r]) + ", which reads its byte " +
               std::to_string(i * 4) + ", has not been seen to be done";
      }
    }
  }
  return {};
}

}  // namespace tenon::fakes
