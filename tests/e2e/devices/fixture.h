// The devices of this machine and the fakes, for tests of several devices at once.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/ops/ops.h"
#include "core/tensor/tensor.h"

namespace tenon::testing {

// cpu, null, the mirror (synchronous, not addressable by the host), two asynchronous fakes, two more that copy from
// each other directly, and one device of each other provider (Vulkan, CUDA) that works on this machine. Opened at the
// first call.
const std::vector<Device>& all_devices();
Device device(const std::string& spelling);

// The first access out of order that the asynchronous fakes saw; empty if there was none.
std::string violation();

// Waits for every device and drops errors that nobody has read.
void settle_all();

// `count` random bytes, none zero.
std::vector<uint8_t> random_bytes(std::mt19937_64& random, size_t count);

// Leaves blocks of about `bytes` in the free lists of `device`, filled with 0xa5, so that a later block that nobody
// writes is recognisable. At most 1 MiB: the fakes' own memory initially holds the same byte.
void poison_free_memory(Device device, int64_t bytes);

}  // namespace tenon::testing
