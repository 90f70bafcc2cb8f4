// The few macros and functions that differ between nvcc and the host's compiler. Tests without a GPU compile the
// kernels for the host. There the threads of a block run one after the other, and the threads of a team take turns
// between the team's barriers (team.h).
#pragma once

#include <cstdint>

#if defined(__CUDACC__)

#define TENON_KERNEL extern "C" __global__ void
#define TENON_ON_GPU __device__ __forceinline__
#define TENON_ON_GPU_CALL __device__ __noinline__  // not inlined, since that would repeat much code
#define TENON_ARGUMENT(Type) const __grid_constant__ Type
#define TENON_UNROLL _Pragma("unroll")
#define TENON_UNROLL_2 _Pragma("unroll 2")
#define TENON_UNROLL_4 _Pragma("unroll 4")
#define TENON_ROLLED _Pragma("unroll 1")

namespace tenon::provider::cuda {

TENON_ON_GPU int64_t thread_in_grid() {
  return static_cast<int64_t>(blockIdx.x) * static_cast<int64_t>(blockDim.x) + threadIdx.x;
}
TENON_ON_GPU int64_t threads_in_grid() { return static_cast<int64_t>(gridDim.x) * static_cast<int64_t>(blockDim.x); }
TENON_ON_GPU int64_t thread_in_block() { return threadIdx.x; }
TENON_ON_GPU int64_t threads_in_block() { return blockDim.x; }
TENON_ON_GPU int64_t block_in_grid() { return blockIdx.x; }
TENON_ON_GPU int64_t blocks_in_grid() { return gridDim.x; }

// Raises *claim to `sequence`. True for the one caller that raised it.
TENON_ON_GPU bool claim_raised(uint64_t* claim, uint64_t sequence) {
  return atomicMax(reinterpret_cast<unsigned long long*>(claim), static_cast<unsigned long long>(sequence)) < sequence;
}
TENON_ON_GPU void publish() { __threadfence_system(); }

// Raises *at to `value`.
TENON_ON_GPU void raise(uint32_t* at, uint32_t value) { atomicMax(at, value); }
TENON_ON_GPU void raise(uint64_t* at, uint64_t value) {
  atomicMax(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
}
// Writes `desired` if *at equals *expected. Otherwise sets *expected to *at and returns false.
TENON_ON_GPU bool exchanged(uint32_t* at, uint32_t* expected, uint32_t desired) {
  const uint32_t before = atomicCAS(at, *expected, desired);
  const bool done = before == *expected;
  *expected = before;
  return done;
}
TENON_ON_GPU bool exchanged(uint64_t* at, uint64_t* expected, uint64_t desired) {
  const uint64_t before = atomicCAS(reinterpret_cast<unsigned long long*>(at), *expected, desired);
  const bool done = before == *expected;
  *expected = before;
  return done;
}
TENON_ON_GPU void add_to(float* at, float value) { atomicAdd(at, value); }
TENON_ON_GPU void add_to(double* at, double value) { atomicAdd(at, value); }
TENON_ON_GPU void add_to(uint32_t* at, uint32_t value) { atomicAdd(at, value); }
TENON_ON_GPU void add_to(uint64_t* at, uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
}

}  // namespace tenon::provider::cuda

#else

#include <atomic>

#define TENON_KERNEL extern "C" __attribute__((visibility("default"))) void
#define TENON_ON_GPU inline
#define TENON_ON_GPU_CALL inline
#define TENON_ARGUMENT(Type) const Type&
#define TENON_UNROLL
#define TENON_UNROLL_2
#define TENON_UNROLL_4
#define TENON_ROLLED

namespace tenon::provider::cuda {

// The position of the emulated thread, set by the code that runs the kernel (tests/fakes/cuda).
struct EmulatedThread {
  int64_t thread = 0;
  int64_t threads = 1;
  int64_t block = 0;
  int64_t blocks = 1;
};
inline thread_local EmulatedThread emulated_thread;

inline int64_t thread_in_grid() { return emulated_thread.block * emulated_thread.threads + emulated_thread.thread; }
inline int64_t threads_in_grid() { return emulated_thread.blocks * emulated_thread.threads; }
inline int64_t thread_in_block() { return emulated_thread.thread; }
inline int64_t threads_in_block() { return emulated_thread.threads; }
inline int64_t block_in_grid() { return emulated_thread.block; }
inline int64_t blocks_in_grid() { return emulated_thread.blocks; }

inline bool claim_raised(uint64_t* claim, uint64_t sequence) {
  std::atomic_ref<uint64_t> word(*claim);
  uint64_t before = word.load();
  while (before < sequence && !word.compare_exchange_weak(before, sequence)) {
  }
  return before < sequence;
}
inline void publish() { std::atomic_thread_fence(std::memory_order_seq_cst); }

template <class Word>
bool exchanged(Word* at, Word* expected, Word desired) {
  return std::atomic_ref<Word>(*at).compare_exchange_strong(*expected, desired);
}
template <class Word>
void raise(Word* at, Word value) {
  Word before = std::atomic_ref<Word>(*at).load();
  while (before < value && !exchanged(at, &before, value)) {
  }
}
template <class Number>
void add_to(Number* at, Number value) {
  std::atomic_ref<Number>(*at).fetch_add(value);
}

}  // namespace tenon::provider::cuda

#endif
