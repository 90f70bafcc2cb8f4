// Team: the threads that work on one row together, a warp or a block. all(value, combine) combines the values of all
// threads and gives each thread the result; first(value, combine) gives it to thread 0 only. before(value, neutral,
// combine, &total) gives each thread the combination of the threads before it, and the total. All threads of a team
// must make the same calls. CUB does the combining.
//
// For other needs of a block: TENON_BLOCK_SHARED declares variables in shared memory, block_barrier() must be called
// by all threads, and rank_in_warp() ranks elements.
#pragma once

#include "providers/cuda/kernels/element.h"

#if defined(__CUDACC__)
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
// A kernel with blocks of row_block threads. A multiprocessor must hold at least `blocks` of them, so that some compute
// while others wait for memory. Capability 7.5 has room for 4.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define TENON_RESIDENT(blocks) ((blocks) < 4 ? (blocks) : 4)
#else
#define TENON_RESIDENT(blocks) (blocks)
#endif
#define TENON_TEAM_KERNEL(blocks) \
  extern "C" __global__ void __launch_bounds__(tenon::provider::cuda::row_block, TENON_RESIDENT(blocks))
// Declares variable `name` of the shared memory of the block.
#define TENON_BLOCK_SHARED(Type, name) __shared__ Type name
#else
#define TENON_TEAM_KERNEL(blocks) TENON_KERNEL
#define TENON_BLOCK_SHARED(Type, name) static thread_local Type name
#endif

namespace tenon::provider::cuda {

// A 64-bit division takes much code on a GPU, and most numbers fit 32 bits. So there is one function for 64-bit
// division. If one thread divides by 1, all do.
TENON_ON_GPU_CALL int64_t divided(int64_t value, int64_t by) { return value / by; }
TENON_ON_GPU int64_t quotient(int64_t value, int64_t by) {
  if (by == 1) return value;
  if (((static_cast<uint64_t>(value) | static_cast<uint64_t>(by)) >> 32) != 0) return divided(value, by);
  return static_cast<int64_t>(static_cast<uint32_t>(value) / static_cast<uint32_t>(by));
}

TENON_ON_GPU int32_t quotient(int32_t value, int32_t by) {
  if (by == 1) return value;
  return static_cast<int32_t>(static_cast<uint32_t>(value) / static_cast<uint32_t>(by));
}

TENON_ON_GPU_CALL int64_t offset_along(const AxisSet& axes, const int64_t* strides, int64_t index) {
  int64_t offset = 0;
  for (int32_t axis = axes.rank - 1; axis > 0; --axis) {
    const int64_t next = quotient(index, axes.dims[axis]);
    offset += (index - next * axes.dims[axis]) * strides[axis];
    index = next;
  }
  return offset + index * strides[0];
}

// The offset of element `index` of `axes`.
TENON_ON_GPU int64_t offset_in(const AxisSet& axes, const int64_t* strides, int64_t index) {
  return axes.rank == 1 ? index * strides[0] : offset_along(axes, strides, index);
}

#if defined(__CUDACC__)

template <class T>
class WarpTeam {
 public:
  static constexpr int size = row_warp;
  static constexpr int teams = row_block / row_warp;

  TENON_ON_GPU WarpTeam() {
    __shared__ Storage shared[teams];
    storage_ = &shared[threadIdx.x / size];
  }
  TENON_ON_GPU int rank() const { return static_cast<int>(threadIdx.x) % size; }
  TENON_ON_GPU int64_t number() const { return block_in_grid() * teams + threadIdx.x / size; }
  TENON_ON_GPU int64_t count() const { return blocks_in_grid() * teams; }

