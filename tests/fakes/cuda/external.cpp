// Memory and semaphores of other APIs. A memory file (tests/fakes/async/foreign.h) plays both. As in the driver, an
// import that succeeds owns the file descriptor.
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/fakes/async/foreign.h"
#include "tests/fakes/cuda/fake.h"
#include "tests/fakes/cuda/stream.h"

using tenon::fakes::Foreign;
using tenon::fakes::cuda::control;
using tenon::fakes::cuda::current_device;
using tenon::fakes::cuda::enter;

struct CUextMemory_st {
  Foreign file;
};

struct CUextSemaphore_st {
  Foreign file;
  bool timeline = false;
};

namespace {

// Takes over the file. Returns false if it has fewer than `size` bytes.
bool take_over(int fd, uint64_t size, Foreign* out) {
  *out = Foreign::open(fd, size);
  if (!out->mapped()) return false;
  close(fd);
  return true;
}

}  // namespace

FAKE_API CUresult cuImportExternalMemory(CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* desc) {
  FAKE_ENTER(true);
  if (desc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) return CUDA_ERROR_INVALID_VALUE;
  Foreign file;
  if (!take_over(desc->handle.fd, desc->size, &file)) return CUDA_ERROR_INVALID_VALUE;
  *out = new CUextMemory_st{std::move(file)};
  ++control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* out, CUexternalMemory memory,
                                                  const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* desc) {
  FAKE_ENTER(true);
  if (desc->offset + desc->size > memory->file.size()) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUdeviceptr>(memory->file.data()) + desc->offset;
  tenon::fakes::cuda::map_block(*out, desc->size, {current_device(), nullptr, false});
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  if (tenon::fakes::cuda::range_of(reinterpret_cast<CUdeviceptr>(memory->file.data()))) {
    control().violate("external memory is destroyed before its buffer is freed");
  }
  delete memory;
  --control().objects;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuImportExternalSemaphore(CUexternalSemaphore* out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* desc) {
  FAKE_ENTER(true);
  const bool timeline = desc->type == CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
  if (!timeline && desc->type != CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD) return CUDA_ERROR_INVALID_VALUE;
  Foreign file;
  if (!take_over(desc->handle.fd, sizeof(uint64_t), &file)) return CUDA_ERROR_INVALID_VALUE;
  *out = new CUextSemaphore_st{std::move(file), timeline};
  ++control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore* semaphores,
                                                const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* params, unsigned int count,
                                                CUstream stream) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  for (unsigned int i = 0; i < count; ++i) {
    stream->push([semaphore = semaphores[i], value = params[i].params.fence.value] {
      std::atomic<uint64_t>& counter = semaphore->file.counter();
      const uint64_t wanted = semaphore->timeline ? value : 1;
      while (counter.load() < wanted) std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (!semaphore->timeline) counter.fetch_sub(1);
    });
  }
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore* semaphores,
                                                  const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* params,
                                                  unsigned int count, CUstream stream) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  for (unsigned int i = 0; i < count; ++i) {
    stream->push([semaphore = semaphores[i], value = params[i].params.fence.value] {
      std::atomic<uint64_t>& counter = semaphore->file.counter();
      if (semaphore->timeline) {
        if (counter.exchange(value) >= value) control().violate("a timeline semaphore does not grow");
      } else if (counter.fetch_add(1) != 0) {
        control().violate("a binary semaphore is signalled twice without a wait");
      }
    });
  }
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuDestroyExternalSemaphore(CUexternalSemaphore semaphore) {
  delete semaphore;
  --control().objects;
  return CUDA_SUCCESS;
}
