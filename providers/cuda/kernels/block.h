// Functions for kernels whose threads share the memory of their block: barriers, shuffles, copies to shared memory, and
// matrix products of a warp. All threads of a warp must make the same calls of from_lane_across and multiply; all
// threads of a block the same calls of block_meets.
//
// On the host, the threads of a block take turns between barriers (tests/fakes/cuda). Each thread computes the warp's
// joint results from the registers of the other threads, which it reads between two barriers of its warp.
#pragma once

#include <cmath>

#include "providers/cuda/kernels/element.h"

#if defined(__CUDACC__)
// A kernel with blocks of `threads` threads. A multiprocessor must hold at least `blocks` of them.
#define TENON_BLOCK_KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#else
#define TENON_BLOCK_KERNEL(threads, blocks) TENON_KERNEL
#endif

namespace tenon::provider::cuda {

inline constexpr int warp_threads = 32;

// 16 bytes, which move as one access.
template <class T>
struct alignas(16) Chunk16 {
  T at[16 / sizeof(T)];
};

#if defined(__CUDACC__)

// The shared memory of the block; the launch decides its size.
TENON_ON_GPU unsigned char* shared_memory() {
  extern __shared__ __align__(1024) unsigned char tenon_shared[];
  return tenon_shared;
}
// Waits for all threads of the block, or of the warp. Their writes to shared memory are then visible.
TENON_ON_GPU void block_meets() { __syncthreads(); }
TENON_ON_GPU void warp_meets() { __syncwarp(); }

// The `value` of the thread of this warp whose lane differs in the bits of `mask`.
TENON_ON_GPU float from_lane_across(float value, int mask) { return __shfl_xor_sync(0xffffffffU, value, mask); }

// 2^x with a relative error below 2^-22. Results below the least normal number are 0.
TENON_ON_GPU float power_of_two(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

// x / y with an error of at most two units in the last place; 0 if y is above 2^126.
TENON_ON_GPU float quick_quotient(float x, float y) { return __fdividef(x, y); }

TENON_ON_GPU uint32_t shared_address(const void* at) { return static_cast<uint32_t>(__cvta_generic_to_shared(at)); }

// Copies 16 bytes to shared memory; if not `inside`, writes zeros and does not read `from`. The bytes are visible after
// copies_arrive() and block_meets().
TENON_ON_GPU void copy_16(void* to, const void* from, bool inside) {
#if __CUDA_ARCH__ >= 800
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
               : "memory");
#else
  *static_cast<Chunk16<uint32_t>*>(to) = inside ? *static_cast<const Chunk16<uint32_t>*>(from) : Chunk16<uint32_t>{};
#endif
}
// Waits for the copies of this thread.
TENON_ON_GPU void copies_arrive() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// True for all threads of the warp if `value` is true for any of them.
TENON_ON_GPU bool any_of_warp(bool value) { return __any_sync(0xffffffffU, value); }

// Two floats converted to a word of two 16-bit elements, the first in the low half.
TENON_ON_GPU uint32_t narrow_pair(Half, float first, float second) {
#if __CUDA_ARCH__ >= 800
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
  return pair;
#else
  return half_from_float(first) | static_cast<uint32_t>(half_from_float(second)) << 16;
#endif
}
TENON_ON_GPU uint32_t narrow_pair(BFloat, float first, float second) {
#if __CUDA_ARCH__ >= 800
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(first), "f"(second));
  return pair;
#else
  return bfloat_from_float(first) | static_cast<uint32_t>(bfloat_from_float(second)) << 16;
#endif
}

// One product of 16 x 16 and 16 x 8 elements. Devices below 8.0 have no product of bf16; a kernel that calls it there
// traps.
TENON_ON_GPU void multiply_one(Half, float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(b0));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}
TENON_ON_GPU void multiply_one(BFloat, float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  __trap();
#endif
}

