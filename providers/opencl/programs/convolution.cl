// convolution and transposed convolution with bias and epilogues. SRC_DTYPE is the dtype of the result; A_DTYPE and
// B_DTYPE are the dtypes of WEIGHT and SRC. Axes are image, channel, and three spatial ones; missing ones have length
// 1.
//
// `convolution_tile` is a matmul per group: rows are the channels of the result, columns its positions in all images,
// and k covers the channels of the source and the taps. `convolution_item` computes one result per work-item, for
// groups of few channels.
#include "providers/opencl/programs/tail.cl"
#include "providers/opencl/programs/tile.cl"

// Mirrors ConvolutionParameters of kernels/convolution.cpp.
struct convolution_parameters {
  ulong images;
  ulong groups;
  ulong channels;  // channels of the source per group
  ulong outputs;   // channels of the result per group
  ulong src[3];    // spatial dims
  ulong dst[3];
  ulong kernel_dims[3];
  long stride[3];
  long dilation[3];
  long pad[3];
  ulong offsets[SLOTS];
  ulong scalars[8];
  ulong strides[SLOTS][5];  // strides of WEIGHT: output channel, input channel, taps
  int transposed;
  int unused;
};

// The source position that tap `k` of the result at `position` reads; -1 if there is none.
static inline long source_of(const struct convolution_parameters* p, int axis, long position, long k) {
  long at = position * p->stride[axis] - p->pad[axis] + k * p->dilation[axis];
  if (p->transposed != 0) {
    at = position + p->pad[axis] - k * p->dilation[axis];
    if (at < 0 || at % p->stride[axis] != 0) return -1;
    at /= p->stride[axis];
  }
  return at >= 0 && at < (long)p->src[axis] ? at : -1;
}

// The offset of a weight for channels of `group`. A transposed convolution stores weights by source channel.
static inline ulong weight_place(const struct convolution_parameters* p, ulong group, ulong output, ulong channel,
                                 ulong kz, ulong ky, ulong kx) {
  const ulong first = p->transposed != 0 ? group * p->channels + channel : group * p->outputs + output;
  const ulong second = p->transposed != 0 ? output : channel;
  return p->offsets[SLOT_A] + first * p->strides[SLOT_A][0] + second * p->strides[SLOT_A][1] +
         kz * p->strides[SLOT_A][2] + ky * p->strides[SLOT_A][3] + kx * p->strides[SLOT_A][4];
}

// The offset of a result, from its image, its positions, and its channel among all channels.
#define PLACE(slot)                                                                                               \
  (p.offsets[slot] + image * p.strides[slot][0] + channel_of_dst * p.strides[slot][1] + z * p.strides[slot][2] +  \
   y * p.strides[slot][3] + x * p.strides[slot][4])

kernel void convolution_item(global uchar* dst, global const uchar* weight, global const uchar* src, TAIL_ARGUMENTS,
                             struct convolution_parameters p) {
  const ulong number = get_global_id(0);
  const ulong channels_of_dst = p.groups * p.outputs;
  if (number >= p.images * channels_of_dst * p.dst[0] * p.dst[1] * p.dst[2]) return;
  ulong rest = number / p.dst[2];
  const ulong x = number - rest * p.dst[2];
  const ulong y = rest % p.dst[1];
  rest /= p.dst[1];
  const ulong z = rest % p.dst[0];
  rest /= p.dst[0];
  const ulong channel_of_dst = rest % channels_of_dst;
  const ulong image = rest / channels_of_dst;
  const ulong group = channel_of_dst / p.outputs;
  const ulong output = channel_of_dst - group * p.outputs;
  const ulong image_place = p.offsets[SLOT_B] + image * p.strides[SLOT_B][0];
  EP_T value = 0;
  for (ulong kz = 0; kz < p.kernel_dims[0]; ++kz) {
    const long sz = source_of(&p, 0, (long)z, (long)kz);
    if (sz < 0) continue;
    for (ulong ky = 0; ky < p.kernel_dims[1]; ++ky) {
      const long sy = source_of(&p, 1, (long)y, (long)ky);
      if (sy < 0) continue;
      for (ulong kx = 0; kx < p.kernel_dims[2]; ++kx) {
        const long sx = source_of(&p, 2, (long)x, (long)kx);
        if (sx < 0) continue;
        const ulong at = image_place + sz * p.strides[SLOT_B][2] + sy * p.strides[SLOT_B][3] + sx * p.strides[SLOT_B][4];
        for (ulong c = 0; c < p.channels; ++c) {
          const EP_T w = ep_load(weight, weight_place(&p, group, output, c, kz, ky, kx), A_DTYPE);
          const EP_T s = ep_load(src, at + (group * p.channels + c) * p.strides[SLOT_B][1], B_DTYPE);
          ACCUMULATE(value, w, s);
        }
      }
    }
  }
  FINISH(value, PLACE)
  ep_store(dst, PLACE(SLOT_DST), SRC_DTYPE, value);
}