  template <class Combine>
  TENON_ON_GPU T first(T value, const Combine& combine) {
    const T sum = cub::WarpReduce<T>(*storage_).Reduce(value, combine);
    __syncwarp();
    return sum;
  }
  template <class Combine>
  TENON_ON_GPU T all(T value, const Combine& combine) {
    return cub::ShuffleIndex<size>(first(value, combine), 0, 0xffffffffU);
  }
  template <class Combine>
  TENON_ON_GPU T before(T value, T neutral, const Combine& combine, T* total) {
    __shared__ typename cub::WarpScan<T>::TempStorage shared[teams];
    T prefix;
    cub::WarpScan<T>(shared[threadIdx.x / size]).ExclusiveScan(value, prefix, neutral, combine, *total);
    __syncwarp();
    return prefix;
  }

 private:
  using Storage = typename cub::WarpReduce<T>::TempStorage;
  Storage* storage_;
};

template <class T>
class BlockTeam {
 public:
  static constexpr int size = row_block;

  TENON_ON_GPU BlockTeam() {
    __shared__ Shared shared;
    shared_ = &shared;
  }
  TENON_ON_GPU int rank() const { return static_cast<int>(threadIdx.x); }
  TENON_ON_GPU int64_t number() const { return block_in_grid(); }
  TENON_ON_GPU int64_t count() const { return blocks_in_grid(); }

  template <class Combine>
  TENON_ON_GPU T first(T value, const Combine& combine) {
    const T sum = cub::BlockReduce<T, row_block>(shared_->storage).Reduce(value, combine);
    __syncthreads();
    return sum;
  }
  template <class Combine>
  TENON_ON_GPU T all(T value, const Combine& combine) {
    const T sum = cub::BlockReduce<T, row_block>(shared_->storage).Reduce(value, combine);
    if (threadIdx.x == 0) shared_->result = sum;
    __syncthreads();
    const T result = shared_->result;
    __syncthreads();
    return result;
  }
  template <class Combine>
  TENON_ON_GPU T before(T value, T neutral, const Combine& combine, T* total) {
    __shared__ typename cub::BlockScan<T, row_block>::TempStorage shared;
    T prefix;
    cub::BlockScan<T, row_block>(shared).ExclusiveScan(value, prefix, neutral, combine, *total);
    __syncthreads();
    return prefix;
  }

 private:
  struct Shared {
    typename cub::BlockReduce<T, row_block>::TempStorage storage;
    T result;
  };
  Shared* shared_;
};

TENON_ON_GPU void block_barrier() { __syncthreads(); }

// Ranks the elements of a warp by digit: element j * row_warp + lane is item j of that lane. ranks[j] = number of
// earlier elements with the same digit, which is below digit_values. counts[digit] = number of all elements with the
// digit; `counts` is in shared memory, one array per warp. All threads of the block must make the same calls.
template <int items>
TENON_ON_GPU void rank_in_warp(const uint32_t* digits, uint32_t* counts, uint32_t* ranks) {
  const uint32_t lane = threadIdx.x % row_warp;
  const uint32_t below = (1U << lane) - 1;
  for (int32_t digit = static_cast<int32_t>(lane); digit < digit_values; digit += row_warp) counts[digit] = 0;
  __syncwarp();
  TENON_UNROLL
  for (int j = 0; j < items; ++j) {
    uint32_t same = 0xffffffffU;
    TENON_UNROLL
    for (int bit = 0; bit < digit_bits; ++bit) {
      const bool set = (digits[j] >> bit & 1U) != 0;
      const uint32_t vote = __ballot_sync(0xffffffffU, set);
      same &= set ? vote : ~vote;
    }
    const uint32_t before = counts[digits[j]];
    __syncwarp();
    if ((same & below) == 0) counts[digits[j]] = before + static_cast<uint32_t>(__popc(same));
    __syncwarp();
    ranks[j] = before + static_cast<uint32_t>(__popc(same & below));
  }
}

#else

inline constexpr int emulated_value = 16;  // most bytes of a value that a team combines

// The barrier of an emulated team, set by the code that runs the kernel (tests/fakes/cuda). wait() returns when all
// threads of the team have called it.
struct EmulatedMeeting {
  void (*wait)() = nullptr;
  alignas(8) unsigned char values[row_block][emulated_value] = {};
  alignas(8) unsigned char result[emulated_value] = {};
};
inline thread_local EmulatedMeeting emulated_meeting;

template <class T, int members>
class EmulatedTeam {
 public:
  static constexpr int size = members;
  static constexpr int teams = row_block / members;