// sums[t][first + n] += a[t] * b[n] for all t and n, by a warp; a[t] is 16 x 16 elements, b[n] 16 x 8. Let `row` = lane
// / 4 and `pair` = 2 * (lane % 4). Each thread holds these parts. Of a sum: columns pair and pair + 1 of row `row`,
// then of row + 8. Of a[t]: the same elements of columns 0 to 7, then of columns 8 to 15. Of b[n], two of which share
// an array: rows pair and pair + 1 of column `row`, then rows pair + 8 and pair + 9.
template <class Storage, int tiles, int columns, int pairs>
TENON_ON_GPU void multiply(float (&sums)[tiles][columns][4], int first, const uint32_t (&a)[tiles][4],
                           const uint32_t (&b)[pairs][4]) {
  TENON_UNROLL
  for (int p = 0; p < pairs; ++p) {
    TENON_UNROLL
    for (int t = 0; t < tiles; ++t) {
      multiply_one(Storage{}, sums[t][first + 2 * p], a[t], b[p][0], b[p][1]);
      multiply_one(Storage{}, sums[t][first + 2 * p + 1], a[t], b[p][2], b[p][3]);
    }
  }
}

#else

inline constexpr int emulated_block_threads = 256;  // largest block with barriers

// The block of the emulated thread, set by the code that runs the kernel.
struct EmulatedBlock {
  void (*wait)() = nullptr;       // barrier of the block
  void (*wait_warp)() = nullptr;  // barrier of the warp
  unsigned char* shared = nullptr;
  // A value that a thread shows to its warp. Two buffers alternate: before a thread writes to one again, a barrier has
  // followed all reads of it.
  struct Shown {
    uint32_t a[2][4];
    uint32_t b[4][4];
  };
  Shown shown[2][emulated_block_threads];
  uint8_t turns[emulated_block_threads] = {};
};
inline thread_local EmulatedBlock emulated_block;

// The buffer in which the threads of a warp show their values now, indexed by thread.
inline EmulatedBlock::Shown* next_shown() {
  return emulated_block.shown[emulated_block.turns[thread_in_block()]++ % 2];
}

inline unsigned char* shared_memory() { return emulated_block.shared; }
inline void block_meets() { emulated_block.wait(); }
inline void warp_meets() { emulated_block.wait_warp(); }

inline float from_lane_across(float value, int mask) {
  const int64_t me = thread_in_block();
  EmulatedBlock::Shown* const shown = next_shown();
  shown[me].a[0][0] = bits_as<uint32_t>(value);
  warp_meets();
  return bits_as<float>(shown[me ^ mask].a[0][0]);
}

inline float power_of_two(float x) { return std::exp2(x); }
inline float quick_quotient(float x, float y) { return x / y; }

inline void copy_16(void* to, const void* from, bool inside) {
  if (inside)
    memcpy(to, from, 16);
  else
    memset(to, 0, 16);
}
inline void copies_arrive() {}

inline bool any_of_warp(bool value) {
  const int64_t me = thread_in_block();
  EmulatedBlock::Shown* const shown = next_shown();
  shown[me].a[0][0] = value ? 1 : 0;
  warp_meets();
  bool any = false;
  for (int64_t i = 0; i < warp_threads; ++i) any = any || shown[me / warp_threads * warp_threads + i].a[0][0] != 0;
  return any;
}

inline uint32_t narrow_pair(Half, float first, float second) {
  return half_from_float(first) | static_cast<uint32_t>(half_from_float(second)) << 16;
}
inline uint32_t narrow_pair(BFloat, float first, float second) {
  return bfloat_from_float(first) | static_cast<uint32_t>(bfloat_from_float(second)) << 16;
}

template <class Storage, int tiles, int columns, int pairs>
void multiply(float (&sums)[tiles][columns][4], int first, const uint32_t (&a)[tiles][4],
              const uint32_t (&b)[pairs][4]) {
  const auto me = static_cast<int>(thread_in_block());
  const int warp = me / warp_threads * warp_threads;
  const int lane = me % warp_threads;
  static_assert(tiles <= 2 && pairs <= 4);
  EmulatedBlock::Shown* const shown = next_shown();
  memcpy(shown[me].a, a, sizeof a);
  memcpy(shown[me].b, b, sizeof b);
  warp_meets();
  const auto element = [](uint32_t word, int i) {
    return widen<float>(Storage{static_cast<uint16_t>(i % 2 == 0 ? word : word >> 16)});
  };
  float left[tiles][2][16];
  for (int k = 0; k < 16; ++k) {
    const auto& of = shown[warp + lane / 4 * 4 + k % 8 / 2].a;
    for (int t = 0; t < tiles; ++t) {
      for (int half = 0; half < 2; ++half) left[t][half][k] = element(of[t][half + k / 8 * 2], k);
    }
  }
  for (int n = 0; n < 2 * pairs; ++n) {
    for (int column = 0; column < 2; ++column) {
      float right[16];
      for (int k = 0; k < 16; ++k) {
        const EmulatedBlock::Shown& holder = shown[warp + (lane % 4 * 2 + column) * 4 + k % 8 / 2];
        right[k] = element(holder.b[n / 2][n % 2 * 2 + k / 8], k);
      }
      for (int t = 0; t < tiles; ++t) {
        for (int half = 0; half < 2; ++half) {
          for (int k = 0; k < 16; ++k) sums[t][first + n][half * 2 + column] += left[t][half][k] * right[k];
        }
      }
    }
  }
}

