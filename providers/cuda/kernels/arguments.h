// The arguments of kernels. The host fills them and the device reads them. A kernel takes one struct, by value.
#pragma once

#include <cstdint>

namespace tenon::provider::cuda {

inline constexpr int32_t kernel_max_rank = 8;
inline constexpr int32_t map_max_operands = 4;  // dst and three sources
inline constexpr int64_t map_chunk = 4;         // elements of the innermost axis that one thread computes at a time
inline constexpr int32_t row_block = 256;       // threads of a block of the reduction kernels
inline constexpr int32_t row_warp = 32;         // threads of a warp, on every device
inline constexpr int32_t digit_bits = 8;        // of the digits by which keys are sorted
inline constexpr int32_t digit_values = 1 << digit_bits;

// The place where the kernels of one launch report a fault. One fault per launch is kept: that of the first thread
// which claims the slot. A claim is a number in device memory that only grows, so each stream needs only one.
struct FaultSlot {
  uint64_t sequence;  // number of the launch; written last
  int64_t value;
  int32_t code;
  int32_t reserved;
  int64_t limit;  // that the value broke; 0: there is none
};

struct FaultTarget {
  uint64_t claim;     // address of the stream's claim; 0: this launch cannot fault
  uint64_t slot;      // address of a FaultSlot in host memory
  uint64_t sequence;  // number of this launch, greater than all earlier ones of the stream
};

struct MapOperand {
  uint64_t address;
  int32_t dtype;
  int32_t vector;                    // a chunk may be read and written as one access
  uint64_t scalar;                   // the bits of the value in the compute class, if address is 0
  int64_t strides[kernel_max_rank];  // in elements, 0 past the rank
};

// dst[...] = f(src...). The innermost axis is cut into chunks of map_chunk elements, or of one element. A launch has
// less than 2^31 chunks, so chunk numbers take 32 bits.
struct MapArguments {
  uint32_t chunks;      // chunks of the launch
  uint32_t row_chunks;  // per run of the innermost axis
  uint32_t steps;       // chunks per thread, 1 or 2, if all operands are one run of packs; else 0
  uint32_t reserved;
  int64_t inner;                   // elements of the innermost axis
  int32_t rank;                    // >= 1
  int32_t op;                      // scalar function, for kernels that hold a whole class
  uint64_t parameters[2];          // a and b, in the compute class
  uint32_t dims[kernel_max_rank];  // [rank - 1] is unused
  MapOperand operands[map_max_operands];
  FaultTarget fault;
};

// gather: walked[...] = whole[where the indices say]; scatter combines the other way. The operands of `map` are the
// walked tensor, the whole one with stride 0 along the axes that are indexed, and the indices with stride 0 along the
// axes that they do not have; of scatter also the row-major number of the element, which is "address" plus offset. Each
// place of the whole takes `coordinates` numbers, which lie `coordinate_stride` apart.
struct IndexArguments {
  MapArguments map;
  int32_t coordinates;  // >= 1
  int32_t wide_owners;  // of 64 bits, not 32
  uint64_t owners;      // one for each element of the whole: number of the last update, plus 1
  int64_t coordinate_stride;
  int64_t lengths[kernel_max_rank];  // of the indexed axes of the whole
  int64_t strides[kernel_max_rank];  // of the same axes
};

// dst[i] = src[i - low] where that is inside src; elsewhere `value`, or an element of src (`mode` is EP_PAD_*).
struct PadArguments {
  uint64_t dst;
  uint64_t src;
  uint64_t value;       // bits of an element
  uint32_t chunks;      // of map_chunk elements
  uint32_t row_chunks;  // per run of the innermost axis
  int32_t rank;         // >= 1
  int32_t mode;
  int32_t dst_vector;             // of chunks of map_chunk elements
  int32_t src_vector;             // a chunk of src may be read as one access, if it begins at a chunk of dst
  int64_t dims[kernel_max_rank];  // of dst
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
// parts, and the unfinished value of each part goes to dst[kept * parts + part] in the compute class.
struct ReduceArguments {
  uint64_t src;
  uint64_t dst;
  int32_t src_dtype;
  int32_t dst_dtype;
  int32_t vector;  // the innermost reduced axis can be read in chunks
  int32_t second;  // src holds values of parts: combine but do not map them
  int32_t op;      // reduction, for kernels that hold a whole class
  int32_t reserved;
  int64_t parts;
  int64_t part_length;   // elements of the reduced axes per part
  int64_t finish_count;  // n of finish
  AxisSet kept;
  AxisSet reduced;
};

// dst[i] = src[0] with src[1] ... with src[i] along rows of `length` elements (`op` is EP_SCAN_*).
struct ScanArguments {
  uint64_t src;
  uint64_t dst;
  int32_t dtype;
  int32_t op;
  int32_t exclusive;  // without src[i]
  int32_t reverse;    // from the end of the row
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

// softmax, or its logarithm, of rows of `length` elements.
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

// dst = (src - mean) * inv_std * scale + shift for each row, where inv_std = 1 / sqrt(variance + eps); or, if not
// `centred`, src * inv_std * scale, where the mean of squares replaces the variance. An address of 0 stands for an
// operand that is not there.
struct NormArguments {
  uint64_t src;
  uint64_t dst;
  uint64_t scale;
  uint64_t shift;
  uint64_t mean;     // f64 if src is f64, else f32
  uint64_t inv_std;  // the same
  uint64_t moments;  // of each part of each row, if rows are cut into parts; f32
  double eps;
  int32_t dtype;  // of src and dst
  int32_t scale_dtype;
  int32_t shift_dtype;
  int32_t scale_size;  // bytes of an element
  int32_t shift_size;
  int32_t centred;
  int32_t vector;          // rows of src and dst are contiguous and consist of whole chunks, each read as one access
  int32_t weights_vector;  // the same of scale and shift
  uint32_t run;            // neighbours along a row that one weight serves; for kernels that hold the row
  uint32_t parts;          // of a row; 1: rows are not cut
  int64_t part_length;     // a multiple of what a block holds
  AxisSet rows;            // src and dst along the rows
  AxisSet statistics;      // mean and inv_std along the rows
  AxisSet row_weights;     // scale and shift along the rows
  AxisSet row;             // src and dst along one row
  AxisSet weights;         // scale and shift along one row
};

// dst = (src - mean) / sqrt(variance + eps) * scale + shift, where the four have a number for each channel. Operands of
// `map`: dst, src, and the number of the channel, which is "address" plus offset.
struct BatchNormArguments {
  MapArguments map;
  uint64_t addresses[4];  // of scale, shift, mean, variance; 0: there is none
  int64_t strides[4];
  int32_t dtypes[4];
  double eps;
};

// Two numbers for each parameter, over the elements of src that share it: the sums of the gradient and of its product
// with the normalised element, (x - mean) * inv_std; or, without a gradient, the mean, and the squares of differences
// from it. First those of parts, then those of all.
struct NormSumsArguments {
  uint64_t src;
  uint64_t gradient;
  uint64_t mean;  // f64 if src is f64, else f32; without a gradient a result, as inv_std
  uint64_t inv_std;
  uint64_t sums;    // pairs [kept, parts]
  uint64_t totals;  // of the gradient: pairs [kept], divided by the number of elements; else the variance [kept]
  uint64_t scale_gradient;
  uint64_t shift_gradient;
  double eps;
  int32_t dtype;  // of src and gradient
  int32_t scale_dtype;
  int32_t shift_dtype;
  int32_t by_parameter;  // mean and inv_std have a number for each parameter, not for each of `reduced`
  int64_t parts;
  int64_t part_length;
  AxisSet kept;        // src and gradient along the parameters
  AxisSet reduced;     // src and gradient along the elements of a parameter
  AxisSet statistics;  // mean and inv_std
  AxisSet parameters;  // scale_gradient and shift_gradient
};

// dst = inv_std * (g - mean(g) - x * mean(g * x)) for each row, where x is the normalised element and g the gradient
// times scale.
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
  AxisSet dst_rows;    // dst, as destination
  AxisSet statistics;  // mean and inv_std along the rows
  AxisSet row;         // src and gradient along a row
  AxisSet dst_row;     // dst, as destination
  AxisSet weights;     // scale along a row
};

// The same where elements of a channel share a mean. Operands of `map`: dst, src, gradient, and the number of the
// channel, which is "address" plus offset.
struct BatchBackwardArguments {
  MapArguments map;
  uint64_t scale;  // 0: none
  uint64_t mean;
  uint64_t inv_std;
  uint64_t totals;  // of NormSumsArguments
  int64_t scale_stride;
  int64_t mean_stride;
  int64_t inv_std_stride;
  int32_t scale_dtype;
  int32_t reserved;
};

// Windows over the three spatial axes of src [image, channel, z, y, x]; absent axes have length 1.
struct PoolingArguments {
  uint64_t dst;
  uint64_t src;
  uint64_t indices;  // of i64; 0: none
  int32_t dtype;
  int32_t op;              // EP_POOLING_*
  int32_t channels_first;  // dst is walked in the order image, channel, z, y, x; else image, z, y, x, channel
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

// The gradient of a pooling: pool.src is written and has the gradient of what was pooled, pool.dst is read and has that
// of the windows.
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
  int64_t dims[kernel_max_rank];  // of dst
  int64_t dst_strides[kernel_max_rank];
  int64_t a_strides[kernel_max_rank];  // [rank - 1] along k
  int64_t b_strides[kernel_max_rank];  // [rank - 2] along k
  int64_t bias_strides[kernel_max_rank];
};

// Threads of a block of the attention kernels.
inline constexpr int32_t attention_threads = 128;
inline constexpr int32_t attention_most_splits = 128;
inline constexpr int32_t attention_chunk = 128;  // keys that the plain kernel takes at a time

// The floats of a part: the sums of the columns up to a multiple of 4, two more, and two unused ones.
constexpr int64_t attention_part_floats(int64_t columns) { return (columns + 3) / 4 * 4 + 4; }

// attention: what ep_attention_attributes computes. A unit is a batch and some heads that share keys; its rows are the
// queries of its heads, head after head. A block computes some rows of a unit over the keys of one split. With `splits`
// > 1 it writes a part for each row of each unit and each split: the sums of the columns, the greatest score and the
// sum of the weights, all f32. Strides are in elements, of the axes in their order.
struct AttentionArguments {
  uint64_t dst;
  uint64_t query;
  uint64_t key;
  uint64_t value;
  uint64_t bias;     // 0: none
  uint64_t lengths;  // 0: none
  uint64_t log_sum;  // 0: none
  uint64_t parts;
  int32_t dtype;  // of dst, query, key and value
  int32_t bias_dtype;
  int32_t wide_lengths;  // of i64, not i32
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
  int32_t before;  // -1: no bound
  int32_t after;
  int32_t shaped;        // a score is more than a product times a scale > 0: it has a cap, a bias or another scale
  int32_t query_vector;  // rows consist of whole aligned chunks of 16 bytes
  int32_t key_vector;
  int32_t value_vector;
  int32_t dst_vector;  // of chunks of map_chunk elements
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

// rotary: pairs of each row turned by angles. Rows are [batch, head, position]; with indices the row of the angles is
// the one that indices[batch, position] says.
struct RotaryArguments {
  uint64_t dst;
  uint64_t src;
  uint64_t cosines;
  uint64_t sines;
  uint64_t indices;  // 0: none
  int32_t dtype;
  int32_t angle_dtype;
  int32_t wide_indices;  // of i64, not i32
  int32_t interleaved;
  int64_t dims[4];  // of dst
  int64_t pairs;
  int64_t table_rows;  // with indices
  int64_t dst_strides[4];
  int64_t src_strides[4];
  int64_t cosine_strides[4];  // with indices [2] of the rows of the table
  int64_t sine_strides[4];
  int64_t index_strides[2];
  FaultTarget fault;
};

// dst[i] = what element i of a sequence of random numbers is, i in row-major order.
struct RandomArguments {
  uint64_t dst;
  uint64_t start;  // address of seed and offset, i64; 0: they are the next two
  uint64_t seed;
  uint64_t offset;
  int64_t start_stride;
  int32_t dtype;
  int32_t vector;  // dst is one run, and each chunk may be written as one access
  AxisSet axes;    // dst in row-major order
};

// The rows of up to row_operands operands: the axes but the one along which rows lie, in row-major order.
inline constexpr int32_t row_operands = 3;
struct RowSet {
  int32_t rank;  // >= 1
  int32_t reserved;
  int64_t count;
  int64_t dims[kernel_max_rank];
  int64_t strides[row_operands][kernel_max_rank];
};

// How the bits of an element become a key, an unsigned integer whose order is that of the elements.
inline constexpr int32_t key_unsigned = 1;
inline constexpr int32_t key_signed = 2;
inline constexpr int32_t key_float = 3;
struct KeyArguments {
  uint64_t infinity;  // of floats: the bits of the greatest magnitude that is not NaN
  int32_t form;       // key_unsigned, ...
  int32_t size;       // bytes of an element
  int32_t descending;
  int32_t reserved;
};

// Elements that one thread of a sort holds. A tile has row_block times as many.
inline constexpr int32_t sort_items_short = 4;
inline constexpr int32_t sort_items_middle = 8;
inline constexpr int32_t sort_items_long = 16;           // of keys of 4 bytes alone
inline constexpr int32_t sort_most_rows = digit_values;  // of a tile

// Sorts rows of `length` elements by their keys. A tile is a piece of a row, or several whole rows. Equal keys keep the
// order of the elements, which is that of their places, the positions in the row. The first `kept` elements of what is
// sorted are written: as elements and positions to dst and dst_places, or as keys and places to next_keys and
// next_places, for a later launch.
struct SortArguments {
  uint64_t src;
  uint64_t dst;         // 0: none
  uint64_t dst_places;  // of i64; 0: none
  uint64_t keys;        // of an earlier launch, in rows of `length`; 0: they are made of src
  uint64_t places;      // u32
  uint64_t next_keys;   // 0: dst and dst_places are written
  uint64_t next_places;
  uint64_t counts;  // u32 [rows, digit_values, pieces]: how many elements of a piece have the digit
  uint64_t totals;  // u32 [rows, digit_values]
  KeyArguments form;
  int32_t shift;      // of the digit of this launch, in bits
  int32_t passes;     // digits of a key
  int32_t tile_rows;  // >= 1
  int64_t length;
  int64_t kept;
  int64_t pieces;                 // of a row
  int64_t piece_length;           // a multiple of a tile
  int64_t next_length;            // of the rows of next_keys
  int64_t strides[row_operands];  // of src, dst and dst_places along a row
  RowSet rows;
};

// dst = values[1] where the position along the new axis is the element of src, else values[0]. Operands of `map`: dst,
// src with stride 0 along that axis, and the position along it, which is "address" plus offset.
struct OneHotArguments {
  MapArguments map;
  uint64_t values[2];  // bits of an element
  int64_t length;      // of the axis
};

// Elements of a thread in the kernels that number the elements that are selected. A tile has row_block times as many.
inline constexpr int32_t select_items = 8;

// The pieces in which selected elements are counted and then numbered.
struct PieceArguments {
  uint64_t counts;  // i64 [number + 1]: elements selected in earlier pieces; at last all of them
  int64_t count;    // elements
  int64_t number;
  int64_t length;  // a multiple of a tile
  uint64_t total;  // address of an i64 that becomes the number of all that are selected; 0: none
};

// nonzero: the indices of the elements of src that are not 0.
struct NonzeroArguments {
  PieceArguments pieces;
  uint64_t src;
  uint64_t dst;
  int32_t size;  // bytes of an element
  int32_t is_float;
  int64_t rows;  // of dst
  int64_t dst_strides[2];
  int32_t rank;
  int32_t reserved;
  int64_t dims[kernel_max_rank];  // of src
  AxisSet axes;                   // src in row-major order
};

// unique: the different ones among the elements of src. A group is a run of equal elements in sorted order, its head
// the first of them. Lists that are absent are 0.
struct UniqueArguments {
  PieceArguments pieces;
  KeyArguments form;
  uint64_t src;  // one run
  uint64_t dst;
  uint64_t dst_indices;
  uint64_t dst_inverse;
  uint64_t dst_counts;
  uint64_t keys;    // sorted, with the places of their elements; 0: neighbours in src are compared
  uint64_t places;  // u32
  uint64_t groups;  // u32 [count]: the group of each sorted element
  uint64_t heads;   // u32 [count + 1]: the sorted position of the head of each group, and the end
  uint64_t ranks;   // u32 [count]: for the place of a head its number among those; 0: groups are in their order
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
