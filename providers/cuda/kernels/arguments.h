// The arguments of kernels, filled by the host and read by the device. A kernel takes one struct, by value.
#pragma once

#include <cstdint>

namespace tenon::provider::cuda {

inline constexpr int32_t kernel_max_rank = 8;
inline constexpr int32_t map_max_operands = 4;  // dst and three sources
inline constexpr int64_t map_chunk = 4;         // elements of the innermost axis that a thread computes at a time
inline constexpr int32_t row_block = 256;       // threads of a block of the reduction kernels
inline constexpr int32_t row_warp = 32;         // threads of a warp, on every device
inline constexpr int32_t digit_bits = 8;        // bits of the digits by which keys are sorted
inline constexpr int32_t digit_values = 1 << digit_bits;

// Where the kernels of one launch report a fault. One fault per launch is kept, from the first thread that claims the
// slot. A claim is a number in device memory that only grows, so each stream needs only one.
struct FaultSlot {
  uint64_t sequence;  // number of the launch; written last
  int64_t value;
  int32_t code;
  int32_t reserved;
  int64_t limit;  // the limit that the value violates; 0: none
};

struct FaultTarget {
  uint64_t claim;     // address of the stream's claim; 0: this launch cannot fault
  uint64_t slot;      // address of a FaultSlot in host memory
  uint64_t sequence;  // number of this launch, greater than all earlier ones of the stream
};

struct MapOperand {
  uint64_t address;
  int32_t dtype;
  int32_t vector;                    // a chunk may be read or written as one access
  uint64_t scalar;                   // the bits of the value in the compute class, if address is 0
  int64_t strides[kernel_max_rank];  // in elements, 0 beyond the rank
};

// dst[...] = f(src...). The innermost axis is cut into chunks of map_chunk elements, or of one element. A launch has
// fewer than 2^31 chunks, so chunk numbers take 32 bits.
struct MapArguments {
  uint32_t chunks;      // chunks of the launch
  uint32_t row_chunks;  // per row along the innermost axis
  uint32_t steps;       // chunks per thread, 1 or 2, if every operand is one run of aligned chunks; else 0
  uint32_t reserved;
  int64_t inner;                   // elements of the innermost axis
  int32_t rank;                    // >= 1
  int32_t op;                      // scalar function, for kernels that contain a whole class
  uint64_t parameters[2];          // a and b, in the compute class
  uint32_t dims[kernel_max_rank];  // [rank - 1] is unused
  MapOperand operands[map_max_operands];
  FaultTarget fault;
};

// gather: walked[...] = whole[indices...]; scatter combines the other way. The operands of `map` are the walked tensor;
// the whole tensor, with stride 0 along indexed axes; and the indices, with stride 0 along axes that they lack. scatter
// adds the row-major number of the element, which is "address" plus offset. Each place in the whole takes `coordinates`
// indices, which are `coordinate_stride` apart.
struct IndexArguments {
  MapArguments map;
  int32_t coordinates;  // >= 1
  int32_t wide_owners;  // owners have 64 bits, not 32
  uint64_t owners;      // per element of the whole: number of the last update, plus 1
  int64_t coordinate_stride;
  int64_t lengths[kernel_max_rank];  // lengths of the indexed axes of the whole
  int64_t strides[kernel_max_rank];  // strides of the same axes
};

// dst[i] = src[i - low] if i - low is inside src; else `value`, or another element of src (`mode` is EP_PAD_*).
struct PadArguments {
  uint64_t dst;
  uint64_t src;
  uint64_t value;       // bits of an element
  uint32_t chunks;      // chunks of map_chunk elements
  uint32_t row_chunks;  // per row along the innermost axis
  int32_t rank;         // >= 1
  int32_t mode;
  int32_t dst_vector;             // chunks of map_chunk elements may be written as one access
  int32_t src_vector;             // the part of src for a chunk of dst may be read as one access
  int64_t dims[kernel_max_rank];  // the dims of dst
  int64_t src_dims[kernel_max_rank];
  int64_t low[kernel_max_rank];
  int64_t dst_strides[kernel_max_rank];
  int64_t src_strides[kernel_max_rank];
};

// A set of axes, the last one innermost. One index counts its elements.
struct AxisSet {
  int32_t rank;  // >= 1
  int32_t reserved;
  int64_t count;  // product of the dims
  int64_t dims[kernel_max_rank];
  int64_t src[kernel_max_rank];  // strides of the source
  int64_t dst[kernel_max_rank];  // strides of the destination, if it has these axes
};

// dst[kept] = finish(combine over reduced of map(src[kept, reduced])). With `parts` > 1 the reduced axes are cut into
// parts, and the unfinished value of each part is written to dst[kept * parts + part] in the compute class.
struct ReduceArguments {
  uint64_t src;
  uint64_t dst;
  int32_t src_dtype;
  int32_t dst_dtype;
  int32_t vector;  // the innermost reduced axis can be read in chunks
  int32_t second;  // src holds the values of parts: combine them without map
  int32_t op;      // reduction, for kernels that contain a whole class
  int32_t reserved;
  int64_t parts;
  int64_t part_length;   // elements of the reduced axes per part
  int64_t finish_count;  // the divisor of `finish`
  AxisSet kept;
  AxisSet reduced;
};

// dst[i] = src[0] combined with src[1] ... src[i], along rows of `length` elements (`op` is EP_SCAN_*).
struct ScanArguments {
  uint64_t src;
  uint64_t dst;
  int32_t dtype;
  int32_t op;
  int32_t exclusive;  // exclude src[i]
  int32_t reverse;    // scan from the end of the row
  int32_t vector;     // rows are contiguous, and each chunk may be read and written as one access
  int32_t reserved;
  int64_t length;
  int64_t src_stride;  // along the row
  int64_t dst_stride;
  AxisSet rows;
};

// Chunks per thread that kernels hold in registers. A row has at most chunks * map_chunk * team elements.
inline constexpr int32_t held_warp_chunks = 4;         // 512 elements
inline constexpr int32_t held_warp_long_chunks = 8;    // 1,024
inline constexpr int32_t held_block_chunks = 4;        // 4,096
inline constexpr int32_t held_block_long_chunks = 16;  // 16,384

// softmax, or its logarithm, along rows of `length` elements.
struct SoftmaxArguments {
  uint64_t src;
  uint64_t dst;
  int32_t dtype;
  int32_t log;
  int32_t vector;  // rows are contiguous and consist of whole chunks, each read as one access
  int32_t reserved;
  int64_t length;
  int64_t src_stride;  // along the row
  int64_t dst_stride;
  AxisSet rows;
};

// dst = (src - mean) * inv_std * scale + shift for each row, where inv_std = 1 / sqrt(variance + eps). If not
// `centred`: src * inv_std * scale, with the mean of squares instead of the variance. An address of 0 means that the
// operand is absent.
struct NormArguments {
  uint64_t src;
  uint64_t dst;
  uint64_t scale;
  uint64_t shift;
  uint64_t mean;     // f64 if src is f64, else f32
  uint64_t inv_std;  // same type
  uint64_t moments;  // per part of each row, if rows are cut into parts; f32
  double eps;
  int32_t dtype;  // the dtype of src and dst
  int32_t scale_dtype;
  int32_t shift_dtype;
  int32_t scale_size;  // bytes of an element
  int32_t shift_size;
  int32_t centred;
  int32_t vector;          // rows of src and dst are contiguous and consist of whole chunks, each read as one access
  int32_t weights_vector;  // the same for scale and shift
  uint32_t run;            // consecutive elements of a row that share one weight; for kernels that hold the row
  uint32_t parts;          // parts per row; 1: rows are not cut
  int64_t part_length;     // a multiple of the elements that a block holds
  AxisSet rows;            // strides of src and dst from row to row
  AxisSet statistics;      // strides of mean and inv_std from row to row
  AxisSet row_weights;     // strides of scale and shift from row to row
  AxisSet row;             // strides of src and dst along a row
  AxisSet weights;         // strides of scale and shift along a row
};

// dst = (src - mean) / sqrt(variance + eps) * scale + shift, with four numbers per channel. Operands of `map`: dst,
// src, and the number of the channel, which is "address" plus offset.
struct BatchNormArguments {
  MapArguments map;
  uint64_t addresses[4];  // scale, shift, mean, variance; 0: absent
  int64_t strides[4];
  int32_t dtypes[4];
  double eps;
};

// Two numbers per parameter, over the elements of src that share it. With a gradient: the sums of the gradient and of
// gradient * (x - mean) * inv_std. Without: the mean, and the sum of squared differences from it. First for parts, then
// in total.
struct NormSumsArguments {
  uint64_t src;
  uint64_t gradient;
  uint64_t mean;  // f64 if src is f64, else f32; without a gradient it is a result, and so is inv_std
  uint64_t inv_std;
  uint64_t sums;    // pairs [kept, parts]
  uint64_t totals;  // with a gradient: pairs [kept], divided by the number of elements; else the variance [kept]
  uint64_t scale_gradient;
  uint64_t shift_gradient;
  double eps;
  int32_t dtype;  // the dtype of src and gradient
  int32_t scale_dtype;
  int32_t shift_dtype;
  int32_t by_parameter;  // mean and inv_std have a number per parameter, not per element of `reduced`
  int64_t parts;
  int64_t part_length;
  AxisSet kept;        // src and gradient from parameter to parameter
  AxisSet reduced;     // src and gradient over the elements of a parameter
  AxisSet statistics;  // mean and inv_std
  AxisSet parameters;  // scale_gradient and shift_gradient
};

// dst = inv_std * (g - mean(g) - x * mean(g * x)) for each row, where x is the normalised element and g is gradient *
// scale.
struct LayerBackwardArguments {
  uint64_t dst;
  uint64_t src;
  uint64_t gradient;
  uint64_t scale;  // 0: none
  uint64_t mean;
  uint64_t inv_std;
  int32_t dtype;
  int32_t scale_dtype;
  AxisSet rows;        // src and gradient
  AxisSet dst_rows;    // dst, as the destination of the set
  AxisSet statistics;  // mean and inv_std from row to row
  AxisSet row;         // src and gradient along a row
  AxisSet dst_row;     // dst, as the destination of the set
  AxisSet weights;     // scale along a row
};

// Like LayerBackwardArguments, for elements of a channel that share a mean. Operands of `map`: dst, src, gradient, and
// the number of the channel, which is "address" plus offset.
struct BatchBackwardArguments {
  MapArguments map;
  uint64_t scale;  // 0: none
  uint64_t mean;
  uint64_t inv_std;
  uint64_t totals;  // from NormSumsArguments
  int64_t scale_stride;
  int64_t mean_stride;
  int64_t inv_std_stride;
  int32_t scale_dtype;
  int32_t reserved;
};

// Windows over the three spatial axes of src [image, channel, z, y, x]; missing axes have length 1.
struct PoolingArguments {
  uint64_t dst;
  uint64_t src;
  uint64_t indices;  // i64; 0: none
  int32_t dtype;
  int32_t op;              // EP_POOLING_*
  int32_t channels_first;  // order of dst elements: image, channel, z, y, x; else image, z, y, x, channel
  int32_t reserved;
  double p;
  int64_t count;  // elements of dst
  int64_t dst_dims[5];
  int64_t src_dims[5];
  int64_t dst_strides[5];
  int64_t src_strides[5];
  int64_t index_strides[5];
  int64_t kernel[3];
  int64_t stride[3];
  int64_t dilation[3];
  int64_t pad_low[3];
  int64_t pad_high[3];
};

// The gradient of a pooling: writes the gradient of the pooling's source to pool.src, and reads the gradient of its
// result from pool.dst.
struct PoolingBackwardArguments {
  PoolingArguments pool;
  int64_t windows;  // elements of pool.dst
  FaultTarget fault;
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
  int64_t dims[kernel_max_rank];  // the dims of dst
  int64_t dst_strides[kernel_max_rank];
  int64_t a_strides[kernel_max_rank];  // [rank - 1] along k
  int64_t b_strides[kernel_max_rank];  // [rank - 2] along k
  int64_t bias_strides[kernel_max_rank];
};

// Threads of a block of the attention kernels.
inline constexpr int32_t attention_threads = 128;
inline constexpr int32_t attention_most_splits = 128;
inline constexpr int32_t attention_chunk = 128;  // keys per step of the plain kernel

// The floats of a part: the sums of the columns padded to a multiple of 4, two more numbers, and two unused ones.
constexpr int64_t attention_part_floats(int64_t columns) { return (columns + 3) / 4 * 4 + 4; }

// attention, as ep_attention_attributes defines it. A unit is a batch and some heads that share keys; its rows are the
// queries of its heads, head after head. A block computes some rows of a unit over the keys of one split. With `splits`
// > 1 it writes a part for each row and split: the sums of the columns, the greatest score and the sum of the weights,
// all f32. Strides are in elements, in the order of the axes.
struct AttentionArguments {
  uint64_t dst;
  uint64_t query;
  uint64_t key;
  uint64_t value;
  uint64_t bias;     // 0: none
  uint64_t lengths;  // 0: none
  uint64_t log_sum;  // 0: none
  uint64_t parts;
  int32_t dtype;  // the dtype of dst, query, key and value
  int32_t bias_dtype;
  int32_t wide_lengths;  // i64, not i32
  int32_t align_end;
  int32_t heads;
  int32_t ratio;  // heads that share keys
  int32_t fold;   // heads of a unit: 1 or `ratio`
  int32_t queries;
  int32_t keys;
  int32_t width;
  int32_t columns;
  int32_t unit_rows;
  int32_t row_blocks;  // blocks for the rows of a unit
  int32_t units;
  int32_t splits;
  int32_t split_keys;
  int32_t before;  // -1: no limit
  int32_t after;
  int32_t shaped;        // scores need more than a product times a positive scale: they have a cap, a bias or another
                         // scale
  int32_t query_vector;  // rows consist of whole aligned chunks of 16 bytes
  int32_t key_vector;
  int32_t value_vector;
  int32_t dst_vector;  // chunks of map_chunk elements may be written as one access
  double scale;
  double softcap;  // 0: none
  int64_t dst_strides[4];
  int64_t query_strides[4];
  int64_t key_strides[4];
  int64_t value_strides[4];
  int64_t bias_strides[4];
  int64_t log_sum_strides[4];
  int64_t length_stride;
};

// rotary: rotates pairs of elements in each row. Rows are [batch, head, position]; with indices, the table row of the
// angles is indices[batch, position].
struct RotaryArguments {
  uint64_t dst;
  uint64_t src;
  uint64_t cosines;
  uint64_t sines;
  uint64_t indices;  // 0: none
  int32_t dtype;
  int32_t angle_dtype;
  int32_t wide_indices;  // i64, not i32
  int32_t interleaved;
  int64_t dims[4];  // the dims of dst
  int64_t pairs;
  int64_t table_rows;  // rows of the tables, if there are indices
  int64_t dst_strides[4];
  int64_t src_strides[4];
  int64_t cosine_strides[4];  // with indices, [2] is the stride between rows of the table
  int64_t sine_strides[4];
  int64_t index_strides[2];
  FaultTarget fault;
};

// dst[i] = element i of a sequence of random numbers, with i in row-major order.
struct RandomArguments {
  uint64_t dst;
  uint64_t start;  // address of seed and offset, i64; 0: the next two members hold them
  uint64_t seed;
  uint64_t offset;
  int64_t start_stride;
  int32_t dtype;
  int32_t vector;  // dst is one run, and each chunk may be written as one access
  AxisSet axes;    // dst in row-major order
};

// Rows of up to row_operands operands: all axes except the axis along the row, in row-major order.
inline constexpr int32_t row_operands = 3;
struct RowSet {
  int32_t rank;  // >= 1
  int32_t reserved;
  int64_t count;
  int64_t dims[kernel_max_rank];
  int64_t strides[row_operands][kernel_max_rank];
};

// How the bits of an element become a key: an unsigned integer with the same order as the elements.
inline constexpr int32_t key_unsigned = 1;
inline constexpr int32_t key_signed = 2;
inline constexpr int32_t key_float = 3;
struct KeyArguments {
  uint64_t infinity;  // for floats: the bits of infinity
  int32_t form;       // key_unsigned, ...
  int32_t size;       // bytes per element
  int32_t descending;
  int32_t reserved;
};

// Elements per thread of a sort. A tile has row_block times as many.
inline constexpr int32_t sort_items_short = 4;
inline constexpr int32_t sort_items_middle = 8;
inline constexpr int32_t sort_items_long = 16;           // only for keys of 4 bytes
inline constexpr int32_t sort_most_rows = digit_values;  // rows per tile

// Sorts rows of `length` elements by their keys. A tile is a piece of a row, or several whole rows. Equal keys keep the
// order of their places, the positions in the row. Only the first `kept` elements of each sorted row are written:
// elements and positions to dst and dst_places, or keys and places to next_keys and next_places for a later launch.
struct SortArguments {
  uint64_t src;
  uint64_t dst;         // 0: none
  uint64_t dst_places;  // i64; 0: none
  uint64_t keys;        // from an earlier launch, in rows of `length`; 0: computed from src
  uint64_t places;      // u32
  uint64_t next_keys;   // 0: dst and dst_places are written
  uint64_t next_places;
  uint64_t counts;  // u32 [rows, digit_values, pieces]: number of elements of a piece that have the digit
  uint64_t totals;  // u32 [rows, digit_values]
  KeyArguments form;
  int32_t shift;      // bits below the digit of this launch
  int32_t passes;     // digits per key
  int32_t tile_rows;  // >= 1
  int64_t length;
  int64_t kept;
  int64_t pieces;                 // pieces per row
  int64_t piece_length;           // a multiple of a tile
  int64_t next_length;            // length of the rows of next_keys
  int64_t strides[row_operands];  // the strides of src, dst and dst_places along a row
  RowSet rows;
};

// dst = values[1] where the position along the new axis equals the element of src, else values[0]. Operands of `map`:
// dst; src with stride 0 along that axis; and the position along it, which is "address" plus offset.
struct OneHotArguments {
  MapArguments map;
  uint64_t values[2];  // bits of an element
  int64_t length;      // length of the new axis
};

// Elements per thread in kernels that number selected elements. A tile has row_block times as many.
inline constexpr int32_t select_items = 8;

// The pieces in which selected elements are counted and then numbered.
struct PieceArguments {
  uint64_t counts;  // i64 [number + 1]: elements selected in earlier pieces; the last entry counts all
  int64_t count;    // elements
  int64_t number;
  int64_t length;  // elements per piece, a multiple of a tile
  uint64_t total;  // address of an i64 for the number of selected elements; 0: none
};

// nonzero: the indices of the elements of src that are not 0.
struct NonzeroArguments {
  PieceArguments pieces;
  uint64_t src;
  uint64_t dst;
  int32_t size;  // bytes per element
  int32_t is_float;
  int64_t rows;  // rows of dst
  int64_t dst_strides[2];
  int32_t rank;
  int32_t reserved;
  int64_t dims[kernel_max_rank];  // dims of src
  AxisSet axes;                   // src in row-major order
};

// unique: the distinct elements of src. A group is a run of equal elements in sorted order, and its head is the first
// of them. Absent lists are 0.
struct UniqueArguments {
  PieceArguments pieces;
  KeyArguments form;
  uint64_t src;  // contiguous
  uint64_t dst;
  uint64_t dst_indices;
  uint64_t dst_inverse;
  uint64_t dst_counts;
  uint64_t keys;    // sorted, with the places of their elements; 0: neighbours in src are compared
  uint64_t places;  // u32
  uint64_t groups;  // u32 [count]: the group of each sorted element
  uint64_t heads;   // u32 [count + 1]: sorted position of the head of each group, then `count`
  uint64_t ranks;   // u32 [count]: at the place of a head, its rank among the heads' places; 0: groups keep their order
  int64_t dst_stride;
  int64_t indices_stride;
  int64_t inverse_stride;
  int64_t counts_stride;
};

// A kernel has 4096 bytes of parameters on every architecture.
template <class... Arguments>
constexpr bool are_parameters = ((sizeof(Arguments) <= 4096) && ...);
static_assert(are_parameters<MapArguments, IndexArguments, PadArguments, ReduceArguments, ScanArguments, NormArguments,
                             BatchNormArguments, PoolingArguments, SoftmaxArguments, MatmulArguments,
                             AttentionArguments, RotaryArguments, RandomArguments, SortArguments, OneHotArguments,
                             NonzeroArguments, UniqueArguments>);

}  // namespace tenon::provider::cuda
