// What a kernel is launched with: read by the host, which fills it, and by the device. One struct by value per kernel.
#pragma once

#include <cstdint>

namespace tenon::provider::cuda {

inline constexpr int32_t kernel_max_rank = 8;
inline constexpr int32_t map_max_operands = 4;  // dst and three sources
inline constexpr int64_t map_chunk = 4;         // elements of the innermost axis that one thread takes at a time
inline constexpr int32_t row_block = 256;       // threads of a block of the reduction kernels
inline constexpr int32_t row_warp = 32;         // threads of a warp, on every device

// Where the kernels of one launch report the fault they meet: one per launch is kept, the first to claim it. `claim`
// is a number in device memory that only grows, so that a stream needs one, whatever it launches.
struct FaultSlot {
  uint64_t sequence;  // of the launch; written last
  int64_t value;
  int32_t code;
  int32_t reserved;
};

struct FaultTarget {
  uint64_t claim;     // address of the stream's claim; 0: this launch cannot fault
  uint64_t slot;      // address of a FaultSlot in host memory
  uint64_t sequence;  // of this launch, greater than all before it on the stream
  int64_t least;      // of the dtype: what -1 cannot divide
};

struct MapOperand {
  uint64_t address;
  int32_t dtype;
  int32_t vector;                    // chunks of it may be read and written as one
  uint64_t scalar;                   // where address is 0: the bits of its value, in the class computed in
  int64_t strides[kernel_max_rank];  // in elements, 0 past the rank
};

// dst[...] = row(src...): the innermost axis is cut into chunks of map_chunk elements, or of one. A launch has less
// than 2^31 chunks, so that they are numbered and taken apart in 32 bits.
struct MapArguments {
  uint32_t chunks;      // in all
  uint32_t row_chunks;  // per run of the innermost axis
  uint32_t steps;       // chunks per thread, 1 or 2, where all is one run of packs; 0: it is not
  uint32_t reserved;
  int64_t inner;                   // elements of the innermost axis
  int32_t rank;                    // >= 1
  int32_t op;                      // the row, for kernels that hold all rows of a class
  uint64_t parameters[2];          // a and b, in the class computed in
  uint32_t dims[kernel_max_rank];  // [rank - 1] is not looked at
  MapOperand operands[map_max_operands];
  FaultTarget fault;
};

// A set of axes, the last the innermost, flattened as an index.
struct AxisSet {
  int32_t rank;  // >= 1
  int32_t reserved;
  int64_t count;  // product of the dims
  int64_t dims[kernel_max_rank];
  int64_t src[kernel_max_rank];  // strides of the source
  int64_t dst[kernel_max_rank];  // strides of the destination, where these axes have one
};

// dst[kept] = finish(combine over reduced of map(src[kept, reduced])). Where `parts` > 1 the reduced axes are cut into
// as many; each part's value, not finished, goes to dst[kept * parts + part] in the class computed in.
struct ReduceArguments {
  uint64_t src;
  uint64_t dst;
  int32_t src_dtype;
  int32_t dst_dtype;
  int32_t vector;  // the innermost reduced axis may be read in chunks
  int32_t second;  // src holds parts: they are combined, not mapped
  int32_t op;      // the row, for kernels that hold all rows of a class
  int32_t reserved;
  int64_t parts;
  int64_t part_length;   // elements of the reduced axes per part
  int64_t finish_count;  // n of finish
  AxisSet kept;
  AxisSet reduced;
};

// Chunks per member that the softmax kernels hold in registers: rows of at most chunks * map_chunk * team elements.
inline constexpr int32_t held_warp_chunks = 4;         // 512 elements
inline constexpr int32_t held_warp_long_chunks = 8;    // 1,024
inline constexpr int32_t held_block_chunks = 4;        // 4,096
inline constexpr int32_t held_block_long_chunks = 16;  // 16,384

// Softmax, or its logarithm, of rows of `length` elements.
struct SoftmaxArguments {
  uint64_t src;
  uint64_t dst;
  int32_t dtype;
  int32_t log;
  int32_t vector;  // rows are contiguous, of whole chunks, which may be read as one
  int32_t reserved;
  int64_t length;
  int64_t src_stride;  // along the row
  int64_t dst_stride;
  AxisSet rows;
};

// dst[b, i, j] = sum over p of a[b, i, p] * b[b, p, j] (+ bias[b, i, j]); one thread per element of dst.
struct MatmulArguments {
  uint64_t dst;
  uint64_t a;
  uint64_t b;
  uint64_t bias;  // 0: none
  int32_t dst_dtype;
  int32_t a_dtype;
  int32_t b_dtype;
  int32_t bias_dtype;
  int32_t rank;  // >= 2
  int32_t reserved;
  int64_t count;  // elements of dst
  int64_t k;
  int64_t dims[kernel_max_rank];  // of dst
  int64_t dst_strides[kernel_max_rank];
  int64_t a_strides[kernel_max_rank];  // [rank - 1] along k
  int64_t b_strides[kernel_max_rank];  // [rank - 2] along k
  int64_t bias_strides[kernel_max_rank];
};

static_assert(sizeof(MapArguments) <= 4096 && sizeof(ReduceArguments) <= 4096 && sizeof(SoftmaxArguments) <= 4096 &&
                  sizeof(MatmulArguments) <= 4096,
              "a kernel has 4096 bytes of parameters on every architecture");

}  // namespace tenon::provider::cuda