kernel void convolution_tile(global uchar* dst, global const uchar* weight, global const uchar* src, TAIL_ARGUMENTS,
                             struct convolution_parameters p) {
  local EP_T slice_a[SLICE * PITCH];
  local EP_T slice_b[SLICE * PITCH];
  const uint me = (uint)get_local_id(0);
  const ulong positions = p.dst[0] * p.dst[1] * p.dst[2];
  const ulong columns = p.images * positions;
  const ulong tiles_n = (columns + TILE - 1) / TILE;
  const ulong tiles = tiles_n * ((p.outputs + TILE - 1) / TILE);
  const ulong group = get_group_id(0) / tiles;
  const ulong tile = get_group_id(0) - group * tiles;
  const ulong row0 = tile / tiles_n * TILE;
  const ulong column0 = tile % tiles_n * TILE;
  const int my_row = (int)me / 16 * 4;
  const int my_column = (int)me % 16 * 4;
  const uint taps = (uint)(p.kernel_dims[0] * p.kernel_dims[1] * p.kernel_dims[2]);
  const ulong depth = p.channels * taps;
  // This work-item loads one column of the source in every slice.
  const ulong column = column0 + me % TILE;
  const ulong image = column / positions;
  const uint position = (uint)(column - image * positions);
  const uint x = position % (uint)p.dst[2];
  const uint y = position / (uint)p.dst[2] % (uint)p.dst[1];
  const uint z = position / (uint)p.dst[2] / (uint)p.dst[1];
  const ulong column_place = p.offsets[SLOT_B] + image * p.strides[SLOT_B][0] +
                             group * p.channels * p.strides[SLOT_B][1];
  EP_T sums[16];
  for (int i = 0; i < 16; ++i) sums[i] = 0;
  for (ulong k0 = 0; k0 < depth; k0 += SLICE) {
    for (uint i = 0; i < 4; ++i) {
      const uint number = i * 256 + me;
      const uint ar = number / SLICE;
      const ulong ak = k0 + number % SLICE;
      EP_T w = 0;
      if (row0 + ar < p.outputs && ak < depth) {
        const uint c = (uint)ak / taps;
        const uint tap = (uint)ak - c * taps;
        const uint kx = tap % (uint)p.kernel_dims[2];
        const uint kzy = tap / (uint)p.kernel_dims[2];
        const uint ky = kzy % (uint)p.kernel_dims[1];
        w = ep_load(weight, weight_place(&p, group, row0 + ar, c, kzy / (uint)p.kernel_dims[1], ky, kx), A_DTYPE);
      }
      slice_a[number % SLICE * PITCH + ar] = w;
      const ulong bk = k0 + number / TILE;
      EP_T s = 0;
      if (column < columns && bk < depth) {
        const uint c = (uint)bk / taps;
        const uint tap = (uint)bk - c * taps;
        const uint kzy = tap / (uint)p.kernel_dims[2];
        const long sx = source_of(&p, 2, x, tap - kzy * (uint)p.kernel_dims[2]);
        const long sy = source_of(&p, 1, y, kzy % (uint)p.kernel_dims[1]);
        const long sz = source_of(&p, 0, z, kzy / (uint)p.kernel_dims[1]);
        if (sx >= 0 && sy >= 0 && sz >= 0) {
          s = ep_load(src,
                      column_place + c * p.strides[SLOT_B][1] + sz * p.strides[SLOT_B][2] +
                          sy * p.strides[SLOT_B][3] + sx * p.strides[SLOT_B][4],
                      B_DTYPE);
        }
      }
      slice_b[number / TILE * PITCH + number % TILE] = s;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply_slice(slice_a, slice_b, sums, my_row, my_column);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const ulong output = row0 + my_row + i;
      const ulong mine = column0 + my_column + j;
      if (output >= p.outputs || mine >= columns) continue;
      const ulong image = mine / positions;
      const ulong place = mine - image * positions;
      const ulong x = place % p.dst[2];
      const ulong y = place / p.dst[2] % p.dst[1];
      const ulong z = place / p.dst[2] / p.dst[1];
      const ulong channel_of_dst = group * p.outputs + output;
      EP_T value = sums[4 * i + j];
      FINISH(value, PLACE)
      ep_store(dst, PLACE(SLOT_DST), SRC_DTYPE, value);
    }
  }
}
