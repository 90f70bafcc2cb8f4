// Team: the threads that work on one row together, a warp or a block. all(value, combine) combines the values of all
// members and gives the result to each; every member calls it the same number of times. By CUB's primitives.
#pragma once

#include "providers/cuda/kernels/element.h"

#if defined(__CUDACC__)
#include <cub/block/block_reduce.cuh>
#include <cub/warp/warp_reduce.cuh>
// A kernel of which a multiprocessor must hold two blocks: while one computes, the other waits for memory.
#define TENON_KERNEL_TWICE extern "C" __global__ void __launch_bounds__(tenon::provider::cuda::row_block, 2)
#else
#define TENON_KERNEL_TWICE TENON_KERNEL
#endif

namespace tenon::provider::cuda {

// A 64-bit division is a long piece of code on a GPU, and most numbers have 32 bits: one copy of it, called.
TENON_DEVICE_CALL int64_t divided(int64_t value, int64_t by) { return value / by; }
TENON_DEVICE int64_t quotient(int64_t value, int64_t by) {
  if (((static_cast<uint64_t>(value) | static_cast<uint64_t>(by)) >> 32) != 0) return divided(value, by);
  return static_cast<int64_t>(static_cast<uint32_t>(value) / static_cast<uint32_t>(by));
}

TENON_DEVICE_CALL int64_t offset_along(const AxisSet& axes, const int64_t* strides, int64_t index) {
  int64_t offset = 0;
  for (int32_t axis = axes.rank - 1; axis > 0; --axis) {
    const int64_t next = quotient(index, axes.dims[axis]);
    offset += (index - next * axes.dims[axis]) * strides[axis];
    index = next;
  }
  return offset + index * strides[0];
}

// Where element `index` of the axes lies.
TENON_DEVICE int64_t offset_in(const AxisSet& axes, const int64_t* strides, int64_t index) {
  return axes.rank == 1 ? index * strides[0] : offset_along(axes, strides, index);
}

#if defined(__CUDACC__)

template <class T>
class WarpTeam {
 public:
  static constexpr int size = row_warp;
  static constexpr int teams = row_block / row_warp;

  TENON_DEVICE WarpTeam() {
    __shared__ Storage shared[teams];
    storage_ = &shared[threadIdx.x / size];
  }
  TENON_DEVICE int rank() const { return static_cast<int>(threadIdx.x) % size; }
  TENON_DEVICE int64_t number() const { return block_in_grid() * teams + threadIdx.x / size; }
  TENON_DEVICE int64_t count() const { return blocks_in_grid() * teams; }

  template <class Combine>
  TENON_DEVICE T all(T value, const Combine& combine) {
    const T sum = cub::WarpReduce<T>(*storage_).Reduce(value, combine);
    __syncwarp();
    return __shfl_sync(0xffffffffU, sum, 0);
  }

 private:
  using Storage = typename cub::WarpReduce<T>::TempStorage;
  Storage* storage_;
};

template <class T>
class BlockTeam {
 public:
  static constexpr int size = row_block;

  TENON_DEVICE BlockTeam() {
    __shared__ Shared shared;
    shared_ = &shared;
  }
  TENON_DEVICE int rank() const { return static_cast<int>(threadIdx.x); }
  TENON_DEVICE int64_t number() const { return block_in_grid(); }
  TENON_DEVICE int64_t count() const { return blocks_in_grid(); }

  template <class Combine>
  TENON_DEVICE T all(T value, const Combine& combine) {
    const T sum = cub::BlockReduce<T, row_block>(shared_->storage).Reduce(value, combine);
    if (threadIdx.x == 0) shared_->result = sum;
    __syncthreads();
    const T result = shared_->result;
    __syncthreads();
    return result;
  }

 private:
  struct Shared {
    typename cub::BlockReduce<T, row_block>::TempStorage storage;
    T result;
  };
  Shared* shared_;
};

// A team of one: columns, where neighbouring threads work on neighbouring rows.
template <class T>
class SoloTeam {
 public:
  static constexpr int size = 1;
  TENON_DEVICE int rank() const { return 0; }
  TENON_DEVICE int64_t number() const { return thread_in_grid(); }
  TENON_DEVICE int64_t count() const { return threads_in_grid(); }
  template <class Combine>
  TENON_DEVICE T all(T value, const Combine&) {
    return value;
  }
};

#else

template <class T>
class SoloTeam {
 public:
  static constexpr int size = 1;
  int rank() const { return 0; }
  int64_t number() const { return thread_in_grid(); }
  int64_t count() const { return threads_in_grid(); }
  template <class Combine>
  T all(T value, const Combine&) {
    return value;
  }
};
template <class T>
using WarpTeam = SoloTeam<T>;
template <class T>
using BlockTeam = SoloTeam<T>;

#endif

}  // namespace tenon::provider::cuda
