// Pipes between the processes of the kit. Signals do not interrupt a transfer.
#pragma once

#include <cstddef>

namespace tenon::conformance {

// Returns false if the other end is closed.
bool write_all(int fd, const void* data, size_t size);
// Returns false if the other end was closed before `size` bytes arrived.
bool read_all(int fd, void* data, size_t size);

}  // namespace tenon::conformance
