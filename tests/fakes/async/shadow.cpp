#include <fmt/core.h>

#include "tests/fakes/async/shadow.h"

namespace tenon::fakes {
namespace {

std::string name(int stream, uint64_t number) { return fmt::format("instruction {} of stream {}", number, stream); }

}  // namespace

std::string Shadow::access(ShadowMemory& memory, int stream, uint64_t number, uint64_t offset, uint64_t bytes,
                           bool write) {
  std::lock_guard lock(mutex_);
  const Clock& clock = clocks_[static_cast<size_t>(stream)];
  const uint64_t last = (offset + bytes + 3) / 4;
  if (last > memory.cells.size()) {
    return fmt::format("{} reaches byte {} of a block of {}", name(stream, number), offset + bytes,
                       memory.cells.size() * 4);
  }
  for (uint64_t i = offset / 4; i < last; ++i) {
    Cell& cell = memory.cells[i];
    if (cell.writer >= 0 && clock.seen[static_cast<size_t>(cell.writer)] < cell.written) {
      return fmt::format("{}{} byte {}, which {} writes, without having waited for it", name(stream, number),
                         write ? " writes" : " reads", i * 4, name(cell.writer, cell.written));
    }
    if (!write) {
      cell.read[static_cast<size_t>(stream)] = static_cast<uint32_t>(number);
      continue;
    }
    for (int reader = 0; reader < kHostClock; ++reader) {
      const auto r = static_cast<size_t>(reader);
      if (clock.seen[r] < cell.read[r]) {
        return fmt::format("{} writes byte {}, which {} reads, without having waited for it", name(stream, number),
                           i * 4, name(reader, cell.read[r]));
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
      return fmt::format("a block is freed while {}, which writes its byte {}, is not known to be done",
                         name(cell.writer, cell.written), i * 4);
    }
    for (int reader = 0; reader < kHostClock; ++reader) {
      const auto r = static_cast<size_t>(reader);
      if (host.seen[r] < cell.read[r]) {
        return fmt::format("a block is freed while {}, which reads its byte {}, is not known to be done",
                           name(reader, cell.read[r]), i * 4);
      }
    }
  }
  return {};
}

}  // namespace tenon::fakes
