// The functions that the files of the fake driver share.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <optional>
#include <string>

#include "tests/fakes/cuda/control.h"

namespace tenon::fakes::cuda {

Control& control();

// The checks at the beginning of every call.
CUresult enter(bool needs_context);
// Returns the device of the calling thread's current context, which must exist.
CUdevice current_device();
// CUDA_SUCCESS if `device` belongs to the current context. Otherwise CUDA_ERROR_INVALID_HANDLE, and a violation is
// noted.
CUresult belongs_here(CUdevice device);

// The owner of a block of memory.
struct Owner {
  CUdevice device = 0;
  CUmemoryPool pool = nullptr;  // NULL: no pool
  bool pinned = false;          // host memory
};

// Blocks of device memory and pinned memory. An address outside every block is a violation.
CUresult allocate_block(uint64_t size, const Owner& owner, CUdeviceptr* out);
CUresult free_block(CUdeviceptr address, bool pinned);
bool is_pinned_block(CUdeviceptr address);
// Registers memory of another API as a block; free_block then only forgets it.
void map_block(CUdeviceptr address, uint64_t size, const Owner& owner);
// Returns the block that contains `address`, if there is one.
struct Range {
  CUdeviceptr start;
  uint64_t size;
  Owner owner;
};
std::optional<Range> range_of(CUdeviceptr address);
// Returns the owner of the block that contains `address`. It is a violation if no block does.
Owner owner_of(CUdeviceptr address);
// Notes a violation unless one block that `device` reaches contains [address, address + size).
void check_range(const char* who, CUdeviceptr address, uint64_t size, CUdevice device);
uint64_t free_memory();

// Copies when the stream reaches this call.
CUresult enqueue_copy(CUstream stream, uint64_t dst, uint64_t src, size_t size);

// True if `device` has access to the memory of `owner`.
bool reaches(CUdevice device, const Owner& owner);
// Called when the last user of a device's primary context is gone. Ends the device's access to others and theirs to it.
void forget_peers(CUdevice device);

// Finds a kernel by name and runs it.
struct Kernel;
const Kernel* find_kernel(const char* name);
const char* name_of(const Kernel* kernel);
size_t argument_size(const Kernel* kernel);
// Each block has `shared` bytes of shared memory, which begin as NaN.
void run_kernel(const Kernel* kernel, uint64_t grid, uint32_t block, uint32_t shared, const void* arguments);

// A kernel from a text that the fake NVRTC compiled (nvrtc.cpp): a function of a shared object.
struct TextKernel {
  std::string name;
  uint32_t (*count)();                // number of parameters
  uint32_t (*size)(uint32_t);         // size of parameter i
  void (*call)(void* const* values);  // runs the thread that `place` has chosen
  void (*place)(const uint32_t* thread_block_and_dims, void (*wait)());
};
struct Dims {
  uint32_t grid[3], block[3];
};
// Runs the kernel in its geometry. The threads of a block switch at each barrier.
void run_text_kernel(const TextKernel& kernel, const Dims& dims, void* const* values);

}  // namespace tenon::fakes::cuda

struct CUctx_st {
  CUdevice device;
  int users;
};

#define FAKE_API extern "C" __attribute__((visibility("default")))
#define FAKE_ENTER(needs_context) \
  if (const CUresult entered = tenon::fakes::cuda::enter(needs_context); entered != CUDA_SUCCESS) return entered
// Checks that the object is used while its device's context is current.
#define FAKE_HERE(object) \
  if (const CUresult here = tenon::fakes::cuda::belongs_here((object)->device); here != CUDA_SUCCESS) return here
