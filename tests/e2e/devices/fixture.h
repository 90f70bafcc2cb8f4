// Every device this machine has, and the fakes: one test program's view of several devices at once.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/ops/ops.h"
#include "core/tensor/tensor.h"

namespace tenon::testing {

// cpu, null, the mirror (synchronous, out of the host's reach), two asynchronous fakes, two more that copy from each
// other directly, and one of each further provider that is there (Vulkan, CUDA). Opened at the first call.
const std::vector<Device>& all_devices();
Device device(const std::string& spelling);

// What the asynchronous fakes saw out of order; empty if nothing.
std::string violation();

// Waits for every device and forgets errors that nobody asked for.
void settle_all();

// `count` random bytes, none zero.
std::vector<uint8_t> random_bytes(std::mt19937_64& random, size_t count);

// Leaves blocks of about `bytes` full of 0xa5 in the free lists of `device`, so that memory that is handed out next and
// not written shows. Nothing above 1 MiB: the fakes' own memory begins like that.
void poison_free_memory(Device device, int64_t bytes);

}  // namespace tenon::testing
