// Pipes between the processes of the kit: whole values, whatever a signal interrupts.
#pragma once

#include <cstddef>

namespace tenon::conformance {

// False if the other end is gone.
bool write_all(int fd, const void* data, size_t size);
// False if the other end was closed before `size` bytes came.
bool read_all(int fd, void* data, size_t size);

}  // namespace tenon::conformance