#endif

// Rows in shared memory, in chunks of 16 bytes. Chunks are permuted so that the same chunk of 8 neighbouring rows lies
// in 8 different groups of banks.
template <int row_bytes>
TENON_ON_GPU unsigned char* chunk_at(unsigned char* base, int row, int chunk) {
  return base + row * row_bytes + ((chunk ^ (row & 7)) * 16);
}

// Loads matrices of 16 x 16 16-bit elements from rows in shared memory whose address is a multiple of their length. A
// matrix is four matrices of 8 x 8. Of each, a thread gets word `lane % 4` of row `lane / 4`; if transposed, the
// elements of column `lane / 4` in rows `2 * (lane % 4)` and the next. The four are ordered by row, then by column;
// with `columns_first` by column, then by row.
template <int row_bytes, bool columns_first>
class Matrices {
 public:
#if defined(__CUDACC__)
  TENON_ON_GPU explicit Matrices(unsigned char* base)
      : mine_(shared_address(place(base, static_cast<int>(threadIdx.x) % warp_threads))) {}
  // Loads the matrix that begins at row `row`, a multiple of 8, and column 16 * `column`.
  TENON_ON_GPU void load(uint32_t (&to)[4], int row, int column) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address(row, column))
                 : "memory");
  }
  TENON_ON_GPU void load_turned(uint32_t (&to)[4], int row, int column) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address(row, column))
                 : "memory");
  }
#else
  explicit Matrices(unsigned char* base) : mine_(base) {}
  void load(uint32_t (&to)[4], int row, int column) const {
    const int lane = static_cast<int>(thread_in_block()) % warp_threads;
    for (int m = 0; m < 4; ++m) memcpy(&to[m], at(row, column, m * 8 + lane / 4) + lane % 4 * 4, 4);
  }
  void load_turned(uint32_t (&to)[4], int row, int column) const {
    const int lane = static_cast<int>(thread_in_block()) % warp_threads;
    for (int m = 0; m < 4; ++m) {
      const auto element = [&](int i) {
        uint16_t bits;
        memcpy(&bits, at(row, column, m * 8 + i) + lane / 4 * 2, 2);
        return bits;
      };
      to[m] = element(lane % 4 * 2) | static_cast<uint32_t>(element(lane % 4 * 2 + 1)) << 16;
    }
  }
#endif

 private:
  // The chunk whose address a lane gives for the first matrix.
  TENON_ON_GPU static unsigned char* place(unsigned char* base, int lane) {
    return columns_first ? chunk_at<row_bytes>(base, lane / 16 * 8 + lane % 8, lane / 8 % 2)
                         : chunk_at<row_bytes>(base, lane % 16, lane / 16);
  }
#if defined(__CUDACC__)
  // A step of two chunks flips bits of the permuted number that the row does not affect.
  TENON_ON_GPU uint32_t address(int row, int column) const {
    return (mine_ ^ static_cast<uint32_t>(32 * column)) + static_cast<uint32_t>(row * row_bytes);
  }
  uint32_t mine_;
#else
  const unsigned char* at(int row, int column, int lane) const {
    const auto offset = static_cast<uint32_t>(place(mine_, lane) - mine_);
    return mine_ + (offset ^ static_cast<uint32_t>(32 * column)) + row * row_bytes;
  }
  unsigned char* mine_;
#endif
};

// The elements in the low and in the high half of a pair.
template <class Storage>
TENON_ON_GPU float first_of(uint32_t pair) {
  return widen<float>(Storage{static_cast<uint16_t>(pair)});
}
template <class Storage>
TENON_ON_GPU float second_of(uint32_t pair) {
  return widen<float>(Storage{static_cast<uint16_t>(pair >> 16)});
}

}  // namespace tenon::provider::cuda