  int rank() const { return static_cast<int>(thread_in_block()) % size; }
  int64_t number() const { return block_in_grid() * teams + thread_in_block() / size; }
  int64_t count() const { return blocks_in_grid() * teams; }

  template <class Combine>
  T first(T value, const Combine& combine) {
    const T sum = all(value, combine);
    return rank() == 0 ? sum : value;
  }
  template <class Combine>
  T all(T value, const Combine& combine) {
    static_assert(sizeof value <= emulated_value);
    EmulatedMeeting& meeting = emulated_meeting;
    memcpy(meeting.values[rank()], &value, sizeof value);
    meeting.wait();
    if (rank() == 0) {
      for (int i = 1; i < size; ++i) {
        T next;
        memcpy(&next, meeting.values[i], sizeof next);
        value = combine(value, next);
      }
      memcpy(meeting.result, &value, sizeof value);
    }
    meeting.wait();
    memcpy(&value, meeting.result, sizeof value);
    return value;
  }
  template <class Combine>
  T before(T value, T neutral, const Combine& combine, T* total) {
    static_assert(sizeof value <= emulated_value);
    EmulatedMeeting& meeting = emulated_meeting;
    memcpy(meeting.values[rank()], &value, sizeof value);
    meeting.wait();
    if (rank() == 0) {
      T sum = neutral;
      for (int i = 0; i < size; ++i) {
        T next;
        memcpy(&next, meeting.values[i], sizeof next);
        memcpy(meeting.values[i], &sum, sizeof sum);
        sum = combine(sum, next);
      }
      memcpy(meeting.result, &sum, sizeof sum);
    }
    meeting.wait();
    T prefix;
    memcpy(&prefix, meeting.values[rank()], sizeof prefix);
    memcpy(total, meeting.result, sizeof *total);
    return prefix;
  }
};
template <class T>
using WarpTeam = EmulatedTeam<T, row_warp>;
template <class T>
using BlockTeam = EmulatedTeam<T, row_block>;

inline void block_barrier() { emulated_meeting.wait(); }

template <int items>
void rank_in_warp(const uint32_t* digits, uint32_t* counts, uint32_t* ranks) {
  static_assert(items <= emulated_value);
  static thread_local uint32_t ranked[row_block][items];
  EmulatedMeeting& meeting = emulated_meeting;
  const int64_t thread = thread_in_block();
  for (int j = 0; j < items; ++j) meeting.values[thread][j] = static_cast<unsigned char>(digits[j]);
  meeting.wait();
  if (thread % row_warp == 0) {
    for (int32_t digit = 0; digit < digit_values; ++digit) counts[digit] = 0;
    for (int j = 0; j < items; ++j) {
      for (int64_t lane = thread; lane < thread + row_warp; ++lane) ranked[lane][j] = counts[meeting.values[lane][j]]++;
    }
  }
  meeting.wait();
  for (int j = 0; j < items; ++j) ranks[j] = ranked[thread][j];
}

#endif

// A team of one thread, for columns: neighbouring threads work on neighbouring rows.
template <class T>
class SoloTeam {
 public:
  static constexpr int size = 1;
  TENON_ON_GPU int rank() const { return 0; }
  TENON_ON_GPU int64_t number() const { return thread_in_grid(); }
  TENON_ON_GPU int64_t count() const { return threads_in_grid(); }
  template <class Combine>
  TENON_ON_GPU T first(T value, const Combine&) {
    return value;
  }
  template <class Combine>
  TENON_ON_GPU T all(T value, const Combine&) {
    return value;
  }
  template <class Combine>
  TENON_ON_GPU T before(T value, T neutral, const Combine&, T* total) {
    *total = value;
    return neutral;
  }
};

}  // namespace tenon::provider::cuda
