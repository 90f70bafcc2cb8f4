// fill, copy and where move elements as bits: EP_BITS is uchar, ushort, uint or ulong. Scalars are passed as bits too.
#include "providers/opencl/programs/shape.cl"

#define MOVE_KERNELS(layout)                                                                                     \
  kernel void fill_##layout(global EP_BITS* dst, struct map_parameters p) {                                      \
    const ulong index = get_global_id(0);                                                                        \
    if (index >= p.count) return;                                                                                \
    dst[layout##_places(&p, index, 1).of[0]] = (EP_BITS)p.scalars[0];                                            \
  }                                                                                                              \
  kernel void copy_##layout(global EP_BITS* dst, global const EP_BITS* src, struct map_parameters p) {           \
    const ulong index = get_global_id(0);                                                                        \
    if (index >= p.count) return;                                                                                \
    const struct places at = layout##_places(&p, index, 2);                                                      \
    dst[at.of[0]] = src[at.of[1]];                                                                               \
  }                                                                                                              \
  kernel void where_##layout(global EP_BITS* dst, global const uchar* condition, global const EP_BITS* yes,      \
                             global const EP_BITS* no, struct map_parameters p) {                                \
    const ulong index = get_global_id(0);                                                                        \
    if (index >= p.count) return;                                                                                \
    const struct places at = layout##_places(&p, index, 4);                                                      \
    const bool chosen = (p.scalar_mask & 1u) != 0 ? p.scalars[0] != 0 : condition[at.of[1]] != 0;                \
    EP_BITS value;                                                                                               \
    if (chosen) {                                                                                                \
      value = (p.scalar_mask & 2u) != 0 ? (EP_BITS)p.scalars[1] : yes[at.of[2]];                                 \
    } else {                                                                                                     \
      value = (p.scalar_mask & 4u) != 0 ? (EP_BITS)p.scalars[2] : no[at.of[3]];                                  \
    }                                                                                                            \
    dst[at.of[0]] = value;                                                                                       \
  }

MOVE_KERNELS(flat)
MOVE_KERNELS(strided)
