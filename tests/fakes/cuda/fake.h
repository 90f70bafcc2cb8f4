// What the files of the fake driver offer each other.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>

#include "tests/fakes/cuda/control.h"

namespace tenon::fakes::cuda {

Control& control();

// Blocks of device and pinned memory. What is out of every block is a violation.
CUresult allocate_block(uint64_t size, bool pinned, CUdeviceptr* out);
CUresult free_block(CUdeviceptr address, bool pinned);
bool is_pinned_block(CUdeviceptr address);
// Notes a violation unless [address, address + size) lies in one block.
void check_range(const char* who, CUdeviceptr address, uint64_t size);
uint64_t free_memory();

// A kernel by name, and running it.
struct Kernel;
const Kernel* find_kernel(const char* name);
const char* name_of(const Kernel* kernel);
size_t argument_size(const Kernel* kernel);
void run_kernel(const Kernel* kernel, uint64_t grid, uint32_t block, const void* arguments);

}  // namespace tenon::fakes::cuda
