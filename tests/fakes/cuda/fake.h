// What the files of the fake driver offer each other.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>

#include "tests/fakes/cuda/control.h"

namespace tenon::fakes::cuda {

Control& control();

// What every call of a driver that works answers first.
CUresult enter(bool needs_context);
// The device of the calling thread's current context, which there is.
CUdevice current_device();
// CUDA_ERROR_INVALID_HANDLE, and a violation, unless what is used belongs to the current context.
CUresult belongs_here(CUdevice device);

// Whose memory a block is.
struct Owner {
  CUdevice device = 0;
  CUmemoryPool pool = nullptr;  // NULL: of none
  bool pinned = false;          // of the host
};

// Blocks of device and pinned memory. What is out of every block is a violation.
CUresult allocate_block(uint64_t size, const Owner& owner, CUdeviceptr* out);
CUresult free_block(CUdeviceptr address, bool pinned);
bool is_pinned_block(CUdeviceptr address);
// The owner of the block that holds `address`; a violation where there is none.
Owner owner_of(CUdeviceptr address);
// Notes a violation unless [address, address + size) lies in one block that `device` reaches.
void check_range(const char* who, CUdeviceptr address, uint64_t size, CUdevice device);
uint64_t free_memory();

// Copies when the stream comes to it.
CUresult enqueue_copy(CUstream stream, uint64_t dst, uint64_t src, size_t size);

// Whether `device` has been given access to the memory of `owner`.
bool reaches(CUdevice device, const Owner& owner);
// The last user of a device's primary context has gone: accesses from and to it end.
void forget_peers(CUdevice device);

// A kernel by name, and running it.
struct Kernel;
const Kernel* find_kernel(const char* name);
const char* name_of(const Kernel* kernel);
size_t argument_size(const Kernel* kernel);
void run_kernel(const Kernel* kernel, uint64_t grid, uint32_t block, const void* arguments);

}  // namespace tenon::fakes::cuda

struct CUctx_st {
  CUdevice device;
  int users;
};

#define FAKE_API extern "C" __attribute__((visibility("default")))
#define FAKE_ENTER(needs_context) \
  if (const CUresult entered = tenon::fakes::cuda::enter(needs_context); entered != CUDA_SUCCESS) return entered
// The object is used where its device's context is current.
#define FAKE_HERE(object) \
  if (const CUresult here = tenon::fakes::cuda::belongs_here((object)->device); here != CUDA_SUCCESS) return here
